import { AppError, isAppError } from "../../../common/errors.ts";
import { KV_TXN_MAX_OPERATIONS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../engine.ts";
import { entriesUnder } from "../kv/entries.ts";
import { decodeStored, encodeJson } from "../format.ts";
import type { KvEntry, KvOperation, KvTxn } from "../kv.ts";
import { standing, txnOnce } from "../once.ts";
import { Retry } from "../calls/retry.ts";
import { InFlightWork } from "./in-flight.ts";

/** Work that outlives its controller, with everything that another controller needs to continue it. Areas extend it. */
export interface OpenWork {
  /** New for each piece of work, never reused. */
  readonly id: string;
  /** The controller that runs the work. */
  readonly owner: string;
  /** Number of times it was taken since its begin. */
  readonly attempt: number;
  /** Its result, decided once. Absent: it is not decided. */
  readonly end?: unknown;
}

/** An entry as read or written. The next write is conditional on its revision. */
export interface Versioned<T> {
  readonly open: T;
  readonly revision: number;
  /**
   * True if `begin` wrote the entry again after an unknown outcome. Between the two writes, another controller may have
   * taken, done and ended the work.
   */
  readonly isRepeated?: true;
}

type Created = Omit<Versioned<unknown>, "open">;

/** See `Journal.stepWithin`. `open` is the entry after the step. */
export interface StepWithin<T> extends Versioned<T> {
  readonly key: string;
  readonly value: Uint8Array;
}

/** The controllers of the installation, as the journal needs them. */
export interface Controllers {
  /** The id of this controller; new with every start. */
  readonly own: string;
  /** True while the controller's lease lasts; false only if it is dead or cut off. */
  has(id: string): boolean;
}

export interface JournalDependencies {
  readonly stores: Stores;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly controllers: Controllers;
}

/** Location of the entries. */
export interface JournalForm<T> {
  /** The key is this prefix and the id, in the KvStore of the tenant. */
  readonly prefix: string;
  readonly tenantOf: (open: T) => string;
  /** Additional writes in the transaction that begins or takes an entry. `end` does not remove them. */
  readonly beside?: (open: T) => readonly KvOperation[];
  /** True if the work is idempotent: then a begin with unknown outcome is repeated. */
  readonly isRepeatable?: true;
}

/** The members that an area gives for new work; the journal adds the rest. */
export type NewWork<T extends OpenWork> = Omit<T, "owner" | "attempt" | "end">;

/**
 * A journal of work that outlives the controller that began it (decision record 0017). An area defines the steps; the
 * journal promises, on both engines:
 *
 * - **Begun**: an entry is written before anything of the work is done. Work without an entry was not begun.
 * - **Taken**: by one controller at a time. The owner holds its work for as long as its lease lasts; then any other
 *   controller may take it. If several try, one succeeds; within a process, one caller.
 * - **Steps** and the **decision** are conditional on the revision that their writer read or wrote. A writer that lost
 *   the work, even after a long sleep, gets `undefined` and changes nothing.
 * - **Decided** once: no step and no second decision follow, but the entry may still be taken to record its result.
 * - **Ended** by removal, after its result is recorded elsewhere. A controller that finds a decided entry records the
 *   same result again.
 * - A controller that takes work over has every step and decision that was reported to a former owner as written.
 *
 * Writes are repeated while the store is unavailable (`Retry`). After an unknown outcome, a change is repeated; its
 * condition makes that safe. A begin is repeated only if the work is repeatable. Otherwise it only reads whether the
 * entry exists: another controller may have taken and ended the work in the meantime, and beginning again would do it
 * twice. If a call throws `unavailable`, nothing was written. If it throws `unknown_outcome`, the next read of the
 * entry shows the outcome.
 */
export class Journal<T extends OpenWork> {
  /** Work that runs on this controller. `take` holds work in it, and its `carry` releases it. */
  readonly inFlight: InFlightWork;
  readonly #stores: Stores;
  readonly #controllers: Controllers;
  readonly #retry: Retry;
  readonly #form: JournalForm<T>;

  constructor({ stores, runtime, controllers }: JournalDependencies, form: JournalForm<T>) {
    this.#stores = stores;
    this.#controllers = controllers;
    this.#retry = new Retry(runtime);
    this.#form = form;
    this.inFlight = new InFlightWork(runtime.clock);
  }

  /**
   * `AppError("unknown_outcome")`: the work may have been begun. Then it is abandoned work that any controller,
   * including this one, may take.
   */
  async begin(work: NewWork<T>): Promise<Versioned<T>> {
    const [noted] = await this.beginAll([work]);
    if (!noted) throw new RangeError("one entry was to be written");
    return noted;
  }

  /**
   * Like `begin`, in one transaction with `within`. `undefined`: a condition of `within` does not hold, and nothing was
   * written.
   */
  async beginWithin(work: NewWork<T>, within: KvTxn): Promise<Versioned<T> | undefined> {
    const open = this.#own(work);
    const created = await this.#create([open], within);
    return created && { open, ...created };
  }

  /**
   * The transaction parts that begin works within the caller's own transaction. `opens` are the entries afterwards,
   * with the revision of that transaction.
   */
  beginning(works: readonly NewWork<T>[]): { readonly opens: readonly T[]; readonly within: KvTxn } {
    const opens = works.map((work) => this.#own(work));
    return {
      opens,
      within: {
        if: opens.map(({ id }) => ({ key: this.#keyOf(id), revision: 0 })),
        then: opens.flatMap((open) => this.#puts(open)),
      },
    };
  }

  /** Begins works of one tenant. After an error, some of them may be recorded. */
  async beginAll(works: readonly NewWork<T>[]): Promise<readonly Versioned<T>[]> {
    const opens = works.map((work) => this.#own(work));
    const begun: Versioned<T>[] = [];
    for (const some of this.#portions(opens)) {
      const created = await this.#create(some);
      if (created === undefined)
        throw new AppError("internal", `Work was begun twice: ${some.map(({ id }) => id).join(", ")}.`);
      begun.push(...some.map((open) => ({ open, ...created })));
    }
    return begun;
  }

  /**
   * Makes this controller the owner. `undefined` if another one was first, if the work has ended or is held here, or if
   * this controller is stopping. The caller must know that the owner is dead or its time is over.
   */
  async take(found: Versioned<T>): Promise<Versioned<T> | undefined> {
    const { id, attempt } = found.open;
    if (this.inFlight.stopping.aborted || !this.inFlight.hold(id)) return undefined;
    let taken: Versioned<T> | undefined;
    try {
      const next = { ...found.open, owner: this.#controllers.own, attempt: attempt + 1 };
      taken = await this.#change(found, next, this.#beside(next));
      return taken;
    } finally {
      if (!taken) this.inFlight.letGo(id);
    }
  }

  /** `undefined` if another writer changed, decided or ended the work after `held`. */
  async step(held: Versioned<T>, changes: Partial<NewWork<T>>): Promise<Versioned<T> | undefined> {
    return held.open.end === undefined ? this.#change(held, { ...held.open, ...changes }) : undefined;
  }

  /**
   * A step that the caller writes in its own transaction, together with the effect of the step. The transaction must
   * have the condition that `key` has this revision. Afterwards the entry has the revision of the transaction.
   */
  stepWithin({ open, revision }: Versioned<T>, changes: Partial<NewWork<T>>): StepWithin<T> {
    const next = { ...open, ...changes };
    return { key: this.#keyOf(open.id), revision, value: encodeJson(next), open: next };
  }

  /** Like `step`. If it returns `undefined`, the other writer's entry is valid. */
  async decide(held: Versioned<T>, end: NonNullable<T["end"]>): Promise<Versioned<T> | undefined> {
    return held.open.end === undefined ? this.#change(held, { ...held.open, end }) : undefined;
  }

  /** Removes the entry. Call it when the work is over and its result is recorded. Idempotent. */
  async end(open: T): Promise<void> {
    const { kv } = await this.#stores.tenant(this.#form.tenantOf(open));
    await this.#retry.run(() => kv.delete(this.#keyOf(open.id)));
  }

  /** `undefined`: the work has ended, or was not begun. */
  async find(tenant: string, id: string): Promise<Versioned<T> | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(this.#keyOf(id));
    return entry && noted(entry);
  }

  /** All open work in the order of ids, read page by page. */
  async *all(tenant: string): AsyncGenerator<Versioned<T>> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const entry of entriesUnder(kv, this.#form.prefix)) yield noted(entry);
  }

  /**
   * Open work that no controller runs. Read it periodically, and whenever a controller has left, and `take` each entry.
   * Ends when this controller stops.
   */
  async *abandoned(tenant: string): AsyncGenerator<Versioned<T>> {
    for await (const found of this.all(tenant)) {
      if (this.inFlight.stopping.aborted) return;
      if (this.isAbandoned(found.open)) yield found;
    }
  }

  /** This controller's own work is abandoned if it is not held: it failed between its begin or take and its run. */
  isAbandoned({ id, owner }: T): boolean {
    const isCarried = owner === this.#controllers.own ? this.inFlight.has(id) : this.#controllers.has(owner);
    return !isCarried;
  }

  async #change(
    { revision }: Versioned<T>,
    next: T,
    beside: readonly KvOperation[] = [],
  ): Promise<Versioned<T> | undefined> {
    const { kv } = await this.#stores.tenant(this.#form.tenantOf(next));
    const request = { if: [{ key: this.#keyOf(next.id), revision }], then: [this.#put(next), ...beside] };
    const written = await txnOnce(kv, request, (write) => this.#retry.run(write));
    return written.ok ? { open: next, revision: written.revision } : undefined;
  }

  #own(work: NewWork<T>): T {
    return { ...work, owner: this.#controllers.own, attempt: 0 } as unknown as T;
  }

  /**
   * Creates all entries or none. After an unknown outcome the transaction is repeated only if the work is repeatable.
   * `undefined`: a condition does not hold, and nothing was written.
   */
  async #create(opens: readonly T[], within: KvTxn = { if: [], then: [] }): Promise<Created | undefined> {
    const [first] = opens;
    if (!first) return { revision: 0 };
    const { kv } = await this.#stores.tenant(this.#form.tenantOf(first));
    const request = {
      if: [...opens.map(({ id }) => ({ key: this.#keyOf(id), revision: 0 })), ...within.if],
      then: [...opens.flatMap((open) => this.#puts(open)), ...within.then],
    };
    let doubt: AppError | undefined;
    const answer = await this.#retry.run(() =>
      kv.txn(request).catch((error: unknown) => {
        if (!isAppError(error, "unknown_outcome")) throw error;
        doubt = error;
        if (this.#form.isRepeatable) throw error;
        return undefined;
      }),
    );
    if (answer?.ok) return { revision: answer.revision, ...(doubt === undefined ? {} : { isRepeated: true as const }) };
    if (doubt === undefined) return undefined;
    // If the entries cannot be read, the outcome stays unknown.
    const revision = await this.#retry.run(() => standing(kv, request.then)).catch(() => undefined);
    if (revision === undefined) throw doubt;
    return { revision };
  }

  /** Splits the entries into transactions: each entry takes one condition and its writes. */
  *#portions(opens: readonly T[]): Generator<readonly T[]> {
    let [from, size] = [0, 0];
    for (const [at, open] of opens.entries()) {
      const added = 1 + this.#puts(open).length;
      if (size + added > KV_TXN_MAX_OPERATIONS) {
        yield opens.slice(from, at);
        [from, size] = [at, 0];
      }
      size += added;
    }
    yield opens.slice(from);
  }

  #puts(open: T): readonly KvOperation[] {
    return [this.#put(open), ...this.#beside(open)];
  }

  #put(open: T): KvOperation {
    return { kind: "put", key: this.#keyOf(open.id), value: encodeJson(open) };
  }

  #beside(open: T): readonly KvOperation[] {
    return this.#form.beside?.(open) ?? [];
  }

  #keyOf(id: string): string {
    return this.#form.prefix + id;
  }
}

function noted<T>({ value, revision }: KvEntry): Versioned<T> {
  return { open: decodeStored<T>(value), revision };
}
