import { FILE_HISTORY_ROWS_AT_ONCE, FILE_HISTORY_ROWS_PER_SWEEP } from "../../../../common/limits.ts";
import { isInside } from "../../../../common/paths.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FormerFile } from "./former.ts";
import type { HistoryStore } from "./store.ts";

interface Purged {
  /** A former content, or a removed folder. */
  readonly top: FormerFile;
  readonly signal?: AbortSignal | undefined;
}

/** Purges a former content, or a removed folder with everything below it that the same removal took. */
export class RemovalPurge {
  readonly #history: Pick<HistoryStore, "read" | "purge">;
  readonly #principal: Principal;
  readonly #with: Purged;

  constructor(history: Pick<HistoryStore, "read" | "purge">, principal: Principal, purged: Purged) {
    this.#history = history;
    this.#principal = principal;
    this.#with = purged;
  }

  /** Everything that is purged besides `top`, in parts and in no order. */
  async *below(): AsyncGenerator<readonly FormerFile[]> {
    const { top, signal } = this.#with;
    if (top.entry.content) return;
    const where = [{ kind: "equals", column: "removal", values: [top.removal] }] as const;
    for await (const page of this.#history.read(this.#principal, where, signal))
      yield page.filter((one) => this.#isBelow(one));
  }

  /**
   * Returns the number of contents. The folder itself comes last, so a repetition purges what an interrupted call left.
   */
  async run(): Promise<number> {
    const { top } = this.#with;
    let contents = top.entry.content ? 1 : 0;
    for (let some = await this.#some(); some.length > 0; some = await this.#some()) {
      for (let from = 0; from < some.length; from += FILE_HISTORY_ROWS_AT_ONCE) {
        this.#with.signal?.throwIfAborted();
        await this.#history.purge(this.#principal, some.slice(from, from + FILE_HISTORY_ROWS_AT_ONCE));
      }
      contents += some.filter(({ entry }) => entry.content).length;
    }
    await this.#history.purge(this.#principal, [top]);
    return contents;
  }

  /** A read whose rows are removed meanwhile could leave out others, so the purge comes after it. */
  async #some(): Promise<readonly FormerFile[]> {
    const some: FormerFile[] = [];
    for await (const page of this.below()) {
      some.push(...page);
      if (some.length >= FILE_HISTORY_ROWS_PER_SWEEP) break;
    }
    return some;
  }

  #isBelow({ key, removal, entry }: FormerFile): boolean {
    const { top } = this.#with;
    return (
      key !== top.key &&
      removal === top.removal &&
      entry.space === top.entry.space &&
      isInside(top.entry.fullname, entry.fullname)
    );
  }
}
