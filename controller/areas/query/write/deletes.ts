import { CHANGE_SLICE_MAX } from "../../../../common/limits.ts";
import type { Delete } from "../../../../common/mql/index.ts";
import type { ObjectRow, ReadRequest, RemoveOptions } from "../../objects/index.ts";
import { type Arguments, rowCount } from "../expressions/literal.ts";
import type { Predicate } from "../expressions/predicate.ts";
import { cellsOf, type Scope } from "../plan/names/scope.ts";
import { Slices } from "../run/slice.ts";
import { dependence, selectedBy } from "./selected-objects.ts";
import {
  type Change,
  collect,
  guarded,
  limited,
  presetTime,
  type Ref,
  requireSomeWritable,
  requireWritable,
  requireWriting,
  type WriteContext,
} from "./write.ts";

export function bindDelete(statement: Delete, scope: Scope, values: Arguments): Change {
  requireSomeWritable(scope);
  const selected = selectedBy(statement.where, scope, values);
  const limit = statement.limit ? rowCount(statement.limit, values) : undefined;
  const found = (context: WriteContext) =>
    selected.found(context, statement.withVersion ? removedObjects({ scope, ...selected }, context) : undefined);
  const isAtOnce = selected.follows !== undefined || areFew(selected.reads, limit);
  const removal = { scope, withVersions: statement.withVersion, isAtOnce };
  return {
    scope,
    ...dependence(selected),
    edits: () => [],
    run: (context) => removeFound(found(context), { ...removal, limit, context }),
    find: (context) => collect(limited(found(context), limit), (row) => requireRemovable(scope, row)),
    make: (refs, context) => removeAll(refs, { ...removal, context }),
  };
}

/** The last state of removed objects that still have versions. */
async function* removedObjects(
  wanted: { readonly scope: Scope; readonly reads: readonly ReadRequest[]; readonly filter: Predicate<ObjectRow> },
  context: WriteContext,
): AsyncIterable<readonly ObjectRow[]> {
  const { scope, reads, filter } = wanted;
  const slices = new Slices(context);
  const ids = reads[0]?.ids;
  for (const view of scope.classes.filter(({ kind, system }) => kind === "entity" && !system)) {
    slices.check();
    const options = { ...(ids === undefined ? {} : { ids }), ...(context.signal ? { signal: context.signal } : {}) };
    for await (const rows of context.objects.unrestricted.removedObjects(scope.principal, view.path, options)) {
      if (slices.isOverNow()) await slices.pause();
      yield rows.filter((row) => filter(row) === true);
    }
  }
}

/** True if all objects fit in one commit. */
function areFew(reads: readonly ReadRequest[], limit = Infinity): boolean {
  const most = reads.reduce((sum, { ids }) => sum + (ids?.length ?? Infinity), 0);
  return Math.min(most, limit) <= CHANGE_SLICE_MAX;
}

/**
 * Removes up to `limit` objects while they are found, and returns their number. Finds all of them first if some class
 * or row may not be writable, or with `isAtOnce`: if the condition follows relations, whose targets may be removed, too,
 * and if the objects are few, because their removal is one commit then.
 */
export async function removeFound(
  found: AsyncIterable<readonly ObjectRow[]>,
  removal: Removal & { readonly limit: number | undefined; readonly isAtOnce?: boolean },
): Promise<number> {
  const { scope, limit, isAtOnce = false } = removal;
  const pages = limited(found, limit);
  const isUniform =
    !isAtOnce && scope.classes.every((view) => scope.access(view).writable) && cellsOf(scope) === undefined;
  if (!isUniform) return removeAll(await collect(pages, (row) => requireRemovable(scope, row)), removal);
  const { context } = removal;
  let count = 0;
  for await (const rows of pages)
    count += await removeAll(rows, { ...removal, context: { ...context, inCommit: undefined } });
  return count;
}

function requireRemovable(scope: Scope, row: ObjectRow): void {
  requireWritable(scope, row.class);
  requireWriting(scope, row.class, [], { before: row });
}

interface Removal {
  readonly scope: Scope;
  readonly context: Pick<WriteContext, "objects" | "inCommit">;
  readonly withVersions: boolean;
}

async function removeAll(rows: readonly Ref[], removal: Removal): Promise<number> {
  let count = 0;
  const groups = [...alike(rows)];
  const inCommit = groups.length === 1 ? removal.context.inCommit : undefined;
  for (const [first, refs] of groups) {
    requireWritable(removal.scope, first.class);
    count += await removeAlike(first, refs, { ...removal, inCommit });
  }
  return count;
}

async function removeAlike(
  first: Ref,
  refs: readonly Ref[],
  removal: Removal & Pick<RemoveOptions, "inCommit">,
): Promise<number> {
  const { principal } = removal.scope;
  const view = first.class;
  if (!view.system) {
    const targets = refs.map(({ id }) => ({ id, class: view.path }));
    return removal.context.objects.unrestricted.remove(principal, targets, {
      ...presetTime(first),
      ...(removal.withVersions ? { withVersions: true } : {}),
      inCommit: removal.inCommit,
    });
  }
  const remove = view.guard?.remove;
  if (!remove) throw guarded("deleted", view);
  return remove(
    principal,
    refs.map(({ id }) => id),
  );
}

/** Refs grouped by class and time of the write. Each group comes with its first ref. */
function alike(rows: readonly Ref[]): Iterable<readonly [Ref, readonly Ref[]]> {
  const groups = new Map<string, [Ref, Ref[]]>();
  for (const row of rows) {
    const key = `${row.class.cid} ${row.writeUs ?? ""}`;
    const group = groups.get(key);
    if (group) group[1].push(row);
    else groups.set(key, [row, [row]]);
  }
  return groups.values();
}
