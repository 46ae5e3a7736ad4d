import { AppError, isAppError } from "../../../common/errors.ts";
import { unknownName } from "../../../common/text/nearest.ts";
import { formatObjectId, parseObjectId } from "../../../common/ids.ts";
import { QUERY_VALUE_ROWS_MAX } from "../../../common/limits.ts";
import { type Condition, type Insert, NOWHERE, type Placeholder, type Update } from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import { canonicalText, canonicalValue, type ClassView, idFromColumns, keptByPlatform } from "../objects/index.ts";
import { isPseudo } from "../query/index.ts";
import { classRef } from "./definition.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import type { VisibleSchema } from "./records.ts";

export interface Action {
  readonly kind: "insert" | "update";
  readonly objects: readonly Row[];
}

/** One statement for consecutive objects that name the same members of one class. */
export interface Step {
  readonly statement: Insert | Update;
  /** One list of values per object. */
  readonly values: readonly (readonly Value[])[];
  /** Index of its first object in the action. */
  readonly from: number;
}

interface Target {
  readonly view: ClassView;
  /** The object with its members spelled as in their definition. */
  readonly object: Row;
  readonly set: readonly string[];
  /** The id of the updated object. */
  readonly id?: Value;
}

/**
 * The steps of an action, in the order of its objects. It checks names and values of all objects, in slices. An error
 * names the object as `data[n]`.
 */
export async function stepsOf(
  action: Action,
  schema: VisibleSchema,
  slices: Pick<ThreadSlices, "isOverNow" | "pause">,
): Promise<readonly Step[]> {
  const steps: { signature: string; step: Step & { readonly values: (readonly Value[])[] } }[] = [];
  for (const [index, object] of action.objects.entries()) {
    if (slices.isOverNow()) await slices.pause();
    const target = named(index, () => targetOf(action.kind, object, schema));
    const values = [
      ...target.set.map((name) => target.object[name] ?? null),
      ...(target.id === undefined ? [] : [target.id]),
    ];
    const signature = JSON.stringify([target.view.cid, target.set]);
    const last = steps.at(-1);
    if (last?.signature === signature && last.step.values.length < QUERY_VALUE_ROWS_MAX) last.step.values.push(values);
    else
      steps.push({ signature, step: { statement: statementOf(action.kind, target), values: [values], from: index } });
  }
  return steps.map(({ step }) => step);
}

/** Adds the object's index to errors of `work`. */
function named<T>(index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw new AppError(error.code, `data[${index}]: ${error.message}`, {
      details: { ...error.details, fields: [`data[${index}]`] },
      cause: error,
    });
  }
}

function targetOf(kind: Action["kind"], given: Row, schema: VisibleSchema): Target {
  const view = classOf(given, schema);
  const object = withNames(given, view, schema);
  for (const [name, value] of Object.entries(object)) checkMember(name, value, { view, schema });
  const columns = Object.keys(object).filter((name) => !isPseudo(name));
  if (kind === "insert") return { view, object, set: object.id === undefined ? columns : ["id", ...columns] };
  const id = isGiven(object.id) ? object.id : idOf(object, view);
  const set = isGiven(object.id) ? columns : columns.filter((name) => !view.keys.includes(name));
  if (set.length === 0) throw new AppError("invalid", "[Valid] there is nothing to change in the object.");
  return { view, object, set, ...(id !== undefined && { id }) };
}

/** The class of an object: by its member `class`, otherwise by the part of its id before the first colon. */
function classOf(object: Row, schema: VisibleSchema): ClassView {
  if (typeof object.class === "string") return schema.require(object.class);
  const label =
    typeof object.id === "string" && object.id.includes(":") ? object.id.slice(0, object.id.indexOf(":")) : undefined;
  if (label === undefined) throw new AppError("invalid", "[Valid] the member class is missing.");
  const [view, another] = schema.byLabel(label);
  if (!view) throw new AppError("not_found", `[NotExist] Not Found Class For ID ${String(object.id)}`);
  if (another)
    throw new AppError(
      "invalid",
      `[Valid] ${view.path} and ${another.path} have such ids: the member class has to say which.`,
    );
  return view;
}

function checkMember(
  name: string,
  value: Value,
  where: { readonly view: ClassView; readonly schema: VisibleSchema },
): void {
  if (isPseudo(name)) return;
  const column = where.schema.column(where.view, name);
  if (column) canonicalValue(column, value);
  else if (where.view.recordColumns?.some((one) => one.name === name)) throw keptByPlatform(name, where.view);
  else if (!where.schema.isEdgeType(name))
    throw unknownName(`Field ${name} Not Exist`, { name, among: where.schema.namesOf(where.view) });
}

/** The id that an insert would give to the object. The object has the member `class`. */
export function idOfObject(given: Row, schema: VisibleSchema): string {
  const view = classOf(given, schema);
  const object = withNames(given, view, schema);
  if (!isGiven(object.id)) return idOf(object, view, "getid");
  const id = canonicalText(object.id ?? "");
  return parseObjectId(id)?.label === view.label ? id : formatObjectId(view.label, id);
}

function withNames(given: Row, view: ClassView, schema: VisibleSchema): Row {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [schema.memberName(view, name), value]));
}

/** The id from the object's keys, as an insert makes it. */
function idOf(object: Row, view: ClassView, what = "an update"): string {
  const keys = view.keys.flatMap((name) => {
    const column = view.column(name);
    const value = column && isGiven(object[name]) ? canonicalValue(column, object[name] ?? null) : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  const id = idFromColumns(view, Object.fromEntries(keys));
  if (id !== undefined) return id;
  throw new AppError(
    "invalid",
    `[Valid] ${what} needs the id${view.keys.length > 0 ? ` or the keys ${view.keys.join(", ")}` : ""} of its object.`,
  );
}

function isGiven(value: Value | undefined): boolean {
  return value !== undefined && value !== null && value !== "";
}

function statementOf(kind: Action["kind"], target: Target): Insert | Update {
  const common = { class: classRef(target.view.path), span: NOWHERE };
  if (kind === "insert")
    return {
      kind,
      ...common,
      form: "values",
      columns: target.set,
      rows: [target.set.map((_, index) => placeholder(index))],
      at: undefined,
    };
  const assignments = target.set.map((column, index) => ({
    kind: "assignment" as const,
    column,
    operation: "set" as const,
    value: placeholder(index),
    span: NOWHERE,
  }));
  return { kind, ...common, assignments, where: isObject(target.set.length), refresh: false };
}

function isObject(at: number): Condition {
  return {
    kind: "compare",
    operator: "=",
    left: { kind: "field", parts: ["id"], span: NOWHERE },
    right: placeholder(at),
    span: NOWHERE,
  };
}

function placeholder(index: number): Placeholder {
  return { kind: "placeholder", index, span: NOWHERE };
}
