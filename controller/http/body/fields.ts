import { AppError } from "../../../common/errors.ts";
import { HTTP_JSON_DEPTH_MAX } from "../../../common/limits.ts";

/**
 * Named values in the order in which they were sent: of a query, a form, a multipart body or a JSON object. A map, so
 * that no name has a special meaning.
 */
export type Fields = ReadonlyMap<string, readonly unknown[]>;

/** A value sent as `name[key]…=value`, as jQuery writes objects. */
export class Bracketed {
  readonly keys: readonly string[];
  readonly value: unknown;

  constructor(keys: readonly string[], value: unknown) {
    this.keys = keys;
    this.value = value;
  }
}

const BRACKETS = /^([^[\]]+)((?:\[[^[\]]*\])+)$/;

/** Adds the value under the name without its brackets. */
export function addField(fields: Map<string, unknown[]>, name: string, value: unknown): void {
  const match = BRACKETS.exec(name);
  const base = match?.[1] ?? name;
  const keys = match?.[2]?.slice(1, -1).split("][") ?? [];
  if (keys.length > HTTP_JSON_DEPTH_MAX)
    throw new AppError("too_large", `A field nested deeper than ${String(HTTP_JSON_DEPTH_MAX)} levels.`);
  const list = keys.length === 0 || (keys.length === 1 && keys[0] === "");
  push(fields, base, list ? value : new Bracketed(keys, value));
}

function push(fields: Map<string, unknown[]>, name: string, value: unknown): void {
  const values = fields.get(name);
  if (values === undefined) fields.set(name, [value]);
  else values.push(value);
}

/** The object, or list of objects, that bracketed values describe. */
export function assemble(values: readonly Bracketed[]): unknown {
  const root = new Map<string, unknown>();
  for (const { keys, value } of values) place(root, keys, value);
  return plain(root);
}

function place(root: Map<string, unknown>, keys: readonly string[], value: unknown): void {
  let level = root;
  for (const key of keys.slice(0, -1)) {
    const next = level.get(key);
    const below = next instanceof Map ? (next as Map<string, unknown>) : new Map<string, unknown>();
    level.set(key, below);
    level = below;
  }
  const last = keys.at(-1) ?? "";
  level.set(last === "" ? String(level.size) : last, value);
}

function plain(level: Map<string, unknown>): unknown {
  const entries = [...level].map(
    ([key, value]) => [key, value instanceof Map ? plain(value as Map<string, unknown>) : value] as const,
  );
  if (entries.every(([key]) => /^\d+$/.test(key))) return entries.map(([, value]) => value);
  return Object.fromEntries(entries.filter(([key]) => key !== "__proto__"));
}
