import { describeSessions } from './random-sessions.ts'

describeSessions([3, 4])
