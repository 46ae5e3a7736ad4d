import type { HeldContent } from "../entries.ts";

/** The record of a content that is marked before a file names it; see `Arrivals`. */
interface ArrivalRecord {
  /** The decision of a change that names the content has this condition, and removes the key. */
  readonly condition: { readonly key: string; readonly revision: number };
  /** Removes the mark and the record. */
  readonly remove: () => Promise<void>;
  /** Leaves what is still recorded to maintenance. */
  readonly letGo: () => void;
}

/** A content that is in the store under a new mark, before a file names it. */
export class KeptContent {
  readonly held: HeldContent;
  readonly size: number;
  readonly #record: ArrivalRecord;
  #isUsed = false;

  constructor(held: HeldContent, size: number, record: ArrivalRecord) {
    this.held = held;
    this.size = size;
    this.#record = record;
  }

  get condition(): ArrivalRecord["condition"] {
    return this.#record.condition;
  }

  /** Call it when the change that names the content is decided, and when that is unknown. */
  use(): void {
    this.#isUsed = true;
  }

  /** Removes the mark, unless the content is used. Call it when no change can be decided with it any more. */
  async release(): Promise<void> {
    try {
      if (!this.#isUsed) await this.#record.remove();
    } finally {
      this.#record.letGo();
    }
  }
}
