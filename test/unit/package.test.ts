import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { satisfies } from 'semver'
import { expect, test } from 'vitest'
import { objectOf, parseJson, stringOf } from '../support/json.ts'

const root = join(import.meta.dirname, '..', '..')
const manifestAt = (path: string) => objectOf(parseJson(readFileSync(path, 'utf8'), path), path)
const ours = manifestAt(join(root, 'package.json'))

const namesIn = (manifest: ReturnType<typeof manifestAt>, field: string): string[] =>
  Object.keys(objectOf(manifest[field] ?? {}, field))

/** The manifest of a package as another one finds it; some hide theirs from `exports`. */
const manifestOf = (name: string, from: string): string => {
  for (const folder of createRequire(from).resolve.paths(name) ?? []) {
    const path = join(folder, name, 'package.json')
    if (existsSync(path)) return path
  }
  throw new Error(`${name} is not installed for ${from}`)
}

/** Every package that runs with the bundle, by way of its dependencies. */
const runtimeManifests = (): Set<string> => {
  const found = new Set<string>()
  const visit = (path: string) => {
    if (found.has(path)) return
    found.add(path)
    for (const name of namesIn(manifestAt(path), 'dependencies')) visit(manifestOf(name, path))
  }
  for (const name of namesIn(ours, 'dependencies')) visit(manifestOf(name, join(root, 'package.json')))
  return found
}

/** What the harness runs on; its packages do not declare it, its repository does. */
const HARNESS_ENGINES = '^22.19.0 || >=24.0.0'

test('engines.node is the intersection of what everything that runs needs', () => {
  const ranges = [...runtimeManifests()].flatMap((path) => {
    const node = objectOf(manifestAt(path)['engines'] ?? {}, 'engines')['node']
    return node === undefined ? [] : [stringOf(node, 'engines.node')]
  })
  ranges.push(HARNESS_ENGINES)
  const declared = stringOf(objectOf(ours['engines'], 'engines')['node'], 'engines.node')
  for (let major = 16; major <= 30; major += 1) {
    for (let minor = 0; minor <= 40; minor += 1) {
      const version = `${major}.${minor}.0`
      expect([version, satisfies(version, declared)]).toEqual([
        version,
        ranges.every((range) => satisfies(version, range)),
      ])
    }
  }
})

test('dependencies that run are exact, and none has an install script', () => {
  for (const version of Object.values(objectOf(ours['dependencies'], 'dependencies'))) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/)
  }
  for (const path of runtimeManifests()) {
    const scripts = objectOf(manifestAt(path)['scripts'] ?? {}, dirname(path))
    expect(Object.keys(scripts)).not.toContain('install')
    expect(Object.keys(scripts)).not.toContain('postinstall')
  }
})

test('the package exports what hosts look for', async () => {
  const module: object = await import('../../src/index.ts')
  expect(Object.keys(module).toSorted()).toEqual(['Config', 'apply', 'inject', 'name'])
  const bundle = objectOf(objectOf(ours['dsh'], 'dsh')['bundle'], 'dsh.bundle')
  expect(bundle['patch']).toBe('./cordis.patch.yml')
  const patch = readFileSync(join(root, 'cordis.patch.yml'), 'utf8')
  expect(patch).toContain('id: live-workspace')
  expect(patch).toContain(`name: ${stringOf(ours['name'], 'name')}`)
})
