import { AppError } from "../../../../common/errors.ts";
import { QUERY_UPDATE_MAX_ROWS, QUERY_WRITES_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import type { Delete, Update } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import {
  canonicalValue,
  type ClassView,
  type Edit,
  type ObjectRow,
  type Objects,
  type ReadRequest,
  type PresetUpdate,
  type UpdateOptions,
} from "../../objects/index.ts";
import { requireMayChange } from "../../permissions/index.ts";
import { type Arguments, rowCount } from "../expressions/literal.ts";
import type { Predicate } from "../expressions/predicate.ts";
import type { RowChange } from "../plan/names/cells.ts";
import { cellsOf, type Scope, visibility } from "../plan/names/scope.ts";
import type { FollowPlan } from "../plan/relations.ts";
import type { RunContext } from "../run/run.ts";
import { Slices } from "../run/slice.ts";
import type { SubAnswers, SubSelects } from "../run/subselects.ts";
import {
  type BoundEdit,
  boundEdits,
  checkEdited,
  computedFor,
  computesFor,
  editsFor,
  isOfRow,
  type UpdateTarget,
} from "./assignments.ts";
import { withEdits } from "./edits.ts";
import { dependence, selectedBy } from "./selected-objects.ts";
import type { WrittenRelation } from "./missing-ends.ts";

export interface WriteContext extends RunContext {
  readonly objects: Objects;
  readonly values: Arguments;
}

/** A bound change of the objects that fulfil a condition. */
export interface Change {
  readonly scope: Scope;
  /** All reads on which the choice of the objects depends. */
  readonly reads: readonly ReadRequest[];
  readonly follows?: FollowPlan | undefined;
  /** Relations that the change writes; absent: none. */
  readonly relations?: readonly WrittenRelation[];
  /** Columns whose values are computed from each object; absent: none. */
  readonly computed?: readonly string[];
  /** Subselects of the change; absent: none. */
  readonly asks?: AskedSelects | undefined;
  /** Edits of objects of that class, without computed ones. Empty for a removal. */
  edits(view: ClassView): readonly Edit[];
  /** Makes the change and returns the number of changed objects. */
  run(context: WriteContext): Promise<number>;
  /** Finds all objects of the change, after checks of rights and row conditions. */
  find(context: WriteContext): Promise<readonly Ref[]>;
  /** Changes only these objects and returns their number. */
  make(refs: readonly Ref[], context: WriteContext): Promise<number>;
}

/** The subselects of a change, and the change that results from their answers. */
export interface AskedSelects extends Pick<SubSelects<Update | Delete>, "unanswered" | "found" | "describe"> {
  /** True if a later run of the settled change needs the answers again, for its condition or its values. */
  readonly isKept: boolean;
  answered(answers: SubAnswers): Change;
}

export interface Ref extends PresetUpdate {
  readonly id: string;
  readonly class: ClassView;
}

export function bindUpdate(statement: Update, target: UpdateTarget): Change {
  const { scope, values } = target;
  const edits = boundEdits(statement.assignments, target);
  const change = bindEdits(edits, {
    scope,
    where: statement.where,
    values,
    limit: undefined,
    refresh: statement.refresh,
  });
  const written = edits.filter(({ isRelation, operation }) => isRelation && operation !== "take");
  return { ...change, relations: written.map(({ column, value }) => ({ type: column, value: value ?? null })) };
}

/** `DELETE column FROM …` clears the column. */
export function bindClear(
  statement: Delete,
  written: string,
  target: { readonly scope: Scope; readonly values: Arguments },
): Change {
  const column = target.scope.definedName(written) ?? written;
  checkEdited(column, "set", target.scope);
  const edits: readonly BoundEdit[] = [{ column, operation: "set", value: undefined, isRelation: false }];
  const limit = statement.limit && rowCount(statement.limit, target.values);
  return bindEdits(edits, { ...target, where: statement.where, limit, refresh: false });
}

export function bindDelete(statement: Delete, scope: Scope, values: Arguments): Change {
  requireSomeWritable(scope);
  const selected = selectedBy(statement.where, scope, values);
  const limit = statement.limit ? rowCount(statement.limit, values) : undefined;
  const found = (context: WriteContext) =>
    selected.found(context, statement.withVersion ? removedObjects({ scope, ...selected }, context) : undefined);
  const removal = { scope, withVersions: statement.withVersion, isFollowing: selected.follows !== undefined };
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

/**
 * Removes up to `limit` objects while they are found, and returns their number. Finds all of them first if some class
 * or row may not be writable, or if the condition follows relations, because their targets may be removed, too.
 */
export async function removeFound(
  found: AsyncIterable<readonly ObjectRow[]>,
  removal: Removal & { readonly limit: number | undefined; readonly isFollowing?: boolean },
): Promise<number> {
  const { scope, limit, isFollowing = false } = removal;
  const pages = limited(found, limit);
  const isUniform =
    !isFollowing && scope.classes.every((view) => scope.access(view).writable) && cellsOf(scope) === undefined;
  const batches = isUniform ? pages : whole(collect(pages, (row) => requireRemovable(scope, row)));
  let count = 0;
  for await (const rows of batches) count += await removeAll(rows, removal);
  return count;
}

interface EditTarget {
  readonly scope: Scope;
  readonly where: Update["where"];
  readonly values: Arguments;
  readonly limit: number | undefined;
  /** True if the index entries of the found objects are written again. */
  readonly refresh: boolean;
}

/** Finds all objects before it changes the first one, because a changed object could be found again. */
function bindEdits(edits: readonly BoundEdit[], target: EditTarget): Change {
  const { scope, where, values, limit, refresh } = target;
  requireSomeWritable(scope);
  const selected = selectedBy(where, scope, values);
  const visible = visibility(scope);
  const editsOf = (view: ClassView) => editsFor(view, edits, scope);
  const wholeEdits = (row: ObjectRow) => [...editsOf(row.class), ...computedFor(row, edits, scope)];
  const compute: EditedObjects["compute"] = (row) => {
    if (selected.filter(row) !== true) return undefined;
    checkEditedRow(row, wholeEdits(row), { scope, visible });
    return computedFor(row, edits, scope);
  };
  const find: Change["find"] = (context) => {
    return collect(limited(selected.found(context), limit), (row) =>
      checkEditedRow(row, wholeEdits(row), { scope, visible }),
    );
  };
  const make: Change["make"] = async (refs, context) => {
    const count = await applyEdits(refs, edits, { scope, context, compute });
    if (refresh)
      await context.objects.unrestricted.refresh(
        scope.principal,
        refs.map(({ id, class: { path } }) => ({ id, class: path })),
      );
    return count;
  };
  const computed = edits.filter(isOfRow).map(({ column }) => column);
  return {
    scope,
    ...dependence(selected),
    computed,
    edits: editsOf,
    find,
    make,
    run: async (context) => make(await find(context), context),
  };
}

/** Checks the right to write the object, and that the principal still sees it after the write. */
function checkEditedRow(
  row: ObjectRow,
  edits: readonly Edit[],
  rule: { readonly scope: Scope; readonly visible: Predicate<ObjectRow> },
): void {
  const { scope, visible } = rule;
  requireWritable(scope, row.class);
  if (!isRuledByRow(scope, row.class)) return;
  const after = { ...row, values: withEdits(row, edits) };
  if (visible(after) !== true) throw outsideRule(scope, row.class);
  const columns = edits.map(({ column }) => column).filter((name) => !scope.isRelation(name));
  requireWriting(scope, row.class, columns, { before: row, after });
}

/** True if the right to write depends on the object, before or after the write. */
export function isRuledByRow(scope: Scope, view: ClassView): boolean {
  return scope.isRuled(view) || scope.access(view).parts.length > 1;
}

/** `AppError("denied")` if for a column no group alone has both the column and the object, before and after. */
export function requireWriting(scope: Scope, view: ClassView, columns: readonly string[], change: RowChange): void {
  const cells = cellsOf(scope);
  if (cells === undefined || cells.mayWrite(view, columns, change)) return;
  const closed = columns.filter((name) => !cells.mayWrite(view, [name], change));
  const what = closed.length > 0 ? `${closed.join(", ")} of this object` : "this object";
  throw new AppError("denied", `${scope.principal.user} may not write ${what} of ${view.path}.`, {
    details: { class: view.path },
  });
}

function requireRemovable(scope: Scope, row: ObjectRow): void {
  requireWritable(scope, row.class);
  requireWriting(scope, row.class, [], { before: row });
}

async function collect(
  pages: AsyncIterable<readonly ObjectRow[]>,
  check: (row: ObjectRow) => void,
): Promise<readonly Ref[]> {
  const refs = new Map<string, Ref>();
  for await (const page of pages) {
    for (const row of page) {
      check(row);
      refs.set(`${row.class.cid} ${row.id}`, { id: row.id, class: row.class });
    }
    if (refs.size <= QUERY_UPDATE_MAX_ROWS) continue;
    throw new AppError(
      "too_large",
      `[Exec] The statement would change more than ${QUERY_UPDATE_MAX_ROWS} objects: narrow it by WHERE.`,
      {
        details: { limit: "QUERY_UPDATE_MAX_ROWS" },
      },
    );
  }
  return [...refs.values()];
}

async function* whole<T>(rows: Promise<readonly T[]>): AsyncIterable<readonly T[]> {
  yield await rows;
}

async function* limited<T>(pages: AsyncIterable<readonly T[]>, limit: number | undefined): AsyncIterable<readonly T[]> {
  let left = limit ?? Infinity;
  if (left === 0) return;
  for await (const page of pages) {
    yield page.slice(0, left);
    left -= page.length;
    if (left <= 0) return;
  }
}

interface EditedObjects {
  readonly scope: Scope;
  readonly context: WriteContext;
  readonly compute: NonNullable<UpdateOptions["compute"]>;
}

async function applyEdits(refs: readonly Ref[], edits: readonly BoundEdit[], target: EditedObjects): Promise<number> {
  const { context } = target;
  let count = 0;
  for (let at = 0; at < refs.length; at += QUERY_WRITES_IN_FLIGHT_MAX) {
    const slice = refs.slice(at, at + QUERY_WRITES_IN_FLIGHT_MAX);
    const changed = await Promise.all(slice.map((ref) => applyEdit(ref, edits, target)));
    count += changed.filter(Boolean).length;
    new Slices(context).check();
  }
  return count;
}

async function applyEdit(
  ref: Ref,
  bound: readonly BoundEdit[],
  { scope, context, compute }: EditedObjects,
): Promise<boolean> {
  const { principal } = scope;
  const edits = editsFor(ref.class, bound, scope);
  const isComputed = computesFor(ref.class, bound, scope);
  if (edits.length === 0 && !isComputed) return false;
  if (!ref.class.system) {
    return context.objects.unrestricted.update(principal, { id: ref.id, class: ref.class.path }, edits, {
      ...presetTime(ref),
      ...(isComputed ? { compute } : {}),
    });
  }
  const update = ref.class.guard?.update;
  if (!update) throw guarded("updated", ref.class);
  return update(principal, ref.id, edits);
}

interface Removal {
  readonly scope: Scope;
  readonly context: Pick<WriteContext, "objects">;
  readonly withVersions: boolean;
}

async function removeAll(rows: readonly Ref[], removal: Removal): Promise<number> {
  let count = 0;
  for (const [first, refs] of alike(rows)) {
    requireWritable(removal.scope, first.class);
    count += await removeAlike(first, refs, removal);
  }
  return count;
}

async function removeAlike(first: Ref, refs: readonly Ref[], removal: Removal): Promise<number> {
  const { principal } = removal.scope;
  const view = first.class;
  if (!view.system) {
    const targets = refs.map(({ id }) => ({ id, class: view.path }));
    return removal.context.objects.unrestricted.remove(principal, targets, {
      ...presetTime(first),
      ...(removal.withVersions ? { withVersions: true } : {}),
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

function presetTime({ writeUs, retimed }: Ref): PresetUpdate {
  return { ...(writeUs === undefined ? {} : { writeUs }), ...(retimed ? { retimed } : {}) };
}

export function requireWritable(scope: Scope, view: ClassView): void {
  if (scope.access(view).writable) return;
  requireMayChange(scope.principal);
  throw new AppError("denied", `${scope.principal.user} may not write objects of ${view.path}.`, {
    details: { class: view.path },
  });
}

export function requireSomeWritable(scope: Scope): void {
  const [first] = scope.classes;
  if (first && !scope.classes.some((view) => scope.access(view).writable)) requireWritable(scope, first);
}

export function outsideRule(scope: Scope, view: ClassView): AppError {
  return new AppError(
    "denied",
    `${scope.principal.user} may not write this object of ${view.path}: it does not fulfil the row condition.`,
  );
}

export function guarded(done: string, view: ClassView): AppError {
  return new AppError("denied", `Objects of ${view.path} cannot be ${done} by MQL.`, { details: { class: view.path } });
}

/** The row with values as their columns store them. Throws an error that names the column if a value does not fit. */
export function canonicalRow(view: ClassView, row: Row): Row {
  const result: Row = {};
  for (const name of Object.keys(row)) {
    const column = view.column(name) ?? view.recordColumns?.find((one) => one.name === name);
    if (column) result[name] = canonicalValue(column, row[name] ?? null) ?? null;
  }
  return result;
}
