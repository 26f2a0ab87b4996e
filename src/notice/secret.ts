/**
 * Which files are never shown. Pure.
 *
 * @module dsh-live-workspace/notice/secret
 */

/** Names of environment files, private keys and credential stores. */
export const SECRET_FILES = [
  '.env',
  '.env.*',
  '.envrc',
  '*.env',
  '*.tfvars',
  '*.tfvars.json',
  '*apikey*',
  '*api_key*',
  '*api-key*',
  '*.secret',
  '*.secrets',
  '*.pem',
  '*.key',
  '*.p12',
  '*.pfx',
  '*.jks',
  '*.keystore',
  '*.kdbx',
  '*.asc',
  'id_rsa*',
  'id_dsa*',
  'id_ecdsa*',
  'id_ed25519*',
  '.netrc',
  '.npmrc',
  '.pypirc',
  '.pgpass',
  '.git-credentials',
  '.htpasswd',
  '.credentials*',
  'credentials',
  'credentials.*',
  'secrets.*',
  'service-account*.json',
  '.ssh/*',
  '.gnupg/*',
  '.aws/credentials',
  '.kube/config',
  '.docker/config.json',
]

const escapeForPattern = (text: string): string => text.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&')

/**
 * A test for names of files that may hold secrets.
 * @param names - names with `*` for any characters; letter case does not matter.
 * @returns whether the last segment of a path, with either separator, is such a name.
 */
export const secretMatcher = (names: readonly string[]): ((path: string) => boolean) => {
  if (names.length === 0) return () => false
  const alternatives = names.map((name) => name.split('*').map(escapeForPattern).join('[^/\\\\]*'))
  const pattern = new RegExp(`(?:^|[/\\\\])(?:${alternatives.join('|')})$`, 'iu')
  return (path) => pattern.test(path)
}
