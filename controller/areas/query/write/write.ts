import { AppError } from "../../../../common/errors.ts";
import { QUERY_UPDATE_MAX_ROWS, QUERY_WRITES_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import type { Delete, Update } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import {
  canonicalValue,
  type ClassView,
  type Edit,
  type InCommit,
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
  /** Audit entry for the commit of the only write; not used if there are several. */
  readonly inCommit?: InCommit | undefined;
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
    const inCommit = refs.length === 1 && !refresh ? context.inCommit : undefined;
    const count = await applyEdits(refs, edits, { scope, context, compute, inCommit });
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

export async function collect(
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

export async function* limited<T>(
  pages: AsyncIterable<readonly T[]>,
  limit: number | undefined,
): AsyncIterable<readonly T[]> {
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
  readonly inCommit: InCommit | undefined;
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
  { scope, context, compute, inCommit }: EditedObjects,
): Promise<boolean> {
  const { principal } = scope;
  const edits = editsFor(ref.class, bound, scope);
  const isComputed = computesFor(ref.class, bound, scope);
  if (edits.length === 0 && !isComputed) return false;
  if (!ref.class.system) {
    return context.objects.unrestricted.update(principal, { id: ref.id, class: ref.class.path }, edits, {
      ...presetTime(ref),
      ...(isComputed ? { compute } : {}),
      inCommit,
    });
  }
  const update = ref.class.guard?.update;
  if (!update) throw guarded("updated", ref.class);
  return update(principal, ref.id, edits);
}

export function presetTime({ writeUs, retimed }: Ref): PresetUpdate {
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
