import { AppError, isAppError } from "../../../common/errors.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvOperation, KvStore } from "../../store/kv.ts";
import type { IndexPass } from "./indexstates.ts";
import type { Patience } from "./patience.ts";

/** Which controller fills indexes, under its lease. */
const CLAIM_KEY = "objectindexing/claim";
/** Passes by class number: those under way, and those that cannot be finished. */
const PASSES_PREFIX = "objectindexing/pass/";

/** The right to fill indexes, as long as the entry lives. */
export interface Claim {
  readonly createRevision: number;
}

/** How far filling has got, and who does it, as all controllers know it. */
export class IndexPasses {
  readonly #kv: KvStore;
  readonly #patience: Patience;

  constructor(kv: KvStore, patience: Patience) {
    this.#kv = kv;
    this.#patience = patience;
  }

  /** Undefined when another controller has it: then this resolves when it has not any more, or the signal fires. */
  async claim(lease: string, signal: AbortSignal): Promise<Claim | undefined> {
    const put = await this.#patience.repeat(() => this.#kv.put(CLAIM_KEY, encodeJson({}), { ifRevision: 0, lease }));
    if (put.ok) return { createRevision: put.revision };
    // An attempt whose answer was lost.
    if (put.current?.lease === lease) return put.current;
    if (put.current !== undefined) await this.#gone(put.current.revision, signal);
    return undefined;
  }

  async release(claim: Claim): Promise<void> {
    try {
      await this.#write({ kind: "delete", key: CLAIM_KEY }, claim);
    } catch (error) {
      // It goes with the lease.
      if (!(error instanceof AppError)) throw error;
    }
  }

  all(): Promise<IndexPass[]> {
    return this.#patience.repeat(async () => {
      const passes: IndexPass[] = [];
      for await (const entry of entriesUnder(this.#kv, PASSES_PREFIX))
        passes.push(decodeStored<IndexPass>(entry.value));
      return passes;
    });
  }

  /** `AppError("unavailable")` when the claim is over: then somebody else goes on. */
  keep(pass: IndexPass, claim: Claim): Promise<void> {
    return this.#write({ kind: "put", key: `${PASSES_PREFIX}${pass.cid}`, value: encodeJson(pass) }, claim);
  }

  /** The same. */
  forget(pass: IndexPass, claim: Claim): Promise<void> {
    return this.#write({ kind: "delete", key: `${PASSES_PREFIX}${pass.cid}` }, claim);
  }

  async #write(operation: KvOperation, { createRevision }: Claim): Promise<void> {
    const { ok } = await this.#patience.repeat(() =>
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
