import { setImmediate } from "node:timers/promises";
import { LOG_FILES_MAX } from "../../../../common/limits.ts";

/**
 * A position in the sequence of changes of a name. If it is taken before a scan, all changes that the scan does not see
 * come after it.
 */
export interface Position {
  /** Number of the watch that reports them. */
  readonly watch: number;
  readonly changes: number;
}

/**
 * Counts how often a name was given to another file, by the reports of the operating system. The counts show if another
 * life may have come and gone between two scans.
 */
export class Switches {
  readonly #changes = new Map<string, number>();
  readonly #watches = new Map<string, number>();
  #lastWatch = 0;
  #beforeLook: { changes: ReadonlyMap<string, number>; watches: ReadonlyMap<string, number> } | undefined;

  watch(folder: string): void {
    this.#watches.set(folder, ++this.#lastWatch);
  }

  unwatch(folder: string): void {
    this.#watches.delete(folder);
  }

  note(folder: string, path: string): void {
    if (this.#changes.size >= LOG_FILES_MAX && !this.#changes.has(path)) this.noteUnknown(folder);
    else this.#changes.set(path, (this.#changes.get(path) ?? 0) + 1);
  }

  /** Records that a report was incomplete. All positions in that folder become invalid. */
  noteUnknown(folder: string): void {
    if (this.#watches.has(folder)) this.watch(folder);
  }

  /** Begins a scan. Names that are not in `homes` are forgotten, because no position refers to them. */
  beginLook(homes: ReadonlySet<string>): void {
    for (const path of this.#changes.keys()) if (!homes.has(path)) this.#changes.delete(path);
    this.#beforeLook = { changes: new Map(this.#changes), watches: new Map(this.#watches) };
  }

  /** The position before the current scan. Undefined when the folder is not watched. */
  beforeLook(path: string): Position | undefined {
    const watch = this.#beforeLook?.watches.get(folderOf(path));
    return watch === undefined ? undefined : { watch, changes: this.#beforeLook?.changes.get(path) ?? 0 };
  }

  now(path: string): Position | undefined {
    const watch = this.#watches.get(folderOf(path));
    return watch === undefined ? undefined : { watch, changes: this.#changes.get(path) ?? 0 };
  }

  /** Number of changes of that name since a position. Undefined when it is not known. */
  since(position: Position | undefined, path: string): number | undefined {
    const now = this.now(path);
    // Other systems report several changes as one.
    const isCounted = process.platform === "linux" && now && now.watch === position?.watch;
    return isCounted ? now.changes - position.changes : undefined;
  }
}

/** Resolves when all earlier changes are reported. */
export async function allTold(): Promise<void> {
  // One turn is not enough: its events may have been requested before the call. `switches.test.ts` fails with one.
  await setImmediate();
  await setImmediate();
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
