import { isBeginningOf } from "./content.ts";
import type { FileLook } from "../folder.ts";

interface Pair {
  readonly at: FileLook;
  readonly other: FileLook;
  /** In which both are the same. */
  readonly bytes: number;
}

/** How far files were found to be the beginning of others, so that each byte is compared once. */
export class Beginnings {
  #known = new Map<string, Pair>();
  #asked = new Map<string, Pair>();

  /** True when the second file begins with the whole first one. Undefined when one of them was renamed meanwhile. */
  async isBeginning(root: string, at: FileLook, other: FileLook): Promise<boolean | undefined> {
    const key = keyOf(at.id, other.id);
    const compared = await isBeginningOf(root, { at, other, known: this.#known.get(key)?.bytes ?? 0 });
    if (compared === undefined) return undefined;
    this.#set(key, { at, other, bytes: compared.bytes });
    return compared.same;
  }

  /**
   * Goes on with pairs whose first is growing. What was found stays when the second is cut off: then it is what a copy
   * is proved by.
   */
  async goOn(root: string): Promise<void> {
    for (const [key, pair] of this.#known) {
      const compared = await isBeginningOf(root, { ...pair, known: pair.bytes });
      if (compared && compared.bytes > pair.bytes) this.#set(key, { ...pair, bytes: compared.bytes });
    }
  }

  /** Bytes in which the first was found to be as the second with that inode. */
  provenBytes(id: string, otherId: string): number {
    return this.#known.get(keyOf(id, otherId))?.bytes ?? 0;
  }

  /** Forgets what was not asked for since the last call. */
  endLook(): void {
    this.#known = this.#asked;
    this.#asked = new Map();
  }

  #set(key: string, pair: Pair): void {
    this.#known.set(key, pair);
    this.#asked.set(key, pair);
  }
}

function keyOf(id: string, otherId: string): string {
  return `${id}>${otherId}`;
}
