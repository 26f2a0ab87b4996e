/** The tree that is watched: 10 files in each directory, 5 directories in each, to any number of files. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILES_PER_DIRECTORY = 10
const DIRECTORIES_PER_DIRECTORY = 5
const BODY = 'x'.repeat(1_500)

/** @returns the files, in the order of their making. */
export const growTree = (root: string, count: number): readonly string[] => {
  const directories: string[] = []
  const files: string[] = []
  while (files.length < count) {
    const index = directories.length
    const parent = directories[Math.floor((index - 1) / DIRECTORIES_PER_DIRECTORY)]
    const directory = parent === undefined ? root : join(parent, `d${index}`)
    mkdirSync(directory, { recursive: true })
    directories.push(directory)
    for (let number = 0; number < FILES_PER_DIRECTORY && files.length < count; number += 1) {
      const file = join(directory, `f${number}.ts`)
      writeFileSync(file, `// ${files.length}\n${BODY}\n`)
      files.push(file)
    }
  }
  return files
}

/** The same order in every run, but not that of the tree. */
export const shuffled = <T>(items: readonly T[]): readonly T[] => {
  const rest = [...items]
  let seed = 12_345
  return items.flatMap(() => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff
    // The low bits of this generator repeat soon.
    return rest.splice((seed >>> 8) % rest.length, 1)
  })
}
