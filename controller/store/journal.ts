import { isAppError, type ErrorCode } from "../../common/errors.ts";
import type { Stores } from "./engine.ts";
import { entriesUnder } from "./entries.ts";
import { decodeStored, encodeJson } from "./format.ts";
import type { KvEntry } from "./kv.ts";

/** Work that is on record before it is begun, with all that another controller needs to go on. */
export interface OpenWork {
  readonly id: string;
  /** The controller that works on it. */
  readonly owner: string;
}

export interface Noted<T> {
  readonly open: T;
  readonly revision: number;
}

/** The controllers of the installation, as the journal needs to know them to continue the work of a dead one. */
export interface Controllers {
  /** The id of this controller, new with every start. */
  readonly own: string;
  /** Whether the controller is alive; false only when it is dead or cut off. */
  has(id: string): boolean;
}

const PASSING_CODES: readonly ErrorCode[] = [
  "unavailable",
  "unknown_outcome",
  "deadline",
  "limited",
  "internal",
  "cancelled",
];

/** A fault of the moment: the same work may well be done later. */
export function isTransient(error: unknown): boolean {
  return isAppError(error, ...PASSING_CODES);
}

/** An attempt before this one may have come to pass without an answer. */
function notedAs<T>(open: T, value: Uint8Array, found: KvEntry | undefined): Noted<T> | undefined {
  return found && Buffer.compare(found.value, value) === 0 ? { open, revision: found.revision } : undefined;
}

/**
 * Work that is not over, each under `prefix` and its id in the KvStore of its tenant, changed only on the revision that
 * was read: of two controllers that continue the same work one loses.
 */
export class Journal<T extends OpenWork> {
  readonly #stores: Stores;
  readonly #prefix: string;

  constructor(stores: Stores, prefix: string) {
    this.#stores = stores;
    this.#prefix = prefix;
  }

  /**
   * `undefined` when there is one of that id. Safe to be repeated, as is `change`, after `unavailable` and
   * `unknown_outcome`.
   */
  begin(tenant: string, open: T): Promise<Noted<T> | undefined> {
    return this.#put(tenant, open, 0);
  }

  /** `undefined` when another writer changed or ended it since it was read. */
  change(tenant: string, held: Noted<T>, changes: Partial<T>): Promise<Noted<T> | undefined> {
    return this.#put(tenant, { ...held.open, ...changes }, held.revision);
  }

  async all(tenant: string): Promise<readonly Noted<T>[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const found: Noted<T>[] = [];
    for await (const { value, revision } of entriesUnder(kv, this.#prefix))
      found.push({ open: decodeStored<T>(value), revision });
    return found;
  }

  async remove(tenant: string, id: string): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(this.#prefix + id);
  }

  async #put(tenant: string, open: T, ifRevision: number): Promise<Noted<T> | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const key = this.#prefix + open.id;
    const value = encodeJson(open);
    try {
      const written = await kv.put(key, value, { ifRevision });
      if (!written.ok) return notedAs(open, value, written.current);
      return { open, revision: written.revision };
    } catch (error) {
      if (!isAppError(error, "unknown_outcome")) throw error;
      const now = await kv.get(key);
      if ((now?.revision ?? 0) === ifRevision) throw error;
      return notedAs(open, value, now);
    }
  }
}
