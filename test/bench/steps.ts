/** One thing that another process does to the file system. Paths are absolute. */
export type Step =
  /** New content, in place; the file is made if it is missing. */
  | { readonly do: 'write'; readonly path: string }
  | { readonly do: 'append'; readonly path: string }
  /** New content in a temporary file beside it, renamed over it. */
  | { readonly do: 'replace'; readonly path: string }
  /** A file without content. */
  | { readonly do: 'empty'; readonly path: string }
  | { readonly do: 'unlink'; readonly path: string }
  /** A directory, with its missing parents. */
  | { readonly do: 'mkdir'; readonly path: string }
  /** A file or a directory with all that is in it. */
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'rename'; readonly path: string; readonly to: string }
