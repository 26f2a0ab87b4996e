import { cpSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBrowser, openBrowser, type Page } from '../support/browser.ts'
import { checkout, installBundle, packBundle, scratchHome, type ScratchHome } from '../support/dsh.ts'
import {
  callBash,
  callRead,
  inSteps,
  say,
  startScriptedModel,
  type ScriptedModel,
} from '../support/scripted-model.ts'
import { startWeb, type DshWeb } from '../support/web.ts'

const browser = findBrowser()
/** Not part of every run: it needs a browser, which is no package of this repository. */
const notRun = (): string | undefined => {
  if (process.env['LIVE_WORKSPACE_BROWSER'] !== '1') return 'LIVE_WORKSPACE_BROWSER is not 1'
  return 'missing' in browser ? browser.missing : undefined
}
const reason = notRun()

/** Width of the list of sessions, in pixels. */
const SIDEBAR = 281
const PROMPT = 'Make a plan from notes.md.'
const TEST_TIMEOUT_MS = 90_000

describe.skipIf(reason !== undefined)(
  `in the web UI${reason === undefined ? '' : ` (not run: ${reason})`}`,
  () => {
    let home: ScratchHome
    let model: ScriptedModel
    let web: DshWeb
    let page: Page
    let session: string

    /** One session with an instruction update, a notice and a coverage line, and both commands. */
    beforeAll(async () => {
      home = scratchHome('browser')
      const workspace = home.makeWorkspace({
        'AGENTS.md': 'Answer in rhyme.\n',
        'notes.md': 'Ship on Monday.\n',
      })
      const notes = join(workspace, 'notes.md')
      model = await startScriptedModel(
        inSteps(
          callRead(notes),
          () => {
            writeFileSync(notes, 'Ship on Friday.\n')
            writeFileSync(join(workspace, 'AGENTS.md'), 'Answer in prose.\n')
            return callBash('true')
          },
          () => {
            renameSync(workspace, `${workspace}.away`)
            cpSync(`${workspace}.away`, workspace, { recursive: true, preserveTimestamps: true })
            return callRead(notes)
          },
          say('The plan is for Friday.'),
        ),
      )
      await installBundle({ profile: 'web', home, tarball: packBundle(home.root) })
      web = await startWeb({ cwd: workspace, env: home.runEnv(model.baseURL) })
      session = await web.createSession(workspace)
      await web.prompt(session, PROMPT)
      await web.command(session, '/workspace')
      await web.command(session, '/instructions')
      if ('missing' in browser) throw new Error(browser.missing)
      page = await openBrowser(browser.path, { width: 1100, height: 960 })
      await openSession(page, web.url)
    }, TEST_TIMEOUT_MS)

    afterAll(async () => {
      await page?.close()
      await web?.stop()
      await model?.close()
      home?.remove()
    })

    it('a collapsed row says what it is about', async () => {
      expect(await rows(page)).toEqual(
        expect.arrayContaining([
          'AGENTS.md',
          'dsh-live-workspace modified "notes.md"',
          'dsh-live-workspace watching is limited: the workspace directory was moved, replaced or removed',
        ]),
      )
    })

    it('an opened row shows the text as the model reads it, line by line', async () => {
      const notice = await opened(page, 'modified "notes.md"')
      expect(notice).toContain("Workspace changes outside this session's recorded file operations.")
      expect(notice.split('\n')).toEqual(expect.arrayContaining(['  -Ship on Monday.', '  +Ship on Friday.']))
      expect(await opened(page, 'watching is limited')).toContain('cannot be followed completely')
      await picture(page, 'web-notice.png')
    })

    it('an opened instruction row names the file and what became of it', async () => {
      const update = await openedLast(page, 'AGENTS.md')
      expect(update).toContain('Answer in prose.')
      expect(update).toContain('AGENTS.md')
    })

    it('a status command has a useful first line and keeps its layout when opened', async () => {
      const [workspace, instructions] = await commandCards(page)
      expect(workspace).toMatch(/Watching: (live|degraded|starting), 1 file seen, /)
      expect(workspace).toContain('\nRoot: "')
      expect(instructions).toMatch(/Instruction files: 1 in force, 0 not, as of the last request/)
      await picture(page, 'web-status.png')
    })
  },
)

/** Finds the leaf elements with this text. */
const LEAVES = `const leaves = (text) => [...document.querySelectorAll('*')].filter(
  (element) => element.children.length === 0 && element.textContent.trim() === text)`

async function press(page: Page, text: string): Promise<void> {
  await page.until(
    `(() => { ${LEAVES}; return leaves(${JSON.stringify(text)}).length > 0 })()`,
    `"${text}" is shown`,
  )
  await page.evaluate(`(() => { ${LEAVES}; leaves(${JSON.stringify(text)})[0].click() })()`)
}

async function openSession(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await press(page, 'Continue')
  await press(page, 'Ungrouped')
  await press(page, PROMPT)
  await page.until(`document.querySelectorAll('[data-context-source]').length >= 4`, 'the conversation')
}

const ROWS = `[...document.querySelectorAll('[data-context-source]')]`

/** Producer and summary of each row of injected context, on one line. */
const rows = async (page: Page): Promise<unknown> =>
  page.evaluate(
    `${ROWS}.map((row) => [row.textContent, row.parentElement.querySelector('[data-context-summary]')?.textContent]
      .filter(Boolean).join(' '))`,
  )

const openRow = async (page: Page, find: string): Promise<string> => {
  const index = Number(await page.evaluate(`${ROWS}.map((row) => row.parentElement.textContent).${find}`))
  await page.evaluate(`${ROWS}[${index}].click()`)
  const body = `${ROWS}[${index}].closest('[class*=root]').querySelector('[data-context-injection-body]')`
  await page.until(`${body} !== null`, 'the row is open')
  return String(await page.evaluate(`${body}.innerText`))
}

const opened = async (page: Page, summary: string): Promise<string> =>
  openRow(page, `findIndex((text) => text.includes(${JSON.stringify(summary)}))`)

const openedLast = async (page: Page, label: string): Promise<string> =>
  openRow(page, `findLastIndex((text) => text.endsWith(${JSON.stringify(label)}))`)

/** Texts of the cards of the two commands, opened. */
async function commandCards(page: Page): Promise<string[]> {
  const texts: string[] = []
  for (const name of ['workspace', 'instructions']) {
    await press(page, name)
    const found = `[...document.querySelectorAll('[data-variant="others"] pre')].map((pre) => pre.innerText)[${texts.length}]`
    await page.until(`${found} !== undefined`, `the card of /${name} is open`)
    texts.push(String(await page.evaluate(found)))
  }
  return texts
}

/** Pictures for the documentation are taken again when they are asked for. */
async function picture(page: Page, name: string): Promise<void> {
  if (process.env['LIVE_WORKSPACE_PICTURES'] !== '1') return
  writeFileSync(join(checkout, 'docs', 'images', name), await page.screenshot(SIDEBAR))
}
