import { describe, expect, it } from 'vitest'
import {
  answersAtOnce,
  filesystemIn,
  filesystemOf,
  matchesType,
  SILENT_FILESYSTEMS,
} from '../../src/watch/mounts.ts'

const table = [
  '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
  '30 22 0:40 / /mnt/share rw shared:1 - nfs4 server:/x rw',
  '31 30 0:41 / /mnt/share/deep rw - fuse.sshfs me@there: rw',
  '32 22 0:42 / /mnt/c rw - 9p C:\\134 rw,aname=drvfs',
  '33 22 0:43 / /mnt/with\\040space rw - cifs //a/b rw',
  '34 22 0:44 / /project rw - tmpfs tmpfs rw',
  '35 22 0:45 / /project rw - virtiofs work rw',
  'damaged',
  '',
].join('\n')

describe('filesystemIn', () => {
  it.each([
    ['/home/me', 'ext4'],
    ['/', 'ext4'],
    ['/mnt/share', 'nfs4'],
    ['/mnt/share/a', 'nfs4'],
    ['/mnt/shared', 'ext4'],
    ['/mnt/share/deep/a', 'fuse.sshfs'],
    ['/mnt/c/work', '9p'],
    ['/mnt/with space/a', 'cifs'],
    // Mounted over the other one.
    ['/project/a', 'virtiofs'],
  ])('%s lies on %s', (path, type) => {
    expect(filesystemIn(path, table)).toBe(type)
  })

  it('knows nothing of an empty table', () => {
    expect(filesystemIn('/a', '')).toBeUndefined()
  })

  it.runIf(process.platform === 'linux')('finds this system’s own mounts', () => {
    expect(filesystemOf('/proc/self')).toBe('proc')
    expect(filesystemOf('/')).toMatch(/./)
  })
})

describe('matchesType', () => {
  it.each([
    ['nfs4', true],
    ['fuse.sshfs', true],
    ['9p', true],
    ['ext4', false],
    // A local disk that is served by a program of this machine.
    ['fuseblk', false],
    ['fusexsshfs', false],
  ])('%s among the defaults: %s', (type, expected) => {
    expect(matchesType(type, SILENT_FILESYSTEMS)).toBe(expected)
  })

  it('is nothing without patterns, and everything with a star', () => {
    expect(matchesType('nfs4', [])).toBe(false)
    expect(matchesType('ext4', ['*'])).toBe(true)
  })
})

describe('answersAtOnce', () => {
  it.each([
    ['ext4', true],
    ['tmpfs', true],
    ['nfs4', false],
    ['fuse.sshfs', false],
    [undefined, false],
  ])('%s: %s', (type, expected) => {
    expect(answersAtOnce(type)).toBe(expected)
  })
})
