import type { ActionAnswer, ClassDetails, ClassInfo, ClassRecord, FieldRecord } from "../../../common/api/schema.ts";
import { AppError } from "../../../common/errors.ts";
import { listed } from "../../../common/text/listed.ts";
import { SCHEMA_PAGE_RECORDS, SCHEMA_TABLE_MAX_RECORDS } from "../../../common/limits.ts";
import { NOWHERE, printStatement, type Statement } from "../../../common/mql/index.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import { ThreadSlices } from "../../turns/slices.ts";
import type { Objects } from "../objects/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { type ClassChanges, definitionWarnings, type Query, type QueryMeta } from "../query/index.ts";
import { type Action, idOfObject, type Step, stepsOf } from "./actions.ts";
import { classPath, classRef, creation, extension } from "./definition.ts";
import { baseType, COLUMN_TYPES, indexOption } from "./field-types.ts";
import { VisibleSchema } from "./records.ts";

export interface SchemaDependencies {
  readonly objects: Pick<Objects, "catalog" | "indexStates">;
  readonly query: Query;
  readonly classes: ClassChanges;
  readonly runtime: Pick<Runtime, "clock">;
}

/** A whole table as one JSON text, as its clients expect it. */
export interface TableAnswer {
  readonly text: string;
  readonly meta: QueryMeta;
}

/** Classes and fields as records. Every change has the rights, guards and audit entry of an MQL statement. */
export class SchemaService {
  readonly #objects: Pick<Objects, "catalog" | "indexStates">;
  readonly #query: Query;
  readonly #classes: ClassChanges;
  readonly #clock: Clock;

  constructor({ objects, query, classes, runtime }: SchemaDependencies) {
    this.#classes = classes;
    this.#objects = objects;
    this.#query = query;
    this.#clock = runtime.clock;
  }

  /** `id` is a number: the classes below it. A path: that class and those below it. Absent or -1: the root classes. */
  async list(principal: Principal, id = "-1"): Promise<ClassRecord[]> {
    requirePermission(principal, "objects:read");
    const schema = await this.#visible(principal);
    if (id === "-1") return schema.roots().map((view) => schema.record(view));
    const view = schema.require(id);
    const views = [...(id.startsWith("/") ? [view] : []), ...schema.children(view)];
    return views.map((one) => schema.record(one));
  }

  /** The class and all below it, ordered by path. Absent or -1: all classes. */
  async *tree(principal: Principal, id = "-1"): AsyncGenerator<ClassRecord[]> {
    requirePermission(principal, "objects:read");
    const schema = await this.#visible(principal);
    const views = id === "-1" ? schema.classes : schema.tree(schema.require(id).path);
    for (let at = 0; at < views.length; at += SCHEMA_PAGE_RECORDS) {
      yield views.slice(at, at + SCHEMA_PAGE_RECORDS).map((view) => schema.record(view));
    }
  }

  async fields(principal: Principal, id: string): Promise<FieldRecord[]> {
    requirePermission(principal, "objects:read");
    const schema = await this.#indexed(principal);
    return schema.fields(schema.require(id));
  }

  async get(principal: Principal, id: string): Promise<ClassDetails> {
    requirePermission(principal, "objects:read");
    return this.#details(principal, id);
  }

  /** The possible types of a column, by name. */
  fieldTypes(principal: Principal): Readonly<Record<string, FieldType>> {
    requirePermission(principal, "objects:read");
    return Object.fromEntries(fieldTypes().map((type) => [type.name, type]));
  }

  /** The id that an insert would give to the object. `AppError("invalid")` if it is only known after the insert. */
  async idOf(principal: Principal, object: Row): Promise<string> {
    requirePermission(principal, "objects:read");
    return idOfObject(object, await this.#visible(principal));
  }

  /** The table `field`, `ftype` or `class`. `AppError("too_large")` beyond `SCHEMA_TABLE_MAX_RECORDS`. */
  async table(principal: Principal, name: string): Promise<TableAnswer> {
    requirePermission(principal, "objects:read");
    const schema = await this.#indexed(principal);
    const records = [...bounded(tableRecords(name, schema))];
    const columns = Object.entries(records[0] ?? {}).map(([column, value]) => ({
      name: column,
      title: column,
      type: typeOf(value),
    }));
    const rootclass = `/system/${name}`;
    return {
      text: JSON.stringify(records),
      meta: { type: "select", classes: {}, columns: { [rootclass]: columns }, rootclass },
    };
  }

  /**
   * Makes the class, or adds to an existing one what it lacks; nothing is removed. All of it is one change of the class.
   */
  async save(principal: Principal, info: ClassInfo, expected?: Expected): Promise<SavedClass> {
    requirePermission(principal, "objects:write");
    const path = classPath(info.class ?? info.name ?? "");
    const schema = await this.#visible(principal);
    const known = schema.find(path);
    const definer = { principal, catalog: await this.#objects.catalog(principal) };
    const warn = (statement: Statement) => definitionWarnings(statement, definer);
    let warnings: readonly string[] = [];
    if (known) {
      const steps = extension(info, known);
      warnings = steps.flatMap(warn);
      if (steps.length > 0 || expected !== undefined) await this.#classes.alter(principal, path, steps, expected);
    } else {
      const made = creation(info, schema.nearest(path));
      warnings = warn(made);
      await this.#classes.create(principal, made, expected);
    }
    return { details: await this.#details(principal, path), warnings };
  }

  async remove(principal: Principal, id: string, expected?: Expected): Promise<void> {
    requirePermission(principal, "objects:write");
    const view = (await this.#visible(principal)).require(id);
    const statement = { kind: "dropClass", ifExists: false, class: classRef(view.path), span: NOWHERE } as const;
    await this.#classes.drop(principal, statement, expected);
  }

  /**
   * Inserts objects, or updates existing ones, which are found by `id` or by the id that their keys make. Everything is
   * checked before the first write. `AppError("not_found")` if some objects of an update do not exist; the others are
   * written.
   */
  async act(principal: Principal, action: Action, signal?: AbortSignal): Promise<ActionAnswer> {
    requirePermission(principal, "objects:read");
    const slices = new ThreadSlices({ tenant: principal.tenant, clock: this.#clock, signal });
    const steps = await stepsOf(action, await this.#visible(principal), slices);
    const answered: Row[][] = [];
    for (const step of steps) answered.push(await this.#step(principal, step, signal));
    if (action.kind === "update") requireAll(steps, answered);
    const count = answered.flat().reduce((sum, row) => sum + Number(row.count), 0);
    return action.kind === "update" ? { count } : { count, ids: answered.flat().flatMap((row) => row.ids as string[]) };
  }

  async #visible(principal: Principal): Promise<VisibleSchema> {
    return new VisibleSchema(principal, await this.#objects.catalog(principal));
  }

  async #details(principal: Principal, id: string): Promise<ClassDetails> {
    const schema = await this.#indexed(principal);
    return schema.details(schema.require(id));
  }

  /** The visible schema with the progress of every index. */
  async #indexed(principal: Principal): Promise<VisibleSchema> {
    const [catalog, indexes] = await Promise.all([
      this.#objects.catalog(principal),
      this.#objects.indexStates(principal),
    ]);
    return new VisibleSchema(principal, catalog, indexes);
  }

  async #step(principal: Principal, { statement, values }: Step, signal: AbortSignal | undefined): Promise<Row[]> {
    const { rows } = await this.#query.run(principal, printStatement(statement), { values, ...(signal && { signal }) });
    const all: Row[] = [];
    for await (const page of rows) all.push(...page);
    return all;
  }
}

interface SavedClass {
  readonly details: ClassDetails;
  readonly warnings: readonly string[];
}

function* tableRecords(name: string, schema: VisibleSchema): Generator<object> {
  if (name === "field") yield* schema.allFields();
  else if (name === "class") for (const view of schema.classes) yield schema.record(view);
  else if (name === "ftype") yield* fieldTypes();
  else throw new AppError("not_found", `[NotExist] There is no table ${name}: field, ftype and class are there.`);
}

interface FieldType {
  readonly name: string;
  readonly title: string;
  readonly loption: Readonly<Record<string, string>>;
  readonly fparam: readonly string[];
  readonly btype: string;
}

function fieldTypes(): readonly FieldType[] {
  return COLUMN_TYPES.map((type) => ({
    name: type,
    title: type,
    loption: indexOption(type),
    fparam: [],
    btype: baseType(type),
  }));
}

function* bounded(records: Iterable<object>): Generator<object> {
  let count = 0;
  for (const record of records) {
    if (++count > SCHEMA_TABLE_MAX_RECORDS) {
      throw new AppError("too_large", `[Exec] The table has more than ${SCHEMA_TABLE_MAX_RECORDS} records.`, {
        details: { limit: "SCHEMA_TABLE_MAX_RECORDS" },
      });
    }
    yield record;
  }
}

function typeOf(value: unknown): string {
  if (typeof value === "number") return "bigint";
  if (typeof value === "boolean") return "boolean";
  return Array.isArray(value) ? "list" : typeof value === "object" ? "map" : "varchar";
}

/** Checks that every update changed its object: each execution reports the number of changed objects. */
function requireAll(steps: readonly Step[], answered: readonly (readonly Row[])[]): void {
  const missing = steps.flatMap((step, index) =>
    (answered[index] ?? []).flatMap((row, at) => (row.count === 0 ? [`data[${step.from + at}]`] : [])),
  );
  if (missing.length === 0) return;
  throw new AppError("not_found", `[NotExist] There is no object of ${listed(missing)}; the others are updated.`, {
    details: { fields: missing.slice(0, 10) },
  });
}
