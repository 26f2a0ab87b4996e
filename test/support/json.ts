/** Readers for values that came over a wire or out of a file: each checks the shape or says what is wrong. */

export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${what} is not JSON: ${text.slice(0, 200)}`, { cause })
  }
}

export function objectOf(value: unknown, what: string): JsonObject {
  if (!isObject(value)) throw new Error(`${what} is not an object: ${JSON.stringify(value)}`)
  return value
}

export function arrayOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not a list: ${JSON.stringify(value)}`)
  return value
}

export function stringOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new Error(`${what} is not a string: ${JSON.stringify(value)}`)
  return value
}
