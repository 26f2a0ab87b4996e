import { overlay, runDsh, type ScratchHome } from './dsh.ts'
import type { Outcome } from './process.ts'
import { promptOf, startScriptedModel, type ModelRequest, type Script } from './scripted-model.ts'
import { ourMessages, sessionLog, type OurMessage, type SessionLog } from './session-log.ts'

export interface Turn {
  readonly outcome: Outcome
  readonly requests: readonly ModelRequest[]
  readonly log: SessionLog
  readonly told: readonly OurMessage[]
}

/** Runs one `dsh` process to its end; the prompt has to differ from that of every other agent. */
export type RunAgent = (prompt: string, script: Script) => Promise<Turn>

/** Lends a model on which any number of headless agents can run at once, each with a script of its own. */
export async function withAgents<T>(
  { home, workspace }: { readonly home: ScratchHome; readonly workspace: string },
  body: (runAgent: RunAgent) => Promise<T>,
): Promise<T> {
  const scripts = new Map<string, Script>()
  const model = await startScriptedModel((request) => {
    const script = scripts.get(promptOf(request))
    if (script === undefined) throw new Error(`no script for the prompt "${promptOf(request)}"`)
    return script(request)
  })
  const runAgent: RunAgent = async (prompt, script) => {
    scripts.set(prompt, script)
    const args = ['--profile', 'headless', '--patch', overlay, prompt]
    const outcome = await runDsh({ args, cwd: workspace, env: home.runEnv(model.baseURL) })
    const requests = model.conversation().filter((request) => promptOf(request) === prompt)
    const session = requests[0]?.session
    if (session === undefined) throw new Error(`dsh asked the model nothing: ${JSON.stringify(outcome)}`)
    const log = sessionLog(home.dshHome, session)
    return { outcome, requests, log, told: ourMessages(log) }
  }
  try {
    return await body(runAgent)
  } finally {
    await model.close()
  }
}
