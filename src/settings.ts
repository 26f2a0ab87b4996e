/**
 * The section of the user's settings document, where the host has settings at all: the same keys as the
 * row, laid over it, and applied while sessions live.
 *
 * @module dsh-live-workspace/settings
 */
import type { Context } from '@deepseek-ai/cordis'
import type { SettingsNamespace } from '@deepseek-ai/dsh-settings'
import z from '@deepseek-ai/schemastery'
import { checkConfig, type LiveWorkspaceConfig } from './config.ts'
import { messageOf } from './errors.ts'
import type { Reporter } from './log.ts'
import type { Mount } from './mount.ts'
import type { WorkspaceStatus } from './status/workspace.ts'

/** Name of the section. */
export const SECTION = 'live-workspace'

/**
 * Follow the section.
 * @param row - the settings of the row, which the section is laid over.
 * @returns where the settings in force come from, and what was refused last.
 */
export const followSettings = (
  ctx: Context,
  row: LiveWorkspaceConfig,
  { mount, reporter }: { readonly mount: Mount; readonly reporter: Reporter },
): (() => WorkspaceStatus['settings']) => {
  /** Whether the document has the section, where there is a document. */
  let given = (): boolean => false
  let refused: string | undefined

  const refuse = (error: unknown, remedy: string): void => {
    refused = messageOf(error)
    reporter.once(`the section "${SECTION}" of the settings is not applied: ${refused}`, remedy)
  }

  ctx.inject(['settings'], (inner) => {
    /** Once registered, the host keeps the last good value of a section; until then that is the row's. */
    let registered = false
    const resolve = (raw: unknown): LiveWorkspaceConfig => {
      try {
        const config = checkConfig(raw)
        refused = undefined
        return config
      } catch (error) {
        refuse(error, 'correct the value; until then the last good settings stay in force')
        if (registered) throw error
        return row
      }
    }
    try {
      // The brand is a check of the spelling, which this name passes.
      const scope = inner.settings.register(SECTION as SettingsNamespace, z.transform(z.any(), resolve), {
        base: row,
      })
      registered = true
      inner.effect(() => {
        given = () => inner.settings.describe().some(({ ns, user }) => ns === SECTION && user !== undefined)
        return () => {
          given = () => false
          mount.reconfigure(row)
        }
      }, 'live-workspace: settings')
      scope.watch((next) => mount.reconfigure(next))
      mount.reconfigure(scope.get())
    } catch (error) {
      // Not even a group of keys, so the host accepts no registration.
      refuse(error, 'make it a group of keys or remove it, and start the harness again')
    }
  })

  return () => ({ source: given() ? 'settings' : 'row', ...(refused === undefined ? {} : { refused }) })
}
