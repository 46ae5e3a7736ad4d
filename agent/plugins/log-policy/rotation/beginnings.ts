import { isBeginningOf } from "./content.ts";
import type { FileLook } from "../folder.ts";

interface Pair {
  readonly at: FileLook;
  readonly other: FileLook;
  /** Length of the beginning that both have in common. */
  readonly bytes: number;
}

/** Remembers how long the common beginning of two files is, so that each byte is compared once. */
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
   * Continues with pairs whose first file has grown. If the second file is truncated, the length found before is kept:
   * it proves which part of the first file is a copy.
   */
  async goOn(root: string): Promise<void> {
    for (const [key, pair] of this.#known) {
      const compared = await isBeginningOf(root, { ...pair, known: pair.bytes });
      if (compared && compared.bytes > pair.bytes) this.#set(key, { ...pair, bytes: compared.bytes });
    }
  }

  /** Length of the common beginning that was found for two files, by their ids. */
  provenBytes(id: string, otherId: string): number {
    return this.#known.get(keyOf(id, otherId))?.bytes ?? 0;
  }

  /** Forgets the pairs that were not compared since the last call. */
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
