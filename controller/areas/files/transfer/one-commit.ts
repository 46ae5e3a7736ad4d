import { AppError, isAppError } from "../../../../common/errors.ts";
import type { Stamp } from "../../../../common/revisions.ts";
import type { Retry } from "../../../store/calls/retry.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore, KvTxn } from "../../../store/kv.ts";
import type { AlsoInCommit } from "../../../store/also-in-commit.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Place } from "../names.ts";
import { stampColumn, type FileStore } from "../store.ts";
import type { ChangeRequest, Condition, Now, Timing, UsableContent } from "./change-request.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly store: FileStore;
  readonly retry: Retry;
}

/** Changes that are one commit of a store with `spansSeams`. */
export class OneCommitWrites {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * Makes a new small file by one commit: decision, row and content. False if another change came first. `undefined`, and
   * nothing is done, if the change takes several commits.
   */
  async make(principal: Principal, { kv, sequences }: Now, wanted: Wanted): Promise<boolean | undefined> {
    const { stores, store, retry } = this.#with;
    const { entries, stamp, kept, further, inCommit } = wanted;
    const change = inOneCommit(wanted);
    if (change === undefined || kept?.bytes === undefined) return undefined;
    const { objects } = await stores.tenant(principal.tenant);
    if (objects.spansSeams !== true) return undefined;
    const keys = [...sequences.keys()];
    const also = new CommitOutcome(
      {
        if: [...keys.map((key) => ({ key, revision: sequences.get(key) ?? 0 })), ...(further ? [further] : [])],
        then: keys.map((key) => ({ kind: "put", key, value: encodeJson({ change: stamp.revision }) })),
      },
      { digest: kept.held.digest, owner: kept.held.mark, bytes: kept.bytes },
    );
    const createdMs = entries[0]?.createdMs ?? stamp.atMs;
    const made = { place: change.place, row: { ...change.row, ...stampColumn(stamp) }, createdMs };
    try {
      await retry.run(() => store.make(principal, made, { also, inCommit }));
      kept.use();
      return true;
    } catch (error) {
      if (isAppError(error, "unknown_outcome")) kept.use();
      if (also.refusal === undefined) throw error;
    }
    const isDone = (await isMade({ kv, retry }, keys, stamp)) || (await this.#isThere(principal, change.place, kept));
    if (isDone) kept.use();
    else if (also.refusal === "in doubt") throw heldUp();
    return isDone;
  }

  async #isThere(principal: Principal, place: Place, { held }: UsableContent): Promise<boolean> {
    const { store, retry } = this.#with;
    const entry = await retry.run(() => store.find(principal, place));
    return entry?.content?.mark === held.mark;
  }
}

/** True if a change with that stamp was decided: the sequence of its place, the first of the keys, tells it. */
export async function isMade(
  { kv, retry }: { readonly kv: KvStore; readonly retry: Retry },
  [key = ""]: readonly string[],
  { revision }: Stamp,
): Promise<boolean> {
  const entry = await retry.run(() => kv.get(key));
  return entry !== undefined && decodeStored<{ readonly change?: string }>(entry.value).change === revision;
}

interface Wanted extends Timing, Pick<ChangeRequest, "kept" | "inCommit"> {
  readonly further: Condition | undefined;
}

/**
 * The change, if it makes one entry and nothing else has to be written with it: a content that it replaces is kept by the
 * history, and a file that is searched is indexed anew.
 */
function inOneCommit({ places, entries: [before], changes: [change, second] }: Timing) {
  if (places.length > 1 || change === undefined || second !== undefined || "removed" in change) return undefined;
  return change.isWhole && change.replaced === undefined && !before?.indexed ? change : undefined;
}

/** Writes in the commit of a row, and how their last attempt ended. */
class CommitOutcome implements AlsoInCommit {
  readonly kv: KvTxn;
  readonly content: NonNullable<AlsoInCommit["content"]>;
  /** Present if a condition did not hold. In doubt: an earlier attempt may have changed what the condition is about. */
  refusal: "in doubt" | "certain" | undefined;
  #hasFailed = false;

  constructor(kv: KvTxn, content: NonNullable<AlsoInCommit["content"]>) {
    this.kv = kv;
    this.content = content;
  }

  unmet(): void {
    this.refusal = this.#hasFailed ? "in doubt" : "certain";
  }

  failed(): void {
    this.#hasFailed = true;
  }
}

export function heldUp(): AppError {
  return new AppError("unknown_outcome", "This controller was held up. Read the file to see if it was written.");
}
