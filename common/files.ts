/**
 * The disk, for code that depends on what survives a power cut; `node:fs/promises` implements it. Written data is safe
 * after its file is synced, a name after its folder is synced (`open(folder, "r")`, `sync`). Until then any part may be
 * lost.
 */
export interface Files {
  open(path: string, flags: string, mode?: number): Promise<OpenFile>;
  readFile(path: string): Promise<Uint8Array>;
  readdir(path: string): Promise<string[]>;
  /** Returns the first folder that was made; `undefined` if all existed. */
  mkdir(path: string, options: { readonly recursive: true; readonly mode?: number }): Promise<string | undefined>;
  rename(from: string, to: string): Promise<void>;
  link(existing: string, path: string): Promise<void>;
  rm(path: string, options?: { readonly force?: boolean; readonly recursive?: boolean }): Promise<void>;
  stat(path: string): Promise<{ readonly size: number }>;
}

export interface OpenFile {
  /** May read fewer bytes than the file has. */
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
  /** May write fewer bytes than it is given. */
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
