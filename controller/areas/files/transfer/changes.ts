import { createHash } from "node:crypto";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { KeyedQueue } from "../../../../common/keyed-queue.ts";
import { FILE_CHANGE_ATTEMPTS_MAX, FILE_SEQUENCES, KV_TXN_MAX_OPERATIONS } from "../../../../common/limits.ts";
import { newStamp, type Stamp } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import { Retry } from "../../../store/calls/retry.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import { isTransient } from "../../../store/journal/index.ts";
import type { KvEntry, KvStore } from "../../../store/kv.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { txnOnce } from "../../../store/once.ts";
import { systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { FileEntry, HeldContent } from "../entries.ts";
import { IndexedWrites, type IndexKeeper } from "../search/keeper.ts";
import type { Place } from "../names.ts";
import type { ChangeRequest, Condition, Now, Timing, UsableContent } from "./change-request.ts";
import { heldUp, isMade, OneCommitWrites } from "./one-commit.ts";
import { stampColumn, type FileStore, type RowChange } from "../store.ts";

/** Entries that changes rewrite: `FILE_SEQUENCES` for all files of a tenant, each by the digest of its place. */
const SEQUENCES = "files/sequence/";
/** The change of a place that is decided, until it is in its row. */
const PENDING = "files/pending/";

interface PendingChange extends RowChange {
  readonly ospace: string;
  readonly user: string;
  /** Content whose mark is removed after the write. */
  readonly released?: HeldContent | undefined;
  /** True: the file is moved, so the history does not keep it. */
  readonly isMoved?: true | undefined;
  readonly stamp: Stamp;
}

export interface FileChangesDependencies {
  readonly stores: Stores;
  readonly store: FileStore;
  readonly runtime: Runtime;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
}

/**
 * Changes of single files and folders, one after the other on all controllers. Writes of objects have no conditions, so
 * a change is decided in the KvStore first, as changes of hosts are (decision 47): a transaction stores it on condition
 * that no other change came first. Then it is written to its row, at the time that was chosen before.
 */
export class FileChanges {
  readonly #with: FileChangesDependencies;
  readonly #retry: Retry;
  readonly #queue = new KeyedQueue();
  readonly #indexed: IndexedWrites;
  readonly #oneCommits: OneCommitWrites;

  constructor(dependencies: FileChangesDependencies) {
    this.#with = dependencies;
    this.#retry = new Retry(dependencies.runtime);
    this.#oneCommits = new OneCommitWrites({ ...dependencies, retry: this.#retry });
    this.#indexed = new IndexedWrites(dependencies.store, dependencies.keeper);
  }

  /**
   * Makes the changes that `plan` returns for the present entries, all or none, and returns their revision.
   * `AppError("unknown_outcome")` if they are decided, but not in their rows yet.
   */
  make(principal: Principal, { places, plan, condition, kept, inCommit }: ChangeRequest): Promise<string> {
    const queues = places.map((place) => `${principal.tenant}/${sequenceOf(place)}`);
    return this.#queue.run(queues, async () => {
      for (let attempt = 1; attempt <= FILE_CHANGE_ATTEMPTS_MAX; attempt++) {
        const now = await this.#settled(principal, places);
        if (now === undefined) continue;
        const further = await condition?.();
        const entries = await this.#with.store.get(principal, places);
        const changes = await plan(entries);
        const stamp = newStamp(principal.user, this.#with.runtime);
        const wanted = { places, entries, changes, stamp, kept, further, inCommit };
        const isTogether = await this.#oneCommits.make(principal, now, wanted);
        if (isTogether === true) return stamp.revision;
        if (isTogether === false) continue;
        await kept?.store();
        const pending = await this.#timed(principal, { places, entries, changes, stamp });
        const isMade = await this.#decided(now, { pending, further, stamp, kept });
        if (!isMade && !(kept && (await this.#isNamed(principal, places, kept)))) continue;
        await this.#complete(principal, now.kv, pending);
        return stamp.revision;
      }
      const names = places.map(({ fullname }) => fullname).join(" and ");
      throw new AppError("conflict", `Others change ${names} all the time: nothing was changed.`);
    });
  }

  /** Writes the decided changes that their controllers have not written. Throws if one of them cannot be written now. */
  async finish(tenant: string): Promise<void> {
    const kv = await this.#kv(tenant);
    let failure: unknown;
    for await (const entry of entriesUnder(kv, PENDING))
      await this.#finishFound(tenant, kv, entry).catch((error: unknown) => (failure ??= error));
    if (failure !== undefined) throw failure;
  }

  /**
   * Completes the decided changes, and lets those of these places that are not decided yet begin again. So a change of
   * them that is not in its row when this resolves has a later time than those that were chosen before the call.
   */
  async settle(tenant: string, places: readonly Place[]): Promise<void> {
    const kv = await this.#kv(tenant);
    const keys = [...new Set(places.map(sequenceOf))];
    const value = encodeJson({ change: newStamp(undefined, this.#with.runtime).revision });
    for (let at = 0; at < keys.length; at += KV_TXN_MAX_OPERATIONS) {
      const then = keys.slice(at, at + KV_TXN_MAX_OPERATIONS).map((key) => ({ kind: "put", key, value }) as const);
      await this.#retry.run(() => kv.txn({ if: [], then }));
    }
    await this.finish(tenant);
  }

  /** `undefined` if a pending change was finished: the sequences have to be read again. */
  async #settled(principal: Principal, places: readonly Place[]): Promise<Now | undefined> {
    const kv = await this.#kv(principal.tenant);
    const keys = [...new Set(places.map(sequenceOf))];
    const found = await Promise.all(keys.map((key) => this.#retry.run(() => kv.get(key))));
    const pending = await Promise.all(places.map((place) => this.#retry.run(() => kv.get(pendingOf(place)))));
    const open = pending.filter((entry) => entry !== undefined);
    for (const entry of open) await this.#finishFound(principal.tenant, kv, entry);
    if (open.length > 0) return undefined;
    return { kv, sequences: new Map(keys.map((key, at) => [key, found[at]?.revision ?? 0])) };
  }

  async #timed(principal: Principal, { places, entries, changes, stamp }: Timing): Promise<readonly PendingChange[]> {
    const times = await this.#with.store.writeTimes(principal, places);
    const { ospace, user } = principal;
    return changes.map((change) => {
      const at = places.indexOf(change.place);
      const createdMs = entries[at]?.createdMs ?? stamp.atMs;
      const common = { place: change.place, writeUs: times[at] ?? 0, createdMs, ospace, user, stamp };
      if ("removed" in change) {
        const { removed, isMoved } = change;
        return { ...common, kind: "remove", row: {}, released: removed.content, isMoved };
      }
      const row = { ...change.row, ...stampColumn(stamp) };
      return { ...common, kind: change.isWhole ? "insert" : "update", row, released: change.replaced };
    });
  }

  /** False if another change came first. */
  async #decided({ kv, sequences }: Now, { pending, further, stamp, kept }: Decision): Promise<boolean> {
    const keys = [...sequences.keys()];
    const conditions = keys.map((key) => ({ key, revision: sequences.get(key) ?? 0 }));
    const request = {
      if: [...conditions, ...(further ? [further] : []), ...(kept ? [kept.condition] : [])],
      then: [
        ...keys.map((key) => ({ kind: "put", key, value: encodeJson({ change: stamp.revision }) }) as const),
        ...pending.map((one) => ({ kind: "put", key: pendingOf(one.place), value: encodeJson(one) }) as const),
        ...(kept ? [{ kind: "delete", key: kept.condition.key } as const] : []),
      ],
    };
    try {
      const { ok } = await txnOnce(kv, request, (write) => this.#retry.run(write));
      const isDecided = ok || (await isMade({ kv, retry: this.#retry }, keys, stamp));
      if (isDecided) kept?.use();
      return isDecided;
    } catch (error) {
      if (isAppError(error, "unknown_outcome")) kept?.use();
      throw error;
    }
  }

  /**
   * True if the content's record is gone because the change was decided, before its answer was lost and others followed.
   * False if nothing was decided. `AppError("unknown_outcome")` if another controller took this one for dead, or if a
   * later change replaced the content.
   */
  async #isNamed(principal: Principal, places: readonly Place[], kept: UsableContent): Promise<boolean> {
    const kv = await this.#kv(principal.tenant);
    const { key, revision } = kept.condition;
    if ((await this.#retry.run(() => kv.get(key)))?.revision === revision) return false;
    // The remover of the record decides about the mark. The history may have it.
    kept.use();
    await this.#settled(principal, places);
    const entries = await this.#with.store.get(principal, places);
    if (!entries.some((entry) => entry?.content?.mark === kept.held.mark)) throw heldUp();
    return true;
  }

  async #complete(principal: Principal, kv: KvStore, pending: readonly PendingChange[]): Promise<void> {
    const left = [...pending];
    try {
      for (const change of pending) {
        await this.#finish(principal, kv, change);
        left.shift();
      }
    } catch (error) {
      if (!isTransient(error)) {
        // A file that cannot be at its new place stays at its former one.
        for (const change of left) await this.#clear(kv, change);
        throw error;
      }
      throw new AppError("unknown_outcome", "The change of the file is stored, and made later.", { cause: error });
    }
  }

  async #finishFound(tenant: string, kv: KvStore, { value }: KvEntry): Promise<void> {
    const change = decodeStored<PendingChange>(value);
    const principal = { ...systemPrincipal(tenant, change.ospace, ""), user: change.user };
    await this.#finish(principal, kv, change).catch((error: unknown) => {
      // The caller of the change has got the error, or will find the change not made.
      if (isTransient(error)) throw error;
    });
  }

  /**
   * Writes the change to its row. A change that the row cannot take is dropped with its new content, and its error is
   * thrown.
   */
  async #finish(principal: Principal, kv: KvStore, change: PendingChange): Promise<void> {
    try {
      await this.#apply(principal, change);
      if (change.released) await this.#with.store.release(principal, [change.released]);
    } catch (error) {
      if (!isTransient(error)) {
        await this.#releaseNew(principal, change);
        await this.#clear(kv, change);
      }
      throw error;
    }
    await this.#clear(kv, change);
  }

  async #apply(principal: Principal, change: PendingChange): Promise<void> {
    const { store } = this.#with;
    const { place, kind, row } = change;
    const before = await this.#retry.run(() => store.find(principal, place));
    await this.#retry.run(() => this.#keep(principal, change, before));
    const write = (): Promise<void> => this.#retry.run(() => store.apply(principal, change));
    if (kind === "remove") await this.#indexed.remove(principal, { before, write });
    else await this.#indexed.replace(principal, { place, before, isContent: "digest" in row, write });
  }

  /** Releases the content that the change would have given to the file. */
  async #releaseNew(principal: Principal, { place, row: { digest, mark } }: PendingChange): Promise<void> {
    if (typeof digest !== "string" || typeof mark !== "string") return;
    const { store } = this.#with;
    if ((await store.find(principal, place))?.content?.mark !== mark)
      await store.release(principal, [{ digest, mark }]);
  }

  /** The history keeps a content that the change takes from the file. A repetition after the write finds another one. */
  async #keep(principal: Principal, change: PendingChange, before: FileEntry | undefined): Promise<void> {
    const { released, row, isMoved, stamp, kind } = change;
    const isTaken = released !== undefined && before?.content?.mark === released.mark;
    if (!isTaken || isMoved || row["digest"] === released.digest) return;
    const removal =
      kind === "remove" ? ({ cause: "removed", removal: stamp.revision } as const) : ({ cause: "replaced" } as const);
    await this.#with.store.keep(principal, [before], { ...removal, atMs: stamp.atMs });
  }

  /** Ends the pending change, unless another controller has ended it already. */
  async #clear(kv: KvStore, { place, stamp }: PendingChange): Promise<void> {
    const key = pendingOf(place);
    await this.#retry.run(async () => {
      const entry = await kv.get(key);
      if (entry === undefined || decodeStored<PendingChange>(entry.value).stamp.revision !== stamp.revision) return;
      await kv.delete(key, { ifRevision: entry.revision });
    });
  }

  async #kv(tenant: string): Promise<KvStore> {
    return (await this.#with.stores.tenant(tenant)).kv;
  }
}

interface Decision extends Pick<Timing, "stamp">, Pick<ChangeRequest, "kept"> {
  readonly further: Condition | undefined;
  readonly pending: readonly PendingChange[];
}

function digestOf({ space, fullname }: Place): Buffer {
  return createHash("sha256").update(`${space}:${fullname}`).digest();
}

function sequenceOf(place: Place): string {
  return `${SEQUENCES}${String(digestOf(place).readUInt32BE() % FILE_SEQUENCES)}`;
}

/** The digest, because a path may be longer than a key. */
function pendingOf(place: Place): string {
  return `${PENDING}${digestOf(place).toString("base64url")}`;
}
