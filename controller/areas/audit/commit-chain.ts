import type { Chain, AuditRecord } from "./chain.ts";
import { rowOf } from "./record-rows.ts";
import type { AuditEntry, EntryInCommit } from "./types.ts";

interface CommitChainOptions {
  readonly newChain: () => Chain;
  readonly nowMs: () => number;
  /** Takes the records of one write after they are durable, in the order of the chain. */
  readonly stored: (records: readonly AuditRecord[]) => void;
}

/** Entries that were chained in a commit. */
interface OpenEntries {
  readonly records: readonly AuditRecord[];
  /** `undefined` until the outcome of the commit is known. */
  isDurable?: boolean;
}

interface Given {
  readonly class: string;
  /** Asked inside the commit. */
  readonly isAllowed: () => boolean;
}

/**
 * The run of one tenant whose entries are chained by several writes: in the commits of changes, and by writes of its
 * own. An entry is chained only to entries of its own commit and to durable ones. So a failed commit leaves no gap in
 * the run. After a failure a new run begins.
 */
export class CommitChain {
  readonly #options: CommitChainOptions;
  #chain: Chain;
  /** In the order of the chain: those in a commit whose outcome is not known yet, and all after them. */
  readonly #open: OpenEntries[] = [];
  /** True for the rest of the turn of the event loop in which a commit made the open entries. */
  #isSameCommit = false;
  /** True while a write outside of commits is made. */
  #isAlone = false;
  #onClosed: (() => void)[] = [];

  constructor(options: CommitChainOptions) {
    this.#options = options;
    this.#chain = options.newChain();
  }

  /**
   * Chains the entries when the commit asks for them, unless entries of another write are open then. Each attempt of a
   * write chains them anew, so a repetition is not without them.
   */
  inCommit(entries: readonly AuditEntry[], { class: path, isAllowed }: Given): EntryInCommit {
    let open: OpenEntries | undefined;
    let isOver = false;
    return {
      class: path,
      isDurable: () => open?.isDurable === true,
      records: (encode) => {
        // A commit may run after the caller's deadline. Its outcome would not be reported.
        const isGiven = isOver || (open !== undefined && open.isDurable !== false);
        if (isGiven || !isAllowed() || !this.#isJoinable()) return [];
        const records = this.#chain.link(entries, this.#options.nowMs());
        const stored = encodedBy(encode, records);
        if (stored === undefined) return [];
        this.#opened((open = { records }));
        return stored;
      },
      failed: () => this.#closed(open, false),
      ended: (error) => {
        isOver = true;
        this.#closed(open, error === undefined);
      },
    };
  }

  /** Chains the entries and writes them, while no commit chains any. */
  async alone(
    entries: readonly AuditEntry[],
    write: (records: readonly AuditRecord[]) => Promise<void>,
  ): Promise<void> {
    while (this.#open.length > 0) await new Promise<void>((resolve) => this.#onClosed.push(resolve));
    this.#isAlone = true;
    const records = this.#chain.link(entries, this.#options.nowMs());
    try {
      await write(records);
      this.#chain.kept(records);
      this.#options.stored(records);
    } catch (error) {
      this.#fail();
      throw error;
    } finally {
      this.#isAlone = false;
    }
  }

  #isJoinable(): boolean {
    return !this.#isAlone && (this.#open.length === 0 || this.#isSameCommit);
  }

  #opened(entries: OpenEntries): void {
    this.#chain.kept(entries.records);
    this.#open.push(entries);
    this.#isSameCommit = true;
    queueMicrotask(() => (this.#isSameCommit = false));
  }

  #closed(entries: OpenEntries | undefined, isDurable: boolean): void {
    if (entries === undefined || entries.isDurable !== undefined) return;
    entries.isDurable = isDurable;
    if (!isDurable) this.#fail();
    while (this.#open[0]?.isDurable !== undefined) {
      const { records, isDurable: isStored } = this.#open.shift()!;
      if (isStored) this.#options.stored(records);
    }
    if (this.#open.length === 0) for (const resolve of this.#onClosed.splice(0)) resolve();
  }

  /** It is unknown whether the last entries are stored, so no entry may be chained to them. */
  #fail(): void {
    this.#chain = this.#options.newChain();
  }
}

/** `undefined` if the entries cannot be stored: a write of their own then reports the reason. */
function encodedBy(
  encode: Parameters<EntryInCommit["records"]>[0],
  records: readonly AuditRecord[],
): ReturnType<EntryInCommit["records"]> | undefined {
  try {
    return encode(records.map(rowOf));
  } catch {
    return undefined;
  }
}
