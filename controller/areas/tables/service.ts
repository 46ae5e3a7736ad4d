import { AppError } from "../../../common/errors.ts";
import { TABLE_CHANGE_ATTEMPTS_MAX, TABLE_NAME_MAX_BYTES, TABLES_PER_TENANT_MAX } from "../../../common/limits.ts";
import { checkName } from "../../../common/names.ts";
import { newStamp, requireExpected, revisionOf, type Expected } from "../../../common/revisions.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { Retry } from "../../store/calls/retry.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { checkRows, merged, type TableRow } from "./rows.ts";
import { TableStore } from "./store.ts";

const NAME = { what: "name of a table", maxBytes: TABLE_NAME_MAX_BYTES, limit: "TABLE_NAME_MAX_BYTES" };

export interface Table {
  readonly rows: readonly TableRow[];
  readonly revision: string;
}

/**
 * Extension tables: rows that rules and scripts look up. Every read asks the store, so that all controllers see a
 * change as soon as its call has returned.
 */
export class TableService {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #retry: Retry;
  /** The last pending change of each table: the changes of one table run one after another here. */
  readonly #changes = new Map<string, Promise<unknown>>();

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#retry = new Retry({ clock: runtime.clock, random: runtime.random });
  }

  /** Names of all tables, in byte order. */
  async names(principal: Principal): Promise<readonly string[]> {
    requirePermission(principal, "tables:read");
    return (await this.#store(principal)).names();
  }

  /** Rows in the order in which they were given. `AppError("not_found")` if there is no such table. */
  async rows(principal: Principal, name: string): Promise<readonly TableRow[]> {
    return (await this.read(principal, name)).rows;
  }

  /** As `rows`, with the revision of the table. */
  async read(principal: Principal, name: string): Promise<Table> {
    requirePermission(principal, "tables:read");
    checkName(name, NAME);
    const { rows, stamp } = await (await this.#store(principal)).read(name);
    if (!rows) throw tableNotFound(name);
    return { rows, revision: revisionOf({ stamp }) };
  }

  /** Makes the table, or replaces all of its rows in one write. Returns the rows. */
  async replace(principal: Principal, name: string, rows: readonly TableRow[], expected?: Expected): Promise<Table> {
    requirePermission(principal, "tables:write");
    return this.#write(principal, name, { given: rows, make: () => rows, expected });
  }

  /** Makes the table, or merges the rows into it: see `merged`. Returns all rows. */
  async merge(principal: Principal, name: string, rows: readonly TableRow[], expected?: Expected): Promise<Table> {
    requirePermission(principal, "tables:write");
    return this.#write(principal, name, { given: rows, make: (before) => merged(before, rows), expected });
  }

  /** `AppError("not_found")` if there is no such table. */
  async remove(principal: Principal, name: string, expected?: Expected): Promise<void> {
    requirePermission(principal, "tables:write");
    checkName(name, NAME);
    const store = await this.#store(principal);
    await this.#change(principal, name, async () => {
      const before = await store.read(name);
      if (!before.rows) throw tableNotFound(name);
      requireExpected(expected, `The table ${name}`, before);
      return (await store.remove(name, before)) || undefined;
    });
  }

  async #write(
    principal: Principal,
    name: string,
    change: {
      readonly given: readonly TableRow[];
      readonly make: (rows: readonly TableRow[]) => readonly TableRow[];
      readonly expected: Expected | undefined;
    },
  ): Promise<Table> {
    checkName(name, NAME);
    checkRows(change.given);
    const store = await this.#store(principal);
    return this.#change(principal, name, async () => {
      const before = await store.read(name);
      requireExpected(change.expected, `The table ${name}`, before.rows && before);
      if (!before.rows) await checkCount(store);
      const next = { rows: change.make(before.rows ?? []), stamp: newStamp(principal.user, this.#runtime) };
      return (await store.write(name, before, next)) ? { rows: next.rows, revision: revisionOf(next) } : undefined;
    });
  }

  /** Retries until a write succeeds: if two controllers change a table concurrently, one of them must start again. */
  async #change<T>(principal: Principal, name: string, attempt: () => Promise<T | undefined>): Promise<T> {
    const place = `${principal.tenant}/${name}`;
    const work = this.#after(place, async () => {
      for (let count = 0; count < TABLE_CHANGE_ATTEMPTS_MAX; count++) {
        const done = await attempt();
        if (done !== undefined) return done;
      }
      throw new AppError("conflict", `Others change the table ${name} all the time: nothing was changed.`);
    });
    return work;
  }

  async #after<T>(place: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#changes.get(place) ?? Promise.resolve()).then(work);
    const settled = mine.catch(() => undefined);
    this.#changes.set(place, settled);
    try {
      return await mine;
    } finally {
      if (this.#changes.get(place) === settled) this.#changes.delete(place);
    }
  }

  async #store({ tenant }: Principal): Promise<TableStore> {
    const { kv } = await this.#stores.tenant(tenant);
    return new TableStore(kv, this.#retry);
  }
}

/** Checked before a table is made: tables made at the same moment may exceed the limit. */
async function checkCount(store: TableStore): Promise<void> {
  if ((await store.names()).length < TABLES_PER_TENANT_MAX) return;
  throw new AppError("too_large", `There are ${TABLES_PER_TENANT_MAX} tables already.`, {
    details: { limit: "TABLES_PER_TENANT_MAX" },
  });
}

function tableNotFound(name: string): AppError {
  return new AppError("not_found", `There is no table ${name}.`);
}
