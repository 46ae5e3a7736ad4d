import { AppError, isAppError } from "../../../common/errors.ts";
import { KV_TXN_MAX_OPERATIONS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../engine.ts";
import { entriesUnder } from "../entries.ts";
import { decodeStored, encodeJson } from "../format.ts";
import type { KvEntry, KvOperation, KvTxn } from "../kv.ts";
import { standing, txnOnce } from "../once.ts";
import { Retry } from "../retry.ts";
import { UnderWay } from "./under-way.ts";

/** Work that outlives its controller, with all that another one needs to go on. Extended by what an area notes of it. */
export interface OpenWork {
  /** New for each piece of work, never used again. */
  readonly id: string;
  /** The controller that carries it out. */
  readonly owner: string;
  /** How often it was taken since it was begun. */
  readonly attempt: number;
  /** How it ended: decided once. Absent: it is not decided. */
  readonly end?: unknown;
}

/** An entry as it was read or written; what is written next is conditional on its revision. */
export interface Noted<T> {
  readonly open: T;
  readonly revision: number;
  /**
   * Of a beginning: it was made again, so that another controller may have taken the work, done it and ended it before.
   */
  readonly isRepeated?: true;
}

type Created = Omit<Noted<unknown>, "open">;

/** See `Journal.stepWithin`. `open` is what stands there afterwards. */
export interface StepWithin<T> extends Noted<T> {
  readonly key: string;
  readonly value: Uint8Array;
}

/** The controllers of the installation, as far as their work is concerned. */
export interface Controllers {
  /** The id of this controller, new with every start. */
  readonly own: string;
  /** Whether the controller's lease lasts; false only when it is dead or cut off. */
  has(id: string): boolean;
}

export interface JournalDependencies {
  readonly stores: Stores;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly controllers: Controllers;
}

/** Where entries lie. */
export interface JournalForm<T> {
  /** The key is this and the id, in the KvStore of the tenant. */
  readonly prefix: string;
  readonly tenantOf: (open: T) => string;
  /** What is written together with an entry when it begins or is taken; not removed with it. */
  readonly beside?: (open: T) => readonly KvOperation[];
  /** Work that is done twice has the effect of one: a beginning whose outcome is unknown is made again. */
  readonly isRepeatable?: true;
}

/** What an area states of work that begins; the journal adds the rest. */
export type NewWork<T extends OpenWork> = Omit<T, "owner" | "attempt" | "end">;

/**
 * Work that outlives the controller that began it (decision record 0017). An area says what a step does; the journal
 * promises, over both engines:
 *
 * - **Begun**: an entry is written before anything of the work is done. Work without an entry was not begun.
 * - **Taken**: by one controller at a time. The owner holds its own work for as long as its lease lasts; then any other
 *   may take it. One of several that try succeeds, and one caller in a process.
 * - **Steps** and the **decision** are conditional on the revision that their writer read or wrote. A writer that was
 *   overtaken, also after a long sleep, gets `undefined` and changes nothing.
 * - **Decided** once: no step and no second decision follow, though the entry may be taken for its end to be recorded.
 * - **Ended** by removal, after its end is on record elsewhere. A controller that finds a decided entry records the same
 *   end again.
 * - A controller that takes work over has every step and decision that a former owner was told as written.
 *
 * Writes are repeated while the store is away (`Retry`), and an unknown outcome is resolved. A change is made again,
 * which its condition makes safe. A beginning is only read, unless the work is repeatable: if another controller took and
 * ended the work meanwhile, beginning again would do it twice. The entry as it is read next decides what an error left open: `unavailable` when
 * nothing was written, else `unknown_outcome`.
 */
export class Journal<T extends OpenWork> {
  /** What this controller carries out now. `take` holds work there, its `carry` lets go of it. */
  readonly underWay: UnderWay;
  readonly #stores: Stores;
  readonly #controllers: Controllers;
  readonly #retry: Retry;
  readonly #form: JournalForm<T>;

  constructor({ stores, runtime, controllers }: JournalDependencies, form: JournalForm<T>) {
    this.#stores = stores;
    this.#controllers = controllers;
    this.#retry = new Retry(runtime);
    this.#form = form;
    this.underWay = new UnderWay(runtime.clock);
  }

  /**
   * `AppError("unknown_outcome")`: it was perhaps begun. Then it is abandoned work, to be taken by any controller, this
   * one included.
   */
  async begin(work: NewWork<T>): Promise<Noted<T>> {
    const [noted] = await this.beginAll([work]);
    if (!noted) throw new RangeError("one entry was to be written");
    return noted;
  }

  /**
   * As `begin`, in one transaction with `within`. `undefined`: a condition of `within` does not hold, nothing was
   * written.
   */
  async beginWithin(work: NewWork<T>, within: KvTxn): Promise<Noted<T> | undefined> {
    const open = this.#own(work);
    const created = await this.#create([open], within);
    return created && { open, ...created };
  }

  /**
   * What begins work in a transaction of the caller's, together with what that is to change: `opens` is what stands
   * there afterwards, with the revision of the transaction.
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

  /** Work of one tenant. Where this fails, some of it may be on record. */
  async beginAll(works: readonly NewWork<T>[]): Promise<readonly Noted<T>[]> {
    const opens = works.map((work) => this.#own(work));
    const begun: Noted<T>[] = [];
    for (const some of this.#portions(opens)) {
      const created = await this.#create(some);
      if (created === undefined)
        throw new AppError("internal", `Work was begun twice: ${some.map(({ id }) => id).join(", ")}.`);
      begun.push(...some.map((open) => ({ open, ...created })));
    }
    return begun;
  }

  /**
   * Makes this controller the owner. `undefined` when another one was first, when it has ended, when it is held here,
   * or when this controller is stopping. Whether the owner is dead or out of time is for the caller to know.
   */
  async take(found: Noted<T>): Promise<Noted<T> | undefined> {
    const { id, attempt } = found.open;
    if (this.underWay.stopping.aborted || !this.underWay.hold(id)) return undefined;
    let taken: Noted<T> | undefined;
    try {
      const next = { ...found.open, owner: this.#controllers.own, attempt: attempt + 1 };
      taken = await this.#change(found, next, this.#beside(next));
      return taken;
    } finally {
      if (!taken) this.underWay.letGo(id);
    }
  }

  /** `undefined` when another writer changed, decided or ended it after `held`. */
  async step(held: Noted<T>, changes: Partial<NewWork<T>>): Promise<Noted<T> | undefined> {
    return held.open.end === undefined ? this.#change(held, { ...held.open, ...changes }) : undefined;
  }

  /**
   * A step that its writer puts, in a transaction of its own, together with what the step did: on condition that `key`
   * has this revision. Then it is noted with the revision of that transaction.
   */
  stepWithin({ open, revision }: Noted<T>, changes: Partial<NewWork<T>>): StepWithin<T> {
    const next = { ...open, ...changes };
    return { key: this.#keyOf(open.id), revision, value: encodeJson(next), open: next };
  }

  /** As `step`; then what the other one wrote stands. */
  async decide(held: Noted<T>, end: NonNullable<T["end"]>): Promise<Noted<T> | undefined> {
    return held.open.end === undefined ? this.#change(held, { ...held.open, end }) : undefined;
  }

  /** The work is over and all that is to be kept of it is kept. Idempotent. */
  async end(open: T): Promise<void> {
    const { kv } = await this.#stores.tenant(this.#form.tenantOf(open));
    await this.#retry.run(() => kv.delete(this.#keyOf(open.id)));
  }

  /** `undefined`: it has ended, or was not begun. */
  async find(tenant: string, id: string): Promise<Noted<T> | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(this.#keyOf(id));
    return entry && noted(entry);
  }

  /** All that is open, in the order of ids, read page by page. */
  async *all(tenant: string): AsyncGenerator<Noted<T>> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const entry of entriesUnder(kv, this.#form.prefix)) yield noted(entry);
  }

  /**
   * What is open and carried out by no controller: to be taken, from time to time and when a controller went. Ends when
   * this controller stops.
   */
  async *abandoned(tenant: string): AsyncGenerator<Noted<T>> {
    for await (const found of this.all(tenant)) {
      if (this.underWay.stopping.aborted) return;
      if (this.isAbandoned(found.open)) yield found;
    }
  }

  /** Work of this controller is abandoned when it is not held: what it began or took failed before it was carried. */
  isAbandoned({ id, owner }: T): boolean {
    const isCarried = owner === this.#controllers.own ? this.underWay.has(id) : this.#controllers.has(owner);
    return !isCarried;
  }

  async #change({ revision }: Noted<T>, next: T, beside: readonly KvOperation[] = []): Promise<Noted<T> | undefined> {
    const { kv } = await this.#stores.tenant(this.#form.tenantOf(next));
    const request = { if: [{ key: this.#keyOf(next.id), revision }], then: [this.#put(next), ...beside] };
    const written = await txnOnce(kv, request, (write) => this.#retry.run(write));
    return written.ok ? { open: next, revision: written.revision } : undefined;
  }

  #own(work: NewWork<T>): T {
    return { ...work, owner: this.#controllers.own, attempt: 0 } as unknown as T;
  }

  /**
   * All of them or none. Once it was perhaps done, it is repeated only where the work is repeatable. `undefined`: a
   * condition does not hold, nothing was written.
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
    // What cannot be looked at stays in doubt.
    const revision = await this.#retry.run(() => standing(kv, request.then)).catch(() => undefined);
    if (revision === undefined) throw doubt;
    return { revision };
  }

  /** As many as one transaction holds: a condition and the writes of each. */
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

function noted<T>({ value, revision }: KvEntry): Noted<T> {
  return { open: decodeStored<T>(value), revision };
}
