import { setImmediate } from "node:timers/promises";
import { LOG_FILES_MAX } from "../../../../common/limits.ts";

/**
 * A position among the changes of a name. One that is taken before a look is followed by all that the look does not
 * show.
 */
export interface Position {
  /** Number of the watch that reports them. */
  readonly watch: number;
  readonly changes: number;
}

/**
 * How often a name was given to another file, as far as the system told: whether another life may have come and gone
 * between two looks.
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

  /** A report was incomplete: no position in that folder holds any more. */
  noteUnknown(folder: string): void {
    if (this.#watches.has(folder)) this.watch(folder);
  }

  /** Other names are forgotten: nothing has a position in them. */
  beginLook(rotations: ReadonlySet<string>): void {
    for (const path of this.#changes.keys()) if (!rotations.has(path)) this.#changes.delete(path);
    this.#beforeLook = { changes: new Map(this.#changes), watches: new Map(this.#watches) };
  }

  /** The position before the present look. Undefined where the system reports nothing. */
  beforeLook(path: string): Position | undefined {
    const watch = this.#beforeLook?.watches.get(folderOf(path));
    return watch === undefined ? undefined : { watch, changes: this.#beforeLook?.changes.get(path) ?? 0 };
  }

  now(path: string): Position | undefined {
    const watch = this.#watches.get(folderOf(path));
    return watch === undefined ? undefined : { watch, changes: this.#changes.get(path) ?? 0 };
  }

  /** Changes of that name since. Undefined when there may have been others. */
  since(position: Position | undefined, path: string): number | undefined {
    const now = this.now(path);
    // Other systems report several changes at once.
    const isCounted = process.platform === "linux" && now && now.watch === position?.watch;
    return isCounted ? now.changes - position.changes : undefined;
  }
}

/** Resolves when all earlier changes are reported. */
export async function allTold(): Promise<void> {
  // The first may end a round whose events were asked for before: `switches.test.ts` fails with one.
  await setImmediate();
  await setImmediate();
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
