import type { Tree, TreeEntry } from "./tree.ts";

/** A digest that was computed before, by key and version. */
export type KnownDigest = (key: string, version: string) => string | undefined;

export interface ScanOptions {
  readonly isExcluded: (key: string) => boolean;
  readonly known: KnownDigest;
  readonly signal: AbortSignal;
}

/** The bytes of a file, read once. */
export interface Source {
  /** All bytes, if they are few; otherwise `pieces`. */
  readonly whole?: Uint8Array<ArrayBuffer>;
  pieces(): AsyncGenerator<Uint8Array>;
  /** Digest and version of the bytes, after all of them were read. */
  read(): Read;
  /** Digest of the bytes; `undefined` before all of them were read. */
  digestOfAll(): string | undefined;
}

export interface Read {
  readonly digest: string;
  readonly version: string;
  /** False if the file may change again without another version. */
  readonly isSettled: boolean;
}

export interface Written {
  readonly version: string;
  readonly isSettled: boolean;
}

/** The state in which an entry has to be for a change: of this version, `undefined`: absent, or any. */
export type Wanted = { readonly version: string | undefined } | "any";

/**
 * A folder that is compared with another one, local or on the controller. Changes throw `AppError("stale")` if the
 * entry is not as wanted, and have then changed nothing.
 */
export interface Side {
  /** For messages. */
  readonly name: string;
  /** All below the root. `AppError("not_found")` if there is no root. */
  scan(options: ScanOptions): Promise<Tree>;
  /** Reads a file for its digest. `AppError("stale")` if it is not as the scan found it. */
  digest(entry: TreeEntry, signal: AbortSignal): Promise<Read>;
  /** The reason why the path cannot be stored on this side; `undefined` if it can. */
  refusal(path: string): string | undefined;
  /** True if names that differ only in case are different files. */
  isCaseSensitive(): Promise<boolean>;
  open(entry: TreeEntry, signal: AbortSignal): Promise<Source>;
  write(
    path: string,
    source: Source,
    options: { readonly wanted: Wanted; readonly signal: AbortSignal },
  ): Promise<Written>;
  /** Makes the folder; an existing one stays. The root of an empty path is made with all folders above it. */
  makeFolder(path: string, signal: AbortSignal): Promise<void>;
  remove(entry: TreeEntry, signal: AbortSignal): Promise<void>;
  /** Removes a folder; false if it is not empty. */
  removeFolder(entry: TreeEntry, signal: AbortSignal): Promise<boolean>;
}

export interface SyncOptions {
  readonly source: Side;
  readonly target: Side;
  /** True if the source is the local folder. */
  readonly isUp: boolean;
  /** True if the source wins wherever both sides differ. */
  readonly isForced: boolean;
  /** True if files that the source has no more are removed from the target. */
  readonly isDeleting: boolean;
  /** True: only finds out what would be done. */
  readonly isDry: boolean;
  readonly isExcluded: (key: string) => boolean;
  /** Fires when the work is to end early. Changes under way are given up, and all that is done is in the answer. */
  readonly signal: AbortSignal;
  /** Called as changes are made. */
  readonly progress?: (done: number, of: number) => void;
}
