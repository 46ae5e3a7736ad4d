import { AppError } from "../../../common/errors.ts";
import { FILE_SYNC_ENTRIES_MAX } from "../../../common/limits.ts";

/**
 * A file or folder of one side. Its key is its path below the root in the normal form NFC: some systems store an accent
 * as a character of its own (NFD), and both spellings are the same name to their users.
 */
export interface TreeEntry {
  /** Path below the root as this side spells it. */
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly size: number;
  /** Changes with every change of the entry on this side: the revision, or size, times and inode of a local file. */
  readonly version: string;
  /** SHA-256 of the content in hexadecimal digits. Absent for a folder, and for a file that was not read. */
  readonly digest?: string;
  /** True if the version of a local file identifies its content. */
  readonly isSettled?: boolean;
}

/** An entry that is not synchronised, with the reason. */
export interface LeftOut {
  readonly path: string;
  readonly why: string;
  /** True if it may be synchronised soon. */
  readonly isPassing?: boolean;
}

export function keyOf(path: string): string {
  return path.normalize("NFC");
}

/** Key of the folder; empty for the root. */
export function parentKey(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf("/")));
}

/** Path of `name` in a folder, which is empty for the root. */
export function below(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}

const TWO_NAMES = "there are two such names, which differ only in how an accent is stored";

/** All that one side has below its root. */
export class Tree {
  readonly #entries = new Map<string, TreeEntry>();
  readonly #leftOut = new Map<string, LeftOut[]>();

  get entries(): ReadonlyMap<string, TreeEntry> {
    return this.#entries;
  }

  get leftOut(): readonly LeftOut[] {
    return [...this.#leftOut.values()].flat();
  }

  /** Adds an entry. Two entries with one key are both left out, with all below them. */
  add(entry: TreeEntry): void {
    const key = keyOf(entry.path);
    if (this.isLeftOut(parentKey(key))) return;
    const other = this.#entries.get(key);
    if (other !== undefined) this.leaveOut(other.path, TWO_NAMES);
    if (this.#leftOut.has(key)) this.leaveOut(entry.path, TWO_NAMES);
    else this.#entries.set(key, entry);
    if (this.#entries.size > FILE_SYNC_ENTRIES_MAX)
      throw new AppError("too_large", `There are more than ${FILE_SYNC_ENTRIES_MAX} files and folders.`);
  }

  /** Notes what was found out about a file after the scan. */
  note(key: string, found: Pick<TreeEntry, "digest" | "isSettled">): void {
    const entry = this.#entries.get(key);
    if (entry) this.#entries.set(key, { ...entry, ...found });
  }

  leaveOut(path: string, why: string, isPassing = false): void {
    const key = keyOf(path);
    if (this.isLeftOut(parentKey(key))) return;
    this.#entries.delete(key);
    const one = { path, why, ...(isPassing && { isPassing }) };
    this.#leftOut.set(key, [...(this.#leftOut.get(key) ?? []), one]);
  }

  /** True if the entry, or a folder above it, is left out: nothing is known of it, so nothing is done with it. */
  isLeftOut(key: string): boolean {
    for (let at = key; at !== ""; at = parentKey(at)) if (this.#leftOut.has(at)) return true;
    return false;
  }

  /** The path at which an entry is made: below the folders as this side spells them. */
  pathOf(key: string): string {
    const found = this.#entries.get(key);
    if (found) return found.path;
    const parent = parentKey(key);
    return parent === "" ? key : below(this.pathOf(parent), key.slice(parent.length + 1));
  }
}
