/**
 * The disk as the programs see it where an answer depends on it; `node:fs/promises` is one as it stands. What was
 * written is safe from a power cut when the file was synced, a name when its folder was (`open(folder, "r")`, `sync`);
 * until then any part may be lost.
 */
export interface Files {
  open(path: string, flags: string, mode?: number): Promise<OpenFile>;
  readFile(path: string): Promise<Uint8Array>;
  readdir(path: string): Promise<string[]>;
  /** The first folder that was made; undefined when all were there. */
  mkdir(path: string, options: { readonly recursive: true; readonly mode?: number }): Promise<string | undefined>;
  rename(from: string, to: string): Promise<void>;
  link(existing: string, path: string): Promise<void>;
  rm(path: string, options?: { readonly force?: boolean; readonly recursive?: boolean }): Promise<void>;
  stat(path: string): Promise<{ readonly size: number }>;
}

export interface OpenFile {
  /** May read less than is there. */
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
  /** May write less than it is given. */
  write(
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesWritten: number }>;
  truncate(bytes: number): Promise<void>;
  datasync(): Promise<void>;
  sync(): Promise<void>;
  stat(): Promise<{ readonly size: number }>;
  close(): Promise<void>;
}
