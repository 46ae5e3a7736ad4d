import { AppError } from "../../../../common/errors.ts";
import { type Assignment, isValueNode, type Operand } from "../../../../common/mql/index.ts";
import type { ClassView, Edit, ObjectRow } from "../../objects/index.ts";
import { kindOf } from "../expressions/kind.ts";
import { type Arguments, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { isPseudo } from "../plan/names/pseudo.ts";
import type { Scope } from "../plan/names/scope.ts";
import { type Assigned, bindAssigned } from "./assigned.ts";

export interface UpdateTarget {
  readonly scope: Scope;
  readonly values: Arguments;
}

/** The edits of `SET`, after their names and types are checked. */
export function boundEdits(assignments: readonly Assignment[], target: UpdateTarget): readonly BoundEdit[] {
  const edits = assignments.flatMap((assignment) => about(assignment.span, () => boundEdit(assignment, target)));
  const twice = edits.find(({ column, assigned }, at) =>
    edits.some((other, index) => index !== at && other.column === column && (assigned ?? other.assigned)),
  );
  if (!twice) return edits;
  throw new AppError(
    "invalid",
    `[Valid] ${twice.column} is set twice: what is computed sees the object as it was before.`,
  );
}

function boundEdit(assignment: Assignment, { scope, values }: UpdateTarget): readonly BoundEdit[] {
  const column = editedName(assignment, scope);
  const isRelation = scope.isRelation(column);
  const { operation, value } = withExpression(assignment, column, scope);
  if (!isRelation) checkEdited(column, operation, scope);
  if (isPseudo(column)) return [];
  if (isValueNode(value)) return [{ column, operation, value: literal(value, values) ?? undefined, isRelation }];
  if (isRelation) throw onlyIds(column);
  const assigned = bindAssigned(value, { name: column, scope, values });
  requireOwnWrites(column, scope);
  return [{ column, operation, value: undefined, isRelation, assigned }];
}

/** `n = n + 1` is a computed value if the column does not hold several values. */
function withExpression(
  { operation, value, repeated, span, ...assignment }: Assignment,
  column: string,
  scope: Scope,
): { readonly operation: Edit["operation"]; readonly value: Operand } {
  const columns = scope.columnsNamed(column);
  const holdsSeveral = columns.some((one) => ["list", "map"].includes(kindOf(one).type));
  if (operation === "set" || columns.length === 0 || holdsSeveral) return { operation, value };
  const field = { kind: "field" as const, parts: [repeated ?? assignment.column], span };
  const sign = operation === "add" ? "+" : "-";
  return { operation: "set", value: { kind: "computed", name: sign, operands: [field, value], span } };
}

/** Refuses computed values for system classes, because their owners accept only given values. */
function requireOwnWrites(column: string, scope: Scope): void {
  const owned = scope.classes.find((view) => view.system && scope.access(view).writable && scope.column(view, column));
  if (!owned) return;
  throw new AppError(
    "invalid",
    `[Valid] class ${owned.path} belongs to the platform: SET takes values there, nothing computed.`,
  );
}

function onlyIds(column: string): AppError {
  return new AppError(
    "invalid",
    `[Valid] ${column} is a relation: it is set to ids of objects, and to nothing computed.`,
  );
}

/** Defined name of the column. In `f = F + v` both names must mean the same column. */
function editedName({ column, repeated = column }: Pick<Assignment, "column" | "repeated">, scope: Scope): string {
  const name = scope.definedName(column) ?? column;
  if (repeated === column || scope.definedName(repeated) === name) return name;
  throw new AppError(
    "invalid",
    `[Valid] ${column} = ${repeated} … adds to a column or takes from it: both have to be the same.`,
  );
}

/** An edit of a column, or of a relation, which objects of any class have. */
export interface BoundEdit extends Edit {
  readonly isRelation: boolean;
  /** Computes the value; absent: the value is given. */
  readonly assigned?: Assigned;
}

export function checkEdited(name: string, operation: Edit["operation"], scope: Scope): void {
  if (name === "id") throw new AppError("invalid", "[Valid] The id of an object cannot be changed.");
  if (isPseudo(name)) return;
  const columns = scope.columnsNamed(name);
  if (columns.length === 0) throw scope.unknownField([name]);
  const holdsSeveral = columns.some((column) => ["list", "map"].includes(kindOf(column).type));
  if (operation !== "set" && !holdsSeveral) {
    throw new AppError(
      "invalid",
      `[Valid] ${name} = ${name} ${operation === "add" ? "+" : "-"} … is for sets, lists and maps; ${name} is a ${columns[0]?.type ?? ""}.`,
    );
  }
}

/** The edits for objects of that class, without computed ones. Columns that the class lacks are left out. */
export function editsFor(view: ClassView, edits: readonly BoundEdit[], scope: Scope): readonly Edit[] {
  return edits.flatMap((edit): readonly Edit[] => {
    const { column: name, operation, value, assigned, isRelation } = edit;
    const column = scope.column(view, name);
    if ((!isRelation && !column) || isOfRow(edit)) return [];
    return [{ column: name, operation, value: assigned && column ? assigned.constantFor?.(column) : value }];
  });
}

/** The edits whose values are computed from this object. */
export function computedFor(row: ObjectRow, edits: readonly BoundEdit[], scope: Scope): readonly Edit[] {
  return edits.filter(isOfRow).flatMap(({ column: name, assigned }): readonly Edit[] => {
    const column = scope.column(row.class, name);
    return column ? [{ column: name, operation: "set", value: assigned?.valueFor(column, row) }] : [];
  });
}

export function isOfRow({ assigned }: BoundEdit): boolean {
  return assigned !== undefined && assigned.constantFor === undefined;
}

/** True if an edit of objects of the class is computed from each object. */
export function computesFor(view: ClassView, edits: readonly BoundEdit[], scope: Scope): boolean {
  return edits.some((edit) => isOfRow(edit) && scope.column(view, edit.column) !== undefined);
}
