import type { ClassInfo, FieldInfo } from "../../../common/api/schema.ts";
import { AppError } from "../../../common/errors.ts";
import {
  type AlterClass,
  type ClassAlteration,
  type ClassOption,
  type ClassRef,
  type ColumnDefinition,
  type CreateClass,
  mapNode,
  NOWHERE,
  valueNode,
} from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import { type ClassView, type Column, RECORD_COLUMNS } from "../objects/index.ts";
import { isPseudo } from "../query/index.ts";

const CLASS_PATH = /^(\/[\p{L}\p{N}_]+)+$/u;
const TYPE = /^\s*(\w+)\s*(?:<\s*(\w+(?:\s*,\s*\w+)*)\s*>)?\s*$/;

/** A posted class with its defaults filled in. */
interface Wanted {
  readonly path: string;
  readonly columns: readonly ColumnDefinition[];
  readonly keys: readonly string[];
  readonly indexes: readonly string[];
}

/** Path of the class. `AppError("invalid")` if the text is no path, because it becomes part of a statement. */
export function classPath(text: string): string {
  const path = text.length > 1 ? text.replace(/\/$/, "") : text;
  if (CLASS_PATH.test(path)) return path;
  throw new AppError("invalid", `[Valid] class ${JSON.stringify(text)}: a path is /a/b/c of letters, digits and _.`, {
    details: { fields: ["class"] },
  });
}

export function classRef(path: string): ClassRef {
  return { kind: "class", path: classPath(path), subtree: false, alias: undefined, span: NOWHERE };
}

/** `CREATE CLASS` for a class that does not exist, below the superclass whose options it inherits. */
export function creation(info: ClassInfo, above: ClassView | undefined): CreateClass {
  const { path, columns, keys, indexes } = wanted(info);
  const options = [
    ...optionsOf(info, undefined, above),
    ...(info.kind === undefined ? [] : [option("kind", info.kind)]),
  ];
  return {
    kind: "createClass",
    ifNotExists: false,
    class: classRef(path),
    columns,
    keys,
    indexes,
    options,
    span: NOWHERE,
  };
}

/** An `ALTER CLASS` for each thing that the class lacks. */
export function extension(info: ClassInfo, view: ClassView): readonly AlterClass[] {
  const { path, columns, keys, indexes } = wanted(info, view);
  const missing = columns.filter((column) => isMissing(column, view.column(column.name)));
  const options = optionsOf(info, view);
  const alterations: ClassAlteration[] = [
    ...missing.map((column) => ({ kind: "addColumn" as const, column, span: NOWHERE })),
    ...keys
      .filter((name) => !view.keys.includes(name))
      .map((name) => ({ kind: "addKey" as const, name, span: NOWHERE })),
    ...indexes
      .filter((name) => !view.column(name)?.indexed)
      .map((name) => ({ kind: "addIndex" as const, name, type: undefined, span: NOWHERE })),
    ...(options.length === 0 ? [] : [{ kind: "setOptions" as const, options, span: NOWHERE }]),
  ];
  return alterations.map((alteration) => ({ kind: "alterClass", class: classRef(path), alteration, span: NOWHERE }));
}

function wanted(info: ClassInfo, view?: ClassView): Wanted {
  const kind = view?.kind ?? info.kind;
  const fields = (info.fields ?? []).filter(
    (field) => !isPseudo(nameOf(field)) && !(kind === "record" && isOfPlatform(field, view)),
  );
  const named = (flag: "iskey" | "isindex") =>
    fields.filter((field) => typeof field !== "string" && field[flag]).map(nameOf);
  return {
    path: classPath(info.class ?? info.name ?? ""),
    columns: fields.flatMap((field) => columnOf(field, view)),
    keys: [...new Set([...(info.keys ?? []), ...named("iskey")])],
    indexes: [...new Set([...(info.indexes ?? []), ...named("isindex")])],
  };
}

/**
 * True for a column that the platform adds to classes of records. Clients send such columns back when they save what
 * they have read.
 */
function isOfPlatform(field: FieldInfo | string, view: ClassView | undefined): boolean {
  const name = nameOf(field);
  const type = typeof field === "string" ? undefined : (field.type ?? field.ftype);
  const column = view?.column(name) === undefined ? RECORD_COLUMNS.find((one) => one.name === name) : undefined;
  return column !== undefined && (type === undefined || TYPE.exec(type)?.[1]?.toLowerCase() === column.type);
}

function nameOf(field: FieldInfo | string): string {
  return typeof field === "string" ? field : (field.name ?? field.colname ?? "");
}

/** Empty for an existing field that is only named. */
function columnOf(field: FieldInfo | string, view: ClassView | undefined): readonly ColumnDefinition[] {
  const name = nameOf(field);
  const text = typeof field === "string" ? undefined : (field.type ?? field.ftype);
  if (text === undefined && view?.column(name)) return [];
  const [, type, elements] = TYPE.exec(text ?? "") ?? [];
  if (name === "" || type === undefined) {
    throw new AppError(
      "invalid",
      `[Valid] fields: ${JSON.stringify(field)} needs a name and a type such as varchar or set<varchar>.`,
      { details: { fields: ["fields"] } },
    );
  }
  const parameters = typeof field === "string" ? undefined : field.fparam;
  return [
    {
      kind: "column",
      name,
      type: type.toLowerCase(),
      elements: elements?.toLowerCase().split(/\s*,\s*/) ?? elementTypes(parameters),
      details:
        parameters === undefined || Array.isArray(parameters)
          ? undefined
          : mapNode(parameters as Record<string, Value>),
      title: titleOf(field),
      span: NOWHERE,
    },
  ];
}

function elementTypes(parameters: FieldInfo["fparam"]): readonly string[] {
  const types = Array.isArray(parameters) ? (parameters as readonly string[]) : [];
  const wrong = types.find((type) => !/^\w+$/.test(type));
  if (wrong === undefined) return types;
  throw new AppError("invalid", `[Valid] fparam: there is no column type ${JSON.stringify(wrong)}.`, {
    details: { fields: ["fields"] },
  });
}

/** `undefined` for a title that only repeats the name. */
function titleOf(field: FieldInfo | string): string | undefined {
  const title = typeof field === "string" ? "" : field.title || field.dispname || "";
  return title === "" || title === nameOf(field) ? undefined : title;
}

/** True if the class lacks the column. `AppError("conflict")` if it has the column with another type. */
function isMissing(column: ColumnDefinition, known: Column | undefined): boolean {
  if (!known) return true;
  const isSame =
    known.type === column.type && (column.elements.length === 0 || String(known.elements) === String(column.elements));
  if (isSame) return false;
  throw new AppError("conflict", `[Valid] column ${column.name} exists already with the type ${known.type}.`, {
    details: { fields: ["fields"] },
  });
}

/** Options that differ from those of the class; for a new class, from those it inherits. */
function optionsOf(info: ClassInfo, view: ClassView | undefined, above = view): readonly ClassOption[] {
  const now = view?.options;
  const inherited = above?.options;
  const options: ClassOption[] = [];
  const add = (name: string, value: Value | undefined, before: Value | undefined) => {
    if (value !== undefined && value !== (before ?? "")) options.push(option(name, value));
  };
  for (const name of ["alias", "nickname", "remedy"] as const) add(name, info[name], now?.[name]);
  add("key", info.keymode, now?.keyMode);
  add("ttl", info.ttl, String(inherited?.ttlSeconds ?? -1));
  add("autosearch", info.autosearch, inherited?.autosearch ?? false);
  add("version", info.version, inherited?.version ?? false);
  add("versionttl", info.versionttl, String(inherited?.versionTtlSeconds ?? -1));
  add("time_zone", info.time_zone, inherited?.timeZone);
  for (const [name, value] of Object.entries(info.loption ?? {})) {
    const isKept = now !== undefined && JSON.stringify(now.hints[name]) === JSON.stringify(value);
    if (!isKept) options.push(option(name, value as Value));
  }
  return options;
}

function option(name: string, value: Value): ClassOption {
  return { kind: "option", name, value: valueNode(value), unit: undefined, span: NOWHERE };
}
