import { AppError } from "../../../../common/errors.ts";
import {
  RULE_CACHED_CLASS_MAX_CHARACTERS,
  RULE_CACHED_CLASS_MAX_ROWS,
  RULE_CACHED_CLASS_MS,
  RULE_CACHED_CLASSES_KEPT_MAX,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Value } from "../../../../common/value.ts";
import type { HostContext } from "../../../scripting/index.ts";

type CachedRow = Readonly<Record<string, Value>>;

interface CachedClass {
  readonly untilMs: number;
  readonly rows: Promise<readonly CachedRow[]>;
  /** Indexes of the rows by the values of some columns, one for each queried set of columns. */
  readonly indexes: Map<string, ReadonlyMap<string, readonly CachedRow[]>>;
}

/**
 * Rows of classes that bodies read often, in the memory of this process. They are at most `RULE_CACHED_CLASS_MS` old.
 */
export class ClassCache {
  readonly #clock: Clock;
  readonly #classes = new Map<string, CachedClass>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The rows that have all these values. The class is read by `odb.mql` with the rights of the caller.
   * `AppError("too_large")` beyond `RULE_CACHED_CLASS_MAX_ROWS` or `RULE_CACHED_CLASS_MAX_CHARACTERS`.
   */
  async find(context: HostContext, path: string, where: CachedRow): Promise<readonly CachedRow[]> {
    const cached = this.#cached(context, path);
    const columns = Object.keys(where).sort();
    const rows = await cached.rows;
    if (columns.length === 0) return rows;
    const name = JSON.stringify(columns);
    const index = cached.indexes.get(name) ?? indexOf(rows, columns);
    cached.indexes.set(name, index);
    return index.get(keyOf(where, columns)) ?? [];
  }

  leave(): void {
    this.#classes.clear();
  }

  #cached(context: HostContext, path: string): CachedClass {
    const { tenant, user, grants, data } = context.principal;
    const name = JSON.stringify([tenant, path, user, grants, data]);
    const nowMs = this.#clock.monotonicMs();
    const known = this.#classes.get(name);
    if (known && known.untilMs > nowMs) return known;
    this.#classes.delete(name);
    const oldest = this.#classes.keys().next();
    if (this.#classes.size >= RULE_CACHED_CLASSES_KEPT_MAX && !oldest.done) this.#classes.delete(oldest.value);
    const made: CachedClass = {
      untilMs: nowMs + RULE_CACHED_CLASS_MS,
      rows: rowsOf(context, path),
      indexes: new Map(),
    };
    this.#classes.set(name, made);
    made.rows.catch(() => {
      if (this.#classes.get(name) === made) this.#classes.delete(name);
    });
    return made;
  }
}

async function rowsOf({ call }: HostContext, path: string): Promise<readonly CachedRow[]> {
  const answer = await call("odb.mql", [`SELECT * FROM ${path} LIMIT ${RULE_CACHED_CLASS_MAX_ROWS + 1}`]);
  const { data } = answer as unknown as { readonly data: readonly CachedRow[] };
  if (data.length > RULE_CACHED_CLASS_MAX_ROWS) throw tooLarge(path, "RULE_CACHED_CLASS_MAX_ROWS");
  if (JSON.stringify(data).length > RULE_CACHED_CLASS_MAX_CHARACTERS)
    throw tooLarge(path, "RULE_CACHED_CLASS_MAX_CHARACTERS");
  return data;
}

function indexOf(rows: readonly CachedRow[], columns: readonly string[]): ReadonlyMap<string, readonly CachedRow[]> {
  const index = new Map<string, CachedRow[]>();
  for (const row of rows) {
    const key = keyOf(row, columns);
    const same = index.get(key);
    if (same) same.push(row);
    else index.set(key, [row]);
  }
  return index;
}

/** A number equals its text, because the fields of a record are texts if the rule gives no type. */
function keyOf(row: CachedRow, columns: readonly string[]): string {
  const values = columns.map((column) => (Object.hasOwn(row, column) ? row[column] : undefined) ?? null);
  return JSON.stringify(values.map((value) => (typeof value === "number" ? String(value) : value)));
}

function tooLarge(path: string, limit: string): AppError {
  return new AppError("too_large", `The class ${path} is too large to be kept by --cache_classes.`, {
    details: { limit },
  });
}
