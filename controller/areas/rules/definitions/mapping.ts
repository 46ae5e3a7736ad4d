import { setMember } from "../../../../common/members.ts";
import type { Value } from "../../../../common/value.ts";
import { readExtension, type ExtensionRows } from "./extension.ts";
import { memberAt } from "./paths.ts";
import { names, optionFault, type RuleOption, type RuleText } from "./options.ts";
import { type InsertTemplate, templateOf, templateValue } from "./template.ts";
import type { RawRecord, RuleTarget } from "../types.ts";

/** Computes the value of a class column; `undefined`: the column stays empty. */
export type Source = (fields: Readonly<Record<string, Value>>, record: RawRecord) => Value | undefined;

const NO_ROWS: ExtensionRows = new Map();

/** Name and source of every column that the rule fills. */
export type Mapping = readonly (readonly [column: string, source: Source])[];

/**
 * A column gets its value by the option `--var_<column>`. Without that option, it gets the field of its own name, or
 * with `--mqltmpl` only its value there. Fields also include `_host`, `_source`, `_time` and `_raw` of the raw record,
 * and the named groups of the log policy's file match.
 */
export function mappingOf(rule: RuleText, target: RuleTarget, extension = ""): Mapping {
  const rows = looksUp(rule) ? readExtension(extension) : NO_ROWS;
  const template = templateOf(rule);
  const mapping = new Map<string, Source>(
    template ? prepared(template, target) : target.columns.map((column) => [column.name, field(column.name)]),
  );
  for (const line of rule.options.filter(({ name }) => name.startsWith("var_")))
    mapping.set(columnOf({ name: line.name.slice("var_".length), line: line.line }, target), sourceOf(line, rows));
  return [...mapping];
}

function prepared(
  { values, fields, line }: InsertTemplate,
  target: RuleTarget,
): readonly (readonly [string, Source])[] {
  const sources = fields.map(operand);
  return values.map(([name, node]) => [
    columnOf({ name, line }, target),
    (found, record) => templateValue(node, (index) => sources[index]?.(found, record)),
  ]);
}

/** True if the rule looks up values in its extension table. */
export function looksUp(rule: RuleText): boolean {
  return rule.options.some(({ name, value }) => name.startsWith("var_") && /^lookup\s/i.test(value));
}

/** Names of the fields that the rule uses for a column or the time of a record. */
export function fieldsTaken(rule: RuleText, target: RuleTarget): ReadonlySet<string> {
  const named = rule.options.filter(({ name }) => name.startsWith("var_"));
  const template = templateOf(rule);
  const times = rule.options.filter(({ name }) => name === "time").map(({ value }) => value);
  const words = [
    ...named.flatMap(({ value }) => value.split(/[\s,:]+/)),
    ...times.flatMap(names),
    ...(template?.fields ?? []),
  ];
  const operands = words.map((word) => word.replace(/^OBJECT\./, "")).flatMap(withBeginnings);
  return new Set([...(template ? [] : target.columns.map((column) => column.name)), ...operands]);
}

/** A field name may contain dots, so a path `a.b.c` may use the field `a`, `a.b` or `a.b.c`. */
function withBeginnings(path: string): readonly string[] {
  const names = path.split(".");
  return names.map((_, at) => names.slice(0, at + 1).join("."));
}

function columnOf({ name, line }: Pick<RuleOption, "name" | "line">, target: RuleTarget): string {
  if (name !== "tags" && !target.columns.some((column) => column.name === name)) {
    throw optionFault({ line }, `the class ${target.path} has no column ${name}.`, {
      code: "not_found",
      unknown: name,
    });
  }
  return name;
}

/**
 * Reads the value of an option `--var_<column>`: `field f` · `join a,b` · `array a,b` · `map k:a,l:b` · `lookup
 * f,label` · `'constant'` · `OBJECT.a` · the name of a field. A field `a.b` is the field of that name, or else the
 * member `b` of the field `a`.
 */
function sourceOf(line: RuleOption, rows: ExtensionRows): Source {
  const value = line.value;
  const constant = /^'(.*)'$/s.exec(value);
  if (constant) return () => constant[1] ?? "";
  const form = /^(field|join|array|map|lookup)\s+(.+)$/i.exec(value);
  switch (form?.[1]?.toLowerCase()) {
    case "field":
      return operand(form?.[2] ?? "");
    case "join":
      return joined(names(form?.[2]).map(operand));
    case "array":
      return listed(names(form?.[2]).map(operand));
    case "map":
      return mappedOver(names(form?.[2]), line);
    case "lookup":
      return lookedUp(names(form?.[2]), rows, line);
    default:
      if (/^[\w.-]+$/.test(value)) return operand(value);
      throw optionFault(
        line,
        `expected field f, join a,b, array a,b, map k:a, lookup f,label or 'constant' but found: ${value}`,
      );
  }
}

/** The source for a word: the name of a field, or a constant in single quotes. */
export function operand(text: string): Source {
  const constant = /^'(.*)'$/s.exec(text);
  if (constant) return () => constant[1] ?? "";
  return field(text.startsWith("OBJECT.") ? text.slice("OBJECT.".length) : text);
}

/**
 * The source for `--time`: one field, or several fields joined by blanks. `undefined` for a record that lacks one of
 * several.
 */
export function timeSource(fields: string): Source {
  const parts = names(fields).map(operand);
  const [only, ...more] = parts;
  if (only !== undefined && more.length === 0) return only;
  return (found, record) => {
    const values = parts.map((part) => text(part(found, record)));
    return values.includes("") ? undefined : values.join(" ");
  };
}

function joined(parts: readonly Source[]): Source {
  return (fields, record) => parts.map((part) => text(part(fields, record))).join("");
}

function listed(parts: readonly Source[]): Source {
  return (fields, record) => parts.map((part) => part(fields, record)).filter((value) => value !== undefined);
}

/**
 * Source for `lookup field,label`: the value of `label` (by default `val`) in the table row whose key is the field's
 * value. `undefined` without such a row.
 */
function lookedUp(operands: readonly string[], rows: ExtensionRows, line: RuleOption): Source {
  const [key, label = "val", ...more] = operands;
  if (key === undefined || more.length > 0)
    throw optionFault(line, `expected lookup field,label but found: ${line.value}`);
  const from = operand(key);
  return (fields, record) => rows.get(text(from(fields, record)))?.get(label);
}

function mappedOver(pairs: readonly string[], line: RuleOption): Source {
  const entries = pairs.map((pair) => {
    const [key, from] = pair.split(":");
    if (!key || !from) throw optionFault(line, `expected key:field but found: ${pair}`);
    return [key.trim(), operand(from.trim())] as const;
  });
  return (fields, record) => {
    const result: Record<string, Value> = {};
    for (const [key, from] of entries) {
      const value = from(fields, record);
      if (value !== undefined) setMember(result, key, value);
    }
    return result;
  };
}

/** Source for a field. If the name contains dots and no field has this name, it is a path to a nested member. */
function field(name: string): Source {
  const isPath = name.includes(".");
  return (fields, record) => {
    if (Object.hasOwn(fields, name)) return fields[name];
    return (isPath ? memberAt(fields, name) : undefined) ?? fact(name, record);
  };
}

function fact(name: string, record: RawRecord): Value | undefined {
  switch (name) {
    case "_host":
      return record.host;
    case "_source":
      return record.source;
    case "_time":
      return record.timeMs;
    case "_raw":
      return record.text;
    default:
      return Object.hasOwn(record.groups, name) ? record.groups[name] : undefined;
  }
}

function text(value: Value | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
