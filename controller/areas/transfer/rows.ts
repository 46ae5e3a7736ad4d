import { EXPORT_IDS_HELD_MAX, EXPORT_PAGE_ROWS } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ClassView, Objects, Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";

export interface RowsDependencies {
  readonly query: Pick<Query, "run">;
  readonly objects: Pick<Objects, "catalog" | "visible"> & Unrestricted<"removed" | "times" | "pastStates">;
  /** Maximum number of ids in memory; `EXPORT_IDS_HELD_MAX` if absent. */
  readonly idsHeldMax?: number;
}

export interface RowsRequest {
  readonly principal: Principal;
  readonly view: ClassView;
  /** Names of columns to read in addition to those of `*`. */
  readonly more?: readonly string[];
  /** Absent: no limit. */
  readonly limit: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** An object with the sorted ids of its relations' targets, by edge type. */
export interface ExportedObject {
  readonly id: string;
  readonly values: Row;
  readonly relations: ReadonlyMap<string, readonly string[]>;
}

/**
 * The objects of one class that the principal sees, sorted by id. They are not a snapshot: concurrent writes may be
 * included or not. Memory is bounded: if there are more ids than may be held, the class is scanned again for the ids
 * after the last one.
 */
export async function* orderedObjects(
  dependencies: RowsDependencies,
  request: RowsRequest,
): AsyncGenerator<readonly ExportedObject[]> {
  const { principal, view, signal } = request;
  const ids = async (): Promise<AsyncIterable<readonly Row[]>> => {
    const text = `SELECT id FROM ${view.path} LIMIT -1`;
    return (await dependencies.query.run(principal, text, signal ? { signal } : {})).rows;
  };
  for await (const some of sortedIds(ids, { ...dependencies, limit: request.limit }))
    yield await page(dependencies, request, some);
}

/** Ids of removed objects of one class that have versions, sorted. */
export async function* removedIds(
  dependencies: RowsDependencies,
  { principal, view, signal }: RowsRequest,
): AsyncGenerator<readonly string[]> {
  const ids = (): Promise<AsyncIterable<readonly { readonly id: string }[]>> =>
    Promise.resolve(dependencies.objects.unrestricted.removed(principal, view.path, signal ? { signal } : {}));
  yield* sortedIds(ids, { ...dependencies, limit: undefined });
}

async function* sortedIds(
  ids: () => Promise<AsyncIterable<readonly { readonly id?: Value }[]>>,
  { idsHeldMax = EXPORT_IDS_HELD_MAX, limit }: Pick<RowsDependencies, "idsHeldMax"> & Pick<RowsRequest, "limit">,
): AsyncGenerator<readonly string[]> {
  let left = limit ?? Infinity;
  let after = "";
  while (left > 0) {
    const some = await smallest(await ids(), { after, count: Math.min(left, idsHeldMax) });
    for (let at = 0; at < some.length; at += EXPORT_PAGE_ROWS) yield some.slice(at, at + EXPORT_PAGE_ROWS);
    after = some.at(-1) ?? after;
    left = some.length < idsHeldMax ? 0 : left - some.length;
  }
}

async function smallest(
  ids: AsyncIterable<readonly { readonly id?: Value }[]>,
  { after, count }: { readonly after: string; readonly count: number },
): Promise<readonly string[]> {
  let held: string[] = [];
  for await (const some of ids) {
    for (const { id } of some) if (typeof id === "string" && id > after) held.push(id);
    if (held.length > 2 * count) held = held.sort(byText).slice(0, count);
  }
  return held.sort(byText).slice(0, count);
}

async function page(
  dependencies: RowsDependencies,
  request: RowsRequest,
  ids: readonly string[],
): Promise<readonly ExportedObject[]> {
  const { principal, view, signal } = request;
  const items = ["*", ...(request.more ?? [])].join(", ");
  const text = `SELECT ${items} FROM ${view.path} WHERE id IN (?) LIMIT -1`;
  const { rows } = await dependencies.query.run(principal, text, { values: [[ids]], ...(signal ? { signal } : {}) });
  const relations = await relationsOf(dependencies, request, ids);
  const found = new Map<string, ExportedObject>();
  for await (const some of rows) {
    for (const values of some) {
      const id = String(values.id);
      found.set(id, { id, values, relations: relations.get(id) ?? new Map<string, readonly string[]>() });
    }
  }
  return ids.flatMap((id) => found.get(id) ?? []);
}

type Relations = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

async function relationsOf(
  dependencies: RowsDependencies,
  { principal, view, signal }: RowsRequest,
  ids: readonly string[],
): Promise<Relations> {
  const catalog = await dependencies.objects.catalog(principal);
  if (view.kind === "record" || view.system || catalog.edgeTypes().length === 0) return new Map();
  const refs = ids.map((id) => ({ id, class: view.path }));
  const targets = new Map<string, Map<string, Set<string>>>();
  for await (const edges of dependencies.objects.visible.edges(principal, refs, {
    direction: "out",
    ...(signal ? { signal } : {}),
  })) {
    for (const { source, sourceClass, type, target } of edges) {
      if (sourceClass === view.path)
        memberOf(
          memberOf(targets, source, () => new Map<string, Set<string>>()),
          type,
          () => new Set<string>(),
        ).add(target);
    }
  }
  return new Map([...targets].map(([id, byType]) => [id, sortedTargets(byType)]));
}

function sortedTargets(byType: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyMap<string, readonly string[]> {
  const types = [...byType.keys()].sort(byText);
  return new Map(types.map((type) => [type, [...(byType.get(type) ?? [])].sort(byText)]));
}

function memberOf<T>(members: Map<string, T>, name: string, make: () => T): T {
  const known = members.get(name);
  if (known !== undefined) return known;
  const made = make();
  members.set(name, made);
  return made;
}

/** Compares by UTF-16 units, so the order does not depend on the locale. */
function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
