import { describeSessions } from './random-sessions.ts'

describeSessions([2])
