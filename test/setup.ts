/** Nothing that is tested may write into the home of whoever runs the tests. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const home = mkdtempSync(join(tmpdir(), 'live-workspace-home-'))
process.env['DSH_HOME'] = home
process.once('exit', () => rmSync(home, { recursive: true, force: true }))
