import { AppError, isAppError } from "../../../common/errors.ts";
import { HTTP_JSON_BOUNDS, type JsonBounds } from "../../../common/json-decoder.ts";
import { CONFIG_CHANGE_MAX_KEYS, CONFIG_FAULTS_MAX, CONFIG_IMPORT_MAX_MEMBERS } from "../../../common/limits.ts";
import { decodeJson } from "../../turns/decoding.ts";
import type { Slices } from "../query/index.ts";
import { below, entryKey } from "./keys.ts";
import { namedKey, placing } from "./placing.ts";
import type { ShownRecord } from "./rights.ts";
import { expiryOf as ttlExpiry, type Wanted } from "./values.ts";

/** Bounds for an import, which has many more entries than other calls. */
const BOUNDS: JsonBounds = {
  ...HTTP_JSON_BOUNDS,
  members: { name: "CONFIG_IMPORT_MAX_MEMBERS", max: CONFIG_IMPORT_MAX_MEMBERS },
};

/**
 * One entry of an export file. The file is a JSON list of entries, one per line, in byte order of keys. The same
 * entries always give the same bytes.
 */
interface FileEntry {
  /**
   * A whole key begins with a slash. Other keys are relative to the exported key; an empty text is the exported key
   * itself.
   */
  readonly key: string;
  readonly value: string;
  readonly secret?: true;
  /** ISO 8601, in UTC. */
  readonly expires?: string;
}

export interface ExportOptions {
  readonly key: string;
  readonly relative: boolean;
}

/** Text of an export file. Does not contain entries whose value is hidden from the principal. */
export async function* fileOf(entries: AsyncIterable<ShownRecord>, options: ExportOptions): AsyncGenerator<string> {
  let before = "[\n";
  for await (const { key, value, secret, expires } of entries) {
    if (value === undefined) continue;
    const entry: FileEntry = {
      key: options.relative ? key.slice(below(options.key).length) : key,
      value,
      ...(secret && { secret }),
      ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
    };
    yield before + JSON.stringify(entry);
    before = ",\n";
  }
  yield before === "[\n" ? "[]\n" : "\n]\n";
}

/** One entry to import. */
export interface ImportEntry extends Wanted {
  readonly expiresAtMs?: number;
}

export interface ReadOptions {
  readonly ospace: string;
  /** Base of relative keys, normalised. Whole keys outside of it are moved below it. */
  readonly under: string | undefined;
  readonly nowMs: number;
  readonly slices: Slices;
}

/**
 * Reads the entries of a file: either a list as `fileOf` writes it, or nested nodes as `/config/get` answers them.
 * `AppError("invalid")` reports up to `CONFIG_FAULTS_MAX` faults together, each with the number of its entry.
 */
export async function readFile(text: string, options: ReadOptions): Promise<readonly ImportEntry[]> {
  const { ospace, under } = options;
  const { named, faults } = await namedEntries(text, options);
  const place = placing(
    named.map(({ key }) => key),
    under,
  );
  const found = new Map<string, ImportEntry>();
  for (const { at, ...entry } of named) {
    if (faults.length >= CONFIG_FAULTS_MAX) break;
    if (options.slices.isOver()) await options.slices.pause();
    const fault = faultIn(() => {
      const key = entryKey(ospace, place(entry.key));
      if (found.has(key)) throw new AppError("invalid", `${key} stands there twice.`);
      found.set(key, { ...entry, key });
    });
    if (fault !== undefined) faults.push({ at, fault });
  }
  refuseFaults(faults.sort((one, other) => one.at - other.at).map(({ at, fault }) => `entry ${at}: ${fault}`));
  return [...found.values()];
}

/** An entry with its whole key, before the key is moved below `under`. */
interface NamedEntry extends ImportEntry {
  /** Number of the entry in the file, from 1. */
  readonly at: number;
}

interface NamedEntries {
  readonly named: readonly NamedEntry[];
  readonly faults: { readonly at: number; readonly fault: string }[];
}

async function namedEntries(text: string, options: ReadOptions): Promise<NamedEntries> {
  const named: NamedEntry[] = [];
  const faults: NamedEntries["faults"] = [];
  let at = 0;
  for (const item of itemsOf(await decodeJson(text, { slices: options.slices, bounds: BOUNDS }))) {
    at += 1;
    if (options.slices.isOver()) await options.slices.pause();
    const fault = faultIn(() => named.push({ ...entryOf(item, options), at }));
    if (fault !== undefined) faults.push({ at, fault });
    if (faults.length >= CONFIG_FAULTS_MAX) break;
    if (named.length > CONFIG_CHANGE_MAX_KEYS)
      throw new AppError("too_large", `An import has at most ${CONFIG_CHANGE_MAX_KEYS} entries.`);
  }
  return { named, faults };
}

function faultIn(read: () => void): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.message;
  }
}

export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new AppError("invalid", `Nothing was imported:\n${faults.join("\n")}`);
}

/** Yields the nodes of nested lists and directories, without the nesting. */
function* itemsOf(item: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (Array.isArray(item)) {
    for (const one of item) yield* itemsOf(one);
    return;
  }
  if (typeof item !== "object" || item === null)
    throw new AppError("invalid", "An import is a JSON list of entries {key, value}, or nodes as /config/get answers.");
  const members = item as Readonly<Record<string, unknown>>;
  const isDirectory = Array.isArray(members["nodes"]) || members["dir"] === true;
  if (!isDirectory || members["value"] !== undefined) yield members;
  if (Array.isArray(members["nodes"])) yield* itemsOf(members["nodes"]);
}

function entryOf(item: Readonly<Record<string, unknown>>, options: ReadOptions): ImportEntry {
  const { key, value, secret } = item;
  if (typeof key !== "string") throw new AppError("invalid", "It has no key, which is a text.");
  if (!["string", "number", "boolean"].includes(typeof value))
    throw new AppError("invalid", `${key} has no value, which is a text.`);
  if (secret !== undefined && typeof secret !== "boolean")
    throw new AppError("invalid", `secret of ${key} is neither true nor false.`);
  const expiresAtMs = expiryOf(item, options.nowMs);
  return {
    key: namedKey(key, options.under),
    value: String(value),
    ...(secret !== undefined && { secret }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}

function expiryOf({ expires, ttl }: Readonly<Record<string, unknown>>, nowMs: number): number | undefined {
  if (expires !== undefined) {
    const atMs = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
    if (Number.isNaN(atMs) || atMs < 0) throw new AppError("invalid", "expires is no time in ISO 8601.");
    return atMs;
  }
  if (ttl === undefined || ttl === "") return undefined;
  if (!/^-?\d{1,12}$/.test(String(ttl))) throw new AppError("invalid", "ttl is no whole number of seconds.");
  return ttlExpiry(Number(ttl), nowMs);
}
