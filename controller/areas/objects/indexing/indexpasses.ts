import { AppError, isAppError } from "../../../../common/errors.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvOperation, KvStore } from "../../../store/kv.ts";
import type { Retry } from "../../../store/calls/retry.ts";
import type { IndexPass } from "../definitions/indexstates.ts";

/** Entry of the controller that fills indexes, under its lease. */
const CLAIM_KEY = "objectindexing/claim";
/** Prefix of the passes, by class number: the current ones, and those that cannot be finished. */
const PASSES_PREFIX = "objectindexing/pass/";

/** The right to fill indexes, while the entry exists. */
export interface Claim {
  readonly createRevision: number;
}

/** Stored progress of the filling of indexes, and the claim of the controller that does it. */
export class IndexPasses {
  readonly #kv: KvStore;
  readonly #retry: Retry;

  constructor(kv: KvStore, retry: Retry) {
    this.#kv = kv;
    this.#retry = retry;
  }

  /**
   * Undefined when another controller has the claim. In that case it resolves when that controller lost the claim, or
   * when the signal fires.
   */
  async claim(lease: string, signal: AbortSignal): Promise<Claim | undefined> {
    const put = await this.#retry.run(() => this.#kv.put(CLAIM_KEY, encodeJson({}), { ifRevision: 0, lease }));
    if (put.ok) return { createRevision: put.revision };
    // An earlier attempt succeeded, but its answer was lost.
    if (put.current?.lease === lease) return put.current;
    if (put.current !== undefined) await this.#gone(put.current.revision, signal);
    return undefined;
  }

  async release(claim: Claim): Promise<void> {
    try {
      await this.#write({ kind: "delete", key: CLAIM_KEY }, claim);
    } catch (error) {
      // The claim ends with the lease.
      if (!(error instanceof AppError)) throw error;
    }
  }

  all(): Promise<IndexPass[]> {
    return this.#retry.run(async () => {
      const passes: IndexPass[] = [];
      for await (const entry of entriesUnder(this.#kv, PASSES_PREFIX))
        passes.push(decodeStored<IndexPass>(entry.value));
      return passes;
    });
  }

  /** `AppError("unavailable")` when the claim has ended. Another controller continues then. */
  keep(pass: IndexPass, claim: Claim): Promise<void> {
    return this.#write({ kind: "put", key: `${PASSES_PREFIX}${pass.cid}`, value: encodeJson(pass) }, claim);
  }

  /** `AppError("unavailable")` when the claim has ended. */
  forget(pass: IndexPass, claim: Claim): Promise<void> {
    return this.#write({ kind: "delete", key: `${PASSES_PREFIX}${pass.cid}` }, claim);
  }

  async #write(operation: KvOperation, { createRevision }: Claim): Promise<void> {
    const { ok } = await this.#retry.run(() =>
      this.#kv.txn({ if: [{ key: CLAIM_KEY, createRevision }], then: [operation] }),
    );
    if (!ok) throw new AppError("unavailable", "Another controller goes on with the indexes.");
  }

  async #gone(sinceRevision: number, signal: AbortSignal): Promise<void> {
    try {
      for await (const events of this.#kv.watch(CLAIM_KEY, { sinceRevision, signal })) {
        if (events.some((event) => event.kind === "delete")) return;
      }
    } catch (error) {
      if (!isAppError(error, "compacted")) throw error;
    }
  }
}
