import { describe, expect, it } from 'vitest'
import { codeOf, messageOf } from '../../src/errors.ts'
import { concernsAll, faultOf } from '../../src/watch/faults.ts'

const errorWith = (code: string): Error =>
  Object.assign(new Error(`${code}: watch '/secret\nname'`), { code })

describe('faultOf', () => {
  it.each([
    ['ENOSPC', 'watch-limit', 'fs.inotify.max_user_watches'],
    ['EMFILE', 'instance-limit', 'fs.inotify.max_user_instances'],
    ['ENFILE', 'instance-limit', 'ulimit -n'],
    ['EACCES', 'access-denied', 'watch.ignoredDirectories'],
    ['EPERM', 'access-denied', 'watch.ignoredDirectories'],
    ['EIO', 'error', 'watch.backend'],
  ])('%s is "%s", with a remedy', (code, expected, remedy) => {
    const fault = faultOf(errorWith(code))
    expect(fault.code).toBe(expected)
    expect(fault.remedy).toContain(remedy)
  })

  it.each([undefined, null, 7, 'text', {}, { code: 28 }, new Error('plain')])(
    'explains %j as well',
    (error) => {
      expect(faultOf(error).code).toBe('error')
    },
  )

  it.each(['ENOSPC', 'EMFILE', 'EACCES', 'EIO'])(
    '%s: names of files stay out of what a model reads',
    (code) => {
      const { reason, remedy, detail } = faultOf(errorWith(code))
      expect(reason + remedy).not.toContain('secret')
      for (const sentence of [reason, remedy]) expect(sentence).toMatch(/^[^\n<>]+[^.\n]$/)
      expect(detail ?? '').not.toContain('\n')
    },
  )

  it.each(['EACCES', 'EIO'])('%s: the log gets what the system said', (code) => {
    expect(faultOf(errorWith(code)).detail).toContain("watch '/secret name'")
  })
})

describe('concernsAll', () => {
  it.each([
    ['ENOSPC', true],
    ['EMFILE', true],
    ['ENFILE', true],
    ['EACCES', false],
    ['EPERM', false],
    ['EIO', false],
  ])('%s: %s', (code, all) => {
    expect(concernsAll(faultOf(errorWith(code)))).toBe(all)
  })
})

describe('codeOf', () => {
  it.each([
    [errorWith('ENOENT'), 'ENOENT'],
    [{ code: 'FS_NOT_FOUND' }, 'FS_NOT_FOUND'],
    [{ code: 2 }, undefined],
    [new Error('x'), undefined],
    [null, undefined],
    [undefined, undefined],
    ['ENOENT', undefined],
  ])('of %j is %s', (error, code) => {
    expect(codeOf(error)).toBe(code)
  })
})

describe('messageOf', () => {
  it.each([
    [new Error(' a\n\tb  c '), 'a b c'],
    ['text\nmore', 'text more'],
    [undefined, 'undefined'],
    [7, '7'],
  ])('of %j is one line', (error, message) => {
    expect(messageOf(error)).toBe(message)
  })
})
