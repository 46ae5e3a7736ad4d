import { AppError } from "../../../common/errors.ts";
import { KeyedQueue } from "../../../common/keyed-queue.ts";
import { HOST_CHANGE_ATTEMPTS_MAX, HOST_CHANGE_MAX_BYTES } from "../../../common/limits.ts";
import { newStamp, type Stamp } from "../../../common/revisions.ts";
import type { Runtime } from "../../runtime.ts";
import { Retry } from "../../store/calls/retry.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { isTransient } from "../../store/journal/index.ts";
import type { KvEntry, KvStore } from "../../store/kv.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { txnOnce } from "../../store/once.ts";
import type { Edit, ObjectRow, Rehearsals, Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { asOwner, classPath, idOf, rowOf, STAMP_COLUMN } from "./store.ts";

/** One entry for each host that has a record; its revision in the store changes with each change of the host. */
const SEQUENCES = "hosts/sequence/";
/** The change of a host that is decided, until it is in the record. */
const PENDING = "hosts/pending/";

/** The change that a caller makes of the record as it is. */
export type HostChange = { readonly kind: "write"; readonly edits: readonly Edit[] } | { readonly kind: "remove" };

interface PendingChange {
  readonly kind: "insert" | "update" | "remove";
  readonly edits: readonly Edit[];
  /** Time of the write, so that a repetition changes nothing and loses to every later change. */
  readonly writeUs: number;
  readonly createdMs: number;
  /** Makes the change unlike all others. */
  readonly stamp: Stamp;
}

type Plan = (row: ObjectRow | undefined) => Promise<HostChange | undefined>;

export interface HostChangesDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Unrestricted<"get" | "update" | "ingest" | "remove" | "writeTimes"> & Rehearsals;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  /** Called after a change of a host is in its record. */
  readonly onChanged?: ((tenant: string, host: string) => void) | undefined;
}

interface Now {
  readonly kv: KvStore;
  /** Revision of the host's sequence; 0: there is no host. */
  readonly sequence: number;
  readonly row: ObjectRow | undefined;
}

interface Decided {
  readonly host: string;
  readonly sequence: number;
  readonly change: PendingChange;
}

/**
 * Changes of the definitions of hosts, one after the other on all controllers. Writes of objects have no conditions, so
 * a change is decided in the KvStore: a transaction stores it on condition that no other change came first. Then it is
 * written to the record at the time that was chosen before, with the stamp of its revision. If the controller dies in
 * between, the next change of the host or the maintenance of any controller writes it. A record is written as a whole,
 * so readers see a revision only together with its content.
 */
export class HostChanges {
  readonly #with: HostChangesDependencies;
  readonly #retry: Retry;
  readonly #queue = new KeyedQueue();

  constructor(dependencies: HostChangesDependencies) {
    this.#with = dependencies;
    this.#retry = new Retry(dependencies.runtime);
  }

  /**
   * Makes the change that `plan` returns for the present record, and returns its revision. `plan` runs again if another
   * change came first, and its errors are thrown. Returns `undefined` if `plan` does, for no change.
   * `AppError("unknown_outcome")` if the change is decided, but not in the record yet.
   */
  make(principal: Principal, host: string, plan: Plan): Promise<string | undefined> {
    return this.#queue.run([`${principal.tenant}/${host}`], async () => {
      for (let attempt = 1; attempt <= HOST_CHANGE_ATTEMPTS_MAX; attempt++) {
        const now = await this.#settled(principal, host);
        const planned = await plan(now.row);
        if (planned === undefined) return undefined;
        const change = await this.#timed(principal, host, { row: now.row, change: planned });
        if (await this.#decided(principal, { host, ...now }, change)) return change.stamp.revision;
      }
      throw busy(host);
    });
  }

  /** Writes the decided changes that their controllers have not written. Throws if one of them cannot be written now. */
  async finish(tenant: string): Promise<void> {
    const kv = await this.#kv(tenant);
    let failure: unknown;
    for await (const entry of entriesUnder(kv, PENDING)) {
      await this.#finishFound(tenant, kv, entry).catch((error: unknown) => (failure ??= error));
    }
    if (failure !== undefined) throw failure;
  }

  /** The host without a pending change. Finishing those of others takes none of the attempts of a change. */
  async #settled(principal: Principal, host: string): Promise<Now> {
    for (let attempt = 1; attempt <= HOST_CHANGE_ATTEMPTS_MAX; attempt++) {
      const now = await this.#now(principal, host);
      if (now !== undefined) return now;
    }
    throw busy(host);
  }

  /** `undefined` if the host has to be read again. */
  async #now(principal: Principal, host: string): Promise<Now | undefined> {
    const kv = await this.#kv(principal.tenant);
    const sequence = (await this.#retry.run(() => kv.get(SEQUENCES + host)))?.revision ?? 0;
    const pending = await this.#retry.run(() => kv.get(PENDING + host));
    if (pending !== undefined) {
      await this.#finishFound(principal.tenant, kv, pending);
      return undefined;
    }
    const [row] = await this.#with.objects.unrestricted.get(asOwner(principal), [refOf(principal, host)]);
    if (row === undefined || sequence !== 0) return { kv, sequence, row };
    // The record is older than sequences are.
    await this.#retry.run(() => kv.put(SEQUENCES + host, encodeJson({}), { ifRevision: 0 }));
    return undefined;
  }

  async #timed(
    principal: Principal,
    host: string,
    { row, change }: { readonly row: ObjectRow | undefined; readonly change: HostChange },
  ): Promise<PendingChange> {
    const { runtime, objects } = this.#with;
    const stamp = newStamp(principal.user, runtime);
    // It also checks that the principal may write the class.
    const [writeUs = 0] = await objects.unrestricted.writeTimes(asOwner(principal), [refOf(principal, host)]);
    const common = { writeUs, createdMs: stamp.atMs, stamp };
    if (change.kind === "remove") return { kind: "remove", edits: [], ...common };
    await this.#requireFit(principal, host, change.edits);
    const stamped: Edit = { column: STAMP_COLUMN, operation: "set", value: JSON.stringify(stamp) };
    return { kind: row ? "update" : "insert", edits: [...change.edits, stamped], ...common };
  }

  /** Throws if the class would refuse the values, because a decided change is admitted. Hosts need no room. */
  async #requireFit(principal: Principal, host: string, edits: readonly Edit[]): Promise<void> {
    const rehearsal = await this.#with.objects.rehearse(asOwner(principal));
    const path = classPath(principal);
    rehearsal.checkEdits(path, edits);
    rehearsal.checkRow(path, rowOf(host, edits));
  }

  /** False if another change came first. */
  async #decided(
    principal: Principal,
    { host, kv, sequence }: { readonly host: string } & Now,
    change: PendingChange,
  ): Promise<boolean> {
    const value = encodeJson(change);
    if (value.length > HOST_CHANGE_MAX_BYTES)
      throw new AppError("too_large", `A change of a host has at most ${HOST_CHANGE_MAX_BYTES} bytes.`, {
        details: { limit: "HOST_CHANGE_MAX_BYTES" },
      });
    const { ok, revision } = await txnOnce(
      kv,
      {
        if: [{ key: SEQUENCES + host, revision: sequence }],
        then: [
          { kind: "put", key: SEQUENCES + host, value: encodeJson({ change: change.stamp.revision }) },
          { kind: "put", key: PENDING + host, value },
        ],
      },
      (write) => this.#retry.run(write),
    );
    if (!ok) return this.#isMade(kv, host, change);
    try {
      await this.#finish(principal, kv, { host, sequence: revision, change });
    } catch (error) {
      if (!isTransient(error)) throw error;
      throw new AppError("unknown_outcome", `The change of the host ${host} is stored, and made later.`, {
        cause: error,
      });
    }
    return true;
  }

  /** True if another controller has finished the change already, after its answer was lost. */
  async #isMade(kv: KvStore, host: string, { stamp }: PendingChange): Promise<boolean> {
    const entry = await this.#retry.run(() => kv.get(SEQUENCES + host));
    return entry !== undefined && decodeStored<{ readonly change?: string }>(entry.value).change === stamp.revision;
  }

  async #finishFound(tenant: string, kv: KvStore, { key, value, revision }: KvEntry): Promise<void> {
    const change = decodeStored<PendingChange>(value);
    const decided = { host: key.slice(PENDING.length), sequence: revision, change };
    await this.#finish(await this.#with.actAs(tenant, ""), kv, decided).catch((error: unknown) => {
      // The caller of the change has got the error, or will find the change not made.
      if (isTransient(error)) throw error;
    });
  }

  /** Writes the change to the record. A change that the record cannot take is dropped, and its error is thrown. */
  async #finish(principal: Principal, kv: KvStore, { host, sequence, change }: Decided): Promise<void> {
    try {
      await this.#retry.run(() => this.#apply(principal, host, change));
    } catch (error) {
      if (!isTransient(error)) await this.#clear(kv, { host, sequence, isGone: change.kind === "insert" });
      throw error;
    }
    this.#with.onChanged?.(principal.tenant, host);
    await this.#clear(kv, { host, sequence, isGone: change.kind === "remove" });
  }

  async #apply(principal: Principal, host: string, { kind, edits, writeUs, createdMs }: PendingChange): Promise<void> {
    const { objects } = this.#with;
    const [owner, ref] = [asOwner(principal), refOf(principal, host)];
    if (kind === "update") await objects.unrestricted.update(owner, ref, edits, { writeUs });
    else if (kind === "remove") await objects.unrestricted.remove(owner, [ref], { writeUs });
    else {
      const record = { values: rowOf(host, edits), timeMs: createdMs, identity: ref.id, writeUs, createdMs };
      await objects.unrestricted.ingest(owner, ref.class, [record]);
    }
  }

  /** Ends the pending change of that revision. Another controller may have ended it already. */
  async #clear(
    kv: KvStore,
    { host, sequence, isGone }: { readonly host: string; readonly sequence: number; readonly isGone: boolean },
  ): Promise<void> {
    const keys = [PENDING + host, ...(isGone ? [SEQUENCES + host] : [])];
    await this.#retry.run(() =>
      kv.txn({
        if: [{ key: PENDING + host, revision: sequence }],
        then: keys.map((key) => ({ kind: "delete", key }) as const),
      }),
    );
  }

  async #kv(tenant: string): Promise<KvStore> {
    return (await this.#with.stores.tenant(tenant)).kv;
  }
}

function busy(host: string): AppError {
  return new AppError("conflict", `Others change the host ${host} all the time: nothing was changed.`);
}

function refOf(principal: Principal, host: string) {
  return { id: idOf(host), class: classPath(principal) };
}
