import type { HeldContent } from "../entries.ts";

/** A content that is in the store under a new mark, before a file names it. */
export class KeptContent {
  readonly held: HeldContent;
  readonly size: number;
  readonly #unmark: (held: HeldContent) => Promise<void>;
  #isUsed = false;

  constructor(held: HeldContent, size: number, unmark: (held: HeldContent) => Promise<void>) {
    this.held = held;
    this.size = size;
    this.#unmark = unmark;
  }

  /** Call it before the write that names the content: from then on a file may name it, even if the write fails. */
  use(): void {
    this.#isUsed = true;
  }

  /** Removes the mark, unless the content is used. */
  async release(): Promise<void> {
    if (!this.#isUsed) await this.#unmark(this.held);
  }
}
