/**
 * Which backend watches.
 *
 * @module dsh-live-workspace/watch/backends
 */
import type { WatchConfig } from '../config.ts'
import { chokidarBackend } from './chokidar.ts'
import type { BackendFactory } from './contract.ts'
import { nativeBackend, type NativeParts } from './native/backend.ts'
import { hasNativeBackend } from './platform.ts'

/**
 * The backend that a configuration asks for.
 * @param parts - what the native backend needs.
 */
export const backendFor = ({ backend }: Pick<WatchConfig, 'backend'>, parts: NativeParts): BackendFactory =>
  backend === 'native' || (backend === 'auto' && hasNativeBackend()) ? nativeBackend(parts) : chokidarBackend
