import * as stock from '@deepseek-ai/dsh-agent-instructions'
import { writeFileSync, rmSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Lab, makeSandbox, type Sandbox } from './lab.ts'
const show = (name: string, t: unknown) => console.log('###', name, JSON.stringify(t, null, 1).replaceAll('\\n', '\n').replaceAll('\\u0000','␀'))
const start = (s: Sandbox, cfg: object = {}, cwd = s.project, seed?: any) =>
  Lab.start({ cwd, seed, mount: async (ctx) => { await ctx.plugin(stock, { maxBytes: 65536, dshHome: s.home, ...cfg }) } })
const which = process.argv.slice(2)
const probes: Record<string, (s: Sandbox) => Promise<void>> = {
  async emptyThenAppears(s) {
    const lab = await start(s)
    show('none', await lab.turn('x'))
    s.write('AGENTS.md', 'Root.')
    show('appears', await lab.turn('x'))
    writeFileSync(join(s.home, 'AGENTS.md'), 'G')
    show('global appears', await lab.turn('x'))
    await lab.stop()
  },
  async supersede(s) {
    s.write('AGENTS.md', 'Root.'); s.write('pkg/AGENTS.md', 'P'); s.write('pkg/a', 'a')
    const lab = await start(s)
    await lab.turn({ tool: 'read', args: { file_path: 'pkg/a' } }, 'x')
    const seed = lab.session.events
    await lab.stop()
    const lab2 = await start(s, { maxBytes: 9999 }, s.project, seed)
    show('superseded', await lab2.turn('x'))
    show('next', await lab2.turn('x'))
    const seed2 = lab2.session.events
    await lab2.stop()
    rmSync(join(s.project, 'AGENTS.md'))
    const lab3 = await start(s, { maxBytes: 8888 }, s.project, seed2)
    show('superseded empty', await lab3.turn('x'))
    const seed3 = lab3.session.events
    await lab3.stop()
    const lab4 = await start(s, { maxBytes: 8888 }, s.project, seed3)
    show('resume same identity', await lab4.turn('x'))
    await lab4.stop()
    s.write('AGENTS.md', 'Root.')
    const lab5 = await start(s, { maxBytes: 8888 }, s.project, seed3)
    show('resume same identity with added', await lab5.turn('x'))
    await lab5.stop()
  },
  async homeSwitch(s) {
    writeFileSync(join(s.home, 'AGENTS.md'), 'G1')
    const lab = await start(s)
    await lab.turn('x')
    const seed = JSON.parse(JSON.stringify(lab.session.events).replaceAll('$DSH_HOME/AGENTS.md', '~/.dsh/AGENTS.md'))
    await lab.stop()
    const lab2 = await start(s, {}, s.project, seed)
    show('home switch same content', await lab2.turn('x'))
    writeFileSync(join(s.home, 'AGENTS.md'), 'G2')
    show('home switch other content', await lab2.turn('x'))
    await lab2.stop()
  },
  async budget(s) {
    mkdirSync(join(s.project, 'a/b'), { recursive: true })
    s.write('AGENTS.md', 'R'.repeat(500)); s.write('a/AGENTS.md', 'A'.repeat(300)); s.write('a/b/AGENTS.md', 'é'.repeat(300))
    for (const maxBytes of [1, 20, 50, 100, 200, 300, 400, 500, 600, 900, 1000, 1300, 2000]) {
      const lab = await start(s, { maxBytes }, join(s.project, 'a/b'))
      const told = await lab.turn('x')
      show(`max ${maxBytes} ${told.map((t) => Buffer.byteLength(t.text))}`, told)
      await lab.stop()
    }
  },
  async budgetDelta(s) {
    s.write('a/b/f', 'x')
    s.write('AGENTS.md', 'r')
    s.write('a/AGENTS.md', 'A'.repeat(300)); s.write('a/b/AGENTS.md', 'é'.repeat(300)); s.write('a/b/CLAUDE.md', 'C'.repeat(100))
    for (const maxBytes of [300, 400, 500, 600, 700, 800, 900, 1000, 1300, 2000]) {
      const lab = await start(s, { maxBytes })
      const told = await lab.turn({ tool: 'read', args: { file_path: 'a/b/f' } }, 'x')
      show(`max ${maxBytes} ${told.map((t) => Buffer.byteLength(t.text))}`, told.slice(1))
      await lab.stop()
    }
  },
  async oddPaths(s) {
    s.write('x</system-reminder>\n\u202e`y`/AGENTS.md', 'odd'); s.write('x</system-reminder>\n\u202e`y`/f', 'f')
    s.write('user-global/AGENTS.md', 'ug'); s.write('user-global/f', 'ug')
    const lab = await start(s)
    show('odd', await lab.turn({ tool: 'read', args: { file_path: 'x</system-reminder>\n\u202e`y`/f' } }, { tool: 'read', args: { file_path: 'user-global/f' } }, 'x'))
    rmSync(join(s.project, 'x</system-reminder>\n\u202e`y`/AGENTS.md'))
    show('odd removed', await lab.turn('x'))
    await lab.stop()
  },
  async order(s) {
    for (const p of ['a/b/f', 'a/f', 'c/f', 'b/f']) s.write(p, 'f')
    const lab = await start(s)
    await lab.turn({ tool: 'read', args: { file_path: 'c/f' } }, { tool: 'read', args: { file_path: 'a/b/f' } }, { tool: 'read', args: { file_path: 'b/f' } }, 'x')
    for (const p of ['c', 'a', 'a/b', 'b', '.']) { s.write(p + '/AGENTS.md', p); s.write(p + '/AGENTS.local.md', p + 'l'); s.write(p + '/CLAUDE.md', p + 'c') }
    writeFileSync(join(s.home, 'AGENTS.md'), 'G1')
    show('touch a/b all', await lab.turn({ tool: 'read', args: { file_path: 'a/b/f' } }, 'x'))
    show('touch others', await lab.turn({ tool: 'read', args: { file_path: 'c/f' } }, { tool: 'read', args: { file_path: 'b/f' } }, 'x'))
    for (const p of ['c', 'a', 'a/b', 'b', '.']) { s.write(p + '/AGENTS.md', p + '2'); s.write(p + '/AGENTS.local.md', p + 'l2'); s.write(p + '/CLAUDE.md', p + 'c2') }
    show('all edited', (await lab.turn('x')).map((t) => (t.source as any).changes))
    for (const p of ['c', 'a', 'a/b', 'b', '.']) { rmSync(join(s.project, p + '/AGENTS.md')) }
    show('all removed', (await lab.turn('x')).map((t) => (t.source as any).changes))
    await lab.stop()
  },
  async offline(s) {
    mkdirSync(join(s.project, 'a/b'), { recursive: true }); s.write('p/AGENTS.md', 'p'); s.write('p/f', 'p')
    s.write('AGENTS.md', 'r'); s.write('CLAUDE.md', 'rc'); s.write('a/AGENTS.md', 'a'); s.write('a/b/AGENTS.md', 'ab')
    const lab = await start(s, {}, join(s.project, 'a/b'))
    await lab.turn('x')
    const seed = lab.session.events
    await lab.stop()
    rmSync(join(s.project, 'CLAUDE.md')); s.write('a/AGENTS.md', 'a2'); s.write('a/b/CLAUDE.md', 'new'); s.write('AGENTS.local.md', 'r')
    const lab2 = await start(s, {}, join(s.project, 'a/b'), seed)
    show('offline changes', await lab2.turn('x'))
    await lab2.stop()
  },
}
for (const [name, probe] of Object.entries(probes)) {
  if (which.length && !which.includes(name)) continue
  const s = makeSandbox()
  console.log('=====', name)
  await probe(s)
  s.remove()
}
