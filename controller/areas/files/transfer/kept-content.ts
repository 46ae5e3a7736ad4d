import type { HeldContent } from "../entries.ts";

/** The record of a content that is marked before a file names it; see `Arrivals`. */
export interface ArrivalRecord {
  /** The decision of a change that names the content has this condition, and removes the key. */
  readonly condition: { readonly key: string; readonly revision: number };
  /** Removes the mark and the record. */
  readonly remove: () => Promise<void>;
  /** Leaves what is still recorded to maintenance. */
  readonly letGo: () => void;
}

/** A small content that is only in memory. */
export interface BytesInMemory {
  readonly bytes: Uint8Array;
  /** Stores the bytes under the mark of the content. */
  readonly store: () => Promise<ArrivalRecord>;
  /** Gives the memory back. `isUsed`: a file names the content, or may name it. */
  readonly letGo: (isUsed: boolean) => void;
}

/** A content with a new mark, before a file names it: in the store under that mark, or in memory. */
export class KeptContent {
  readonly held: HeldContent;
  readonly size: number;
  readonly #memory: BytesInMemory | undefined;
  #record: ArrivalRecord | undefined;
  #isUsed = false;

  constructor(held: HeldContent, size: number, from: ArrivalRecord | BytesInMemory) {
    this.held = held;
    this.size = size;
    this.#memory = "bytes" in from ? from : undefined;
    this.#record = "bytes" in from ? undefined : from;
  }

  /** The bytes while they are only in memory: a change may store them in its own commit. */
  get bytes(): Uint8Array | undefined {
    return this.#record === undefined ? this.#memory?.bytes : undefined;
  }

  /** Call it after `store`. */
  get condition(): ArrivalRecord["condition"] {
    if (this.#record === undefined) throw new Error("The content is not stored yet.");
    return this.#record.condition;
  }

  /** Stores bytes that are only in memory. */
  async store(): Promise<void> {
    this.#record ??= await this.#memory?.store();
  }

  /** Call it when the change that names the content is decided, and when that is unknown. */
  use(): void {
    this.#isUsed = true;
  }

  /** Removes the mark, unless the content is used. Call it when no change can be decided with it any more. */
  async release(): Promise<void> {
    try {
      if (!this.#isUsed) await this.#record?.remove();
    } finally {
      this.#record?.letGo();
      this.#memory?.letGo(this.#isUsed);
    }
  }
}
