import { AppError } from "../../../common/errors.ts";
import { type Condition, parseConditionText } from "../../../common/mql/index.ts";
import { isInside } from "../../../common/paths.ts";
import type { DataRule, FieldCondition } from "../permissions/index.ts";
import type { GroupRights } from "./types.ts";

/**
 * Compiles the rights of a group from the texts of an administrator. `AppError("invalid")` or `AppError("syntax")` for
 * a text that is no right.
 */
export function rulesOf(group: string, rights: GroupRights): readonly DataRule[] {
  const readable = rights.readonly.map((path) => classPath(path, "readonly"));
  const writable = rights.writable.map((path) => classPath(path, "writable"));
  const rows = rights.readexps.map(rowsOf);
  const columns = Object.entries(rights.fields).map(([path, list]) => columnsOf(classPath(path, "fields"), list));
  const anywhere = rows.flatMap(({ path, where, fields }) => (path === undefined ? [{ where, fields }] : []));
  const opened = { readable, writable, anywhere, opensAnywhere: readable.length + writable.length === 0 };
  const paths = new Set([
    ...readable,
    ...writable,
    ...rows.map(({ path = "/" }) => path),
    ...columns.map(({ path }) => path),
  ]);
  return [...paths].map((path) => ruleAt(path, { ...opened, group, rows, columns }));
}

/**
 * The columns that the rights name. `where` is the member that names them. `path` is their class; undefined: all
 * classes that have the columns.
 */
export function namedColumns({ readexps = [], fields = {} }: Partial<GroupRights>): readonly NamedColumns[] {
  const rows = readexps.map(rowsOf).map(({ path, fields: columns }) => ({ path, columns, where: "readexps" }));
  const columns = Object.entries(fields).map(([text, list]) => {
    const { path, hidden, shown = [] } = columnsOf(classPath(text, "fields"), list);
    return { path, columns: [...hidden, ...shown], where: "fields" };
  });
  return [...rows, ...columns];
}

interface NamedColumns {
  readonly path: string | undefined;
  readonly columns: readonly string[];
  readonly where: string;
}

interface Rows {
  /** Absent: every class that has the fields. */
  readonly path: string | undefined;
  readonly where: string;
  readonly fields: readonly string[];
}

interface Columns {
  readonly path: string;
  readonly hidden: readonly string[];
  /** Absent: all columns except the hidden ones. */
  readonly shown: readonly string[] | undefined;
}

interface Opened {
  readonly group: string;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly rows: readonly Rows[];
  readonly anywhere: readonly FieldCondition[];
  /**
   * True if the conditions without a path open rows by themselves. False if they only narrow the classes that the group
   * opens.
   */
  readonly opensAnywhere: boolean;
  readonly columns: readonly Columns[];
}

function ruleAt(path: string, opened: Opened): DataRule {
  const { group, anywhere } = opened;
  const covers = (root: string): boolean => isInside(root, path);
  const isWritable = opened.writable.some(covers);
  const isOpen = isWritable || opened.readable.some(covers);
  const texts = opened.rows.flatMap((rows) => (rows.path !== undefined && covers(rows.path) ? [rows.where] : []));
  const where = texts.length > 1 ? texts.map((text) => `(${text})`).join(" OR ") : texts[0];
  const asked = isOpen || opened.opensAnywhere ? anywhere : [];
  if (!isOpen && where === undefined && asked.length === 0) return { class: path, access: "none", group };
  return {
    class: path,
    access: isWritable ? "write" : "read",
    group,
    ...(where !== undefined && { where }),
    ...(asked.length > 0 && { anywhere: asked }),
    ...(!isOpen && { rowsOnly: true as const }),
    ...columnsAt(path, opened.columns),
  };
}

/** Columns for the class `path`: those of the longest path that contains it. */
function columnsAt(path: string, all: readonly Columns[]): Pick<DataRule, "hidden" | "shown"> {
  const [deciding] = all
    .filter((columns) => isInside(columns.path, path))
    .sort((a, b) => b.path.length - a.path.length);
  if (!deciding) return {};
  const { hidden, shown } = deciding;
  return { ...(hidden.length > 0 && { hidden }), ...(shown && { shown }) };
}

function rowsOf(text: string): Rows {
  const match = /^\s*(\/[^:]*?)\s*:(.*)$/s.exec(text);
  const where = (match?.[2] ?? text).trim();
  if (where === "") throw new AppError("invalid", `readexps: ${JSON.stringify(text)} has no condition.`);
  const condition = parsed(where);
  const fields = [...new Set(fieldsIn(condition))];
  return { path: match?.[1] === undefined ? undefined : classPath(match[1], "readexps"), where, fields };
}

function parsed(where: string): Condition {
  const condition = parseConditionText(where);
  for (const node of nodesIn(condition)) {
    if (node.kind === "call" || node.kind === "placeholder" || node.kind === "window")
      throw new AppError(
        "invalid",
        `readexps: ${where} asks more than a row condition may: fields, values, AND, OR, NOT.`,
      );
  }
  return condition;
}

/** The first part of each field name: `config` for `config.os`. */
function fieldsIn(condition: Condition): readonly string[] {
  const names: string[] = [];
  for (const node of nodesIn(condition)) {
    if (node.kind === "field" && Array.isArray(node.parts)) names.push(String(node.parts[0]));
  }
  return names;
}

interface AnyNode {
  readonly kind: string;
  readonly parts?: unknown;
}

function* nodesIn(value: unknown): Iterable<AnyNode> {
  if (typeof value !== "object" || value === null) return;
  if ("kind" in value && typeof value.kind === "string") yield value as AnyNode;
  for (const member of Object.values(value)) yield* nodesIn(member);
}

function columnsOf(path: string, list: string): Columns {
  const names = list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const hidden = names.filter((name) => name.startsWith("-")).map((name) => name.slice(1).trim());
  const shown = names.filter((name) => !name.startsWith("-"));
  const isAll = shown.includes("*") || shown.length === 0;
  if (names.length === 0) throw new AppError("invalid", `fields: ${path} names no columns; * is all.`);
  return { path, hidden, shown: isAll ? undefined : shown };
}

/** The class path without slashes at the end. */
function classPath(text: string, member: string): string {
  const path = text.trim().replace(/(?<=.)\/+$/, "");
  if (path === "/" || /^(\/[^/\s\p{C}]+)+$/u.test(path)) return path;
  throw new AppError("invalid", `${member}: ${JSON.stringify(text.slice(0, 200))} is no class path.`);
}
