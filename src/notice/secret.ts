/**
 * Which files are never shown. Pure.
 *
 * @module dsh-live-workspace/notice/secret
 */

/** Names of environment files, private keys and credential stores. */
export const SECRET_FILES = [
  '.env*',
  '*.env',
  '*.env.*',
  '.dev.vars*',
  '*.tfvars*',
  '*.tfstate*',
  '*apikey*',
  '*api_key*',
  '*api-key*',
  '*.secret',
  '*.secrets',
  'secrets.*',
  'secret*.json',
  'secret*.txt',
  'secret*.y*ml',
  '*secrets.properties',
  'client_secret*',
  'password*.txt',
  '*.pem*',
  '*.key',
  '*.key.*',
  '*.p12',
  '*.pfx',
  '*.jks',
  '*.keystore',
  '*.kdbx',
  '*.asc',
  '*id_rsa*',
  '*id_dsa*',
  '*id_ecdsa*',
  '*id_ed25519*',
  '*deploy_key*',
  '.netrc*',
  '_netrc',
  '.npmrc',
  '.pypirc',
  '.pgpass',
  '.my.cnf',
  '.git-credentials',
  '.htpasswd',
  '.credentials*',
  'credentials',
  'credentials.*',
  'service-account*.json',
  '.terraformrc',
  '.vault-token',
  'vault.y*ml',
  '.dockercfg',
  '.dockerconfigjson',
  'kubeconfig*',
  '.env*/*',
  'secrets/*',
  '.ssh/*',
  '.gnupg/*',
  '.aws/credentials',
  '.kube/config',
  '.docker/config.json',
  'gh/hosts.yml',
]

/** Whether a text holds a private key (RFC 7468, RFC 4880), whatever the name of its file. */
export const holdsPrivateKey = (text: string): boolean =>
  /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/.test(text)

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
