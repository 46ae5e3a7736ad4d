import { lazyPages } from "../../../../common/pages.ts";
import type {
  ClassCatalog,
  ClassView,
  ObjectEdge,
  ObjectRef,
  ObjectRow,
  Objects,
  ReadRequest,
  VisibleEdges,
  VisibleObject,
  VisibleObjects,
  VisibleRead,
} from "../../objects/index.ts";
import { classAccess, type Principal, rowLimit } from "../../permissions/index.ts";
import { readsOf } from "../plan/plan.ts";
import { cellsOf, scopeOf, visibility, type Scope } from "../plan/names/scope.ts";
import { visibleRecords } from "./records.ts";
import { visibleClass } from "./rows.ts";

type Source = Pick<Objects, "catalog" | "unrestricted">;

/** Objects with the rights on rows and columns that queries have. */
export function visibleObjects(objects: Source): VisibleObjects {
  return {
    get: (principal, refs) => get(objects, principal, refs),
    read: (principal, request) => lazyPages(() => read(objects, principal, request)),
    edges: (principal, refs, request) => lazyPages(() => edges(objects, principal, { refs, request })),
    of: async (principal, path) => visibleClass(principal, await objects.catalog(principal), path),
    records: (principal, path) => visibleRecords(principal, objects, path),
  };
}

/** The object without its hidden values; `undefined` if it does not exist for the principal. */
type Look = (object: ObjectRow) => VisibleObject | undefined;

function lookOf(scope: Scope): Look {
  const [sees, cells] = [visibility(scope), cellsOf(scope)];
  return (object) => {
    if (sees(object) !== true) return undefined;
    const { class: view, values } = object;
    const hidden = cells?.hiddenIn(object) ?? scope.access(view).hidden;
    const shown = Object.entries(values).filter(
      ([name]) => scope.tree.column(view, name) !== undefined && !hidden.has(name),
    );
    return { ...object, values: Object.fromEntries(shown), hidden };
  };
}

type Target = Pick<VisibleRead, "class" | "subtree">;

function targetScope(principal: Principal, catalog: ClassCatalog, { class: path, subtree }: Target): Scope {
  return scopeOf(principal, catalog, { path, subtree, alias: undefined });
}

async function get(
  objects: Source,
  principal: Principal,
  refs: readonly ObjectRef[],
): Promise<readonly (VisibleObject | undefined)[]> {
  const catalog = await objects.catalog(principal);
  const looks = new Map<string, Look>();
  const found = await objects.unrestricted.get(principal, refs);
  return found.map((object) => {
    if (object === undefined) return undefined;
    const { path } = object.class;
    let look = looks.get(path);
    if (look === undefined)
      looks.set(path, (look = lookOf(targetScope(principal, catalog, { class: path, subtree: false }))));
    return look(object);
  });
}

async function read(
  objects: Source,
  principal: Principal,
  request: VisibleRead,
): Promise<AsyncIterable<readonly VisibleObject[]>> {
  const scope = targetScope(principal, await objects.catalog(principal), request);
  if (request.selects === undefined) requireVisible(scope, request);
  return pages(objects, scope, request);
}

async function* pages(objects: Source, scope: Scope, request: VisibleRead): AsyncGenerator<readonly VisibleObject[]> {
  const [look, { selects = () => true }] = [lookOf(scope), request];
  for (const part of partsOf(scope, request))
    for await (const page of objects.unrestricted.read(scope.principal, part))
      yield page.flatMap((object) => (selects(object) ? (look(object) ?? []) : []));
}

/** The reads that together cover every visible object. */
function partsOf(scope: Scope, request: VisibleRead): readonly ReadRequest[] {
  const { where = [], ids, newestFirst = false, expected, asOfMs, signal } = request;
  return readsOf(scope, undefined, { newestFirst, expected, asOfMs, values: [] }).map((part) => ({
    ...part,
    ...(ids && { ids }),
    ...(signal && { signal }),
    where: [...where, ...(part.where ?? [])],
  }));
}

/** An index of a hidden column would tell its values by the objects that it finds. */
function requireVisible(scope: Scope, { where = [] }: VisibleRead): void {
  for (const condition of where)
    if ("column" in condition && !scope.has(condition.column)) throw scope.unknownField([condition.column]);
}

async function edges(
  objects: Source,
  principal: Principal,
  { refs, request }: { readonly refs: readonly ObjectRef[]; readonly request: VisibleEdges },
): Promise<AsyncIterable<readonly ObjectEdge[]>> {
  const { onRead, ...edgesAsked } = request;
  const read = objects.unrestricted.edges(principal, refs, edgesAsked);
  const found = onRead === undefined ? read : reported(read, onRead);
  // No edge leads to a class that may not be read.
  const views = (await objects.catalog(principal)).tree("/");
  const whole = views.filter((view) => !hidesRows(principal, view)).map(({ path }) => path);
  return whole.length === views.length ? found : visibleEdges(objects, principal, { found, whole: new Set(whole) });
}

async function* reported(
  found: AsyncIterable<readonly ObjectEdge[]>,
  onRead: (edges: number) => void,
): AsyncGenerator<readonly ObjectEdge[]> {
  for await (const page of found) {
    onRead(page.length);
    yield page;
  }
}

async function* visibleEdges(
  objects: Source,
  principal: Principal,
  { found, whole }: { readonly found: AsyncIterable<readonly ObjectEdge[]>; readonly whole: ReadonlySet<string> },
): AsyncGenerator<readonly ObjectEdge[]> {
  for await (const page of found) {
    const asked = new Map<string, ObjectRef>();
    for (const end of page.flatMap(endsOf)) if (!whole.has(end.class)) asked.set(keyOf(end), end);
    const refs = [...asked.values()];
    const rows = refs.length === 0 ? [] : await get(objects, principal, refs);
    const hidden = new Set([...asked.keys()].filter((_, at) => rows[at] === undefined));
    yield page.filter((edge) => !endsOf(edge).some((end) => hidden.has(keyOf(end))));
  }
}

/** Two classes may have objects with the same id. */
function keyOf({ id, class: path }: EdgeEnd): string {
  return `${path} ${id}`;
}

type EdgeEnd = Required<ObjectRef>;

function endsOf({ source, sourceClass, target, targetClass }: ObjectEdge): readonly [EdgeEnd, EdgeEnd] {
  return [
    { id: source, class: sourceClass },
    { id: target, class: targetClass },
  ];
}

function hidesRows(principal: Principal, view: ClassView): boolean {
  return classAccess(principal, view).where !== undefined || rowLimit(principal, view) !== undefined;
}
