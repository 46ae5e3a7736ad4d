import { AppError, isAppError } from "../../../common/errors.ts";
import { parseJson } from "../../../common/json.ts";
import { CONFIG_CHANGE_MAX_KEYS, CONFIG_FAULTS_MAX } from "../../../common/limits.ts";
import { isInside } from "../../../common/paths.ts";
import type { Slices } from "../query/index.ts";
import { anyKey, below, entryKey } from "./keys.ts";
import type { ShownRecord } from "./rights.ts";
import { expiryOf as ttlExpiry, type Wanted } from "./values.ts";

/**
 * The file of an export: a JSON list of entries, one to a line, in byte order of keys. The same entries give the same
 * bytes.
 */
interface FileEntry {
  /** Whole; without a slash before it relative to the exported one, which itself is the empty text. */
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

/** Entries without a value, which is hidden from the principal, are left out. */
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

/** An entry that is to be imported. */
export interface ImportEntry extends Wanted {
  readonly expiresAtMs?: number;
}

export interface ReadOptions {
  readonly ospace: string;
  /** What relative keys are relative to, and whole ones have to lie at or below. */
  readonly under: string | undefined;
  readonly nowMs: number;
  readonly slices: Slices;
}

/**
 * Entries of a file: a list as `fileOf` makes it, or nodes as `/config/get` answers them, in each other as they come.
 * `AppError("invalid")` that tells up to `CONFIG_FAULTS_MAX` faults together, each with the entry it is of.
 */
export async function readFile(text: string, options: ReadOptions): Promise<readonly ImportEntry[]> {
  const found = new Map<string, ImportEntry>();
  const faults: string[] = [];
  let at = 0;
  for (const item of itemsOf(parseJson(text))) {
    at += 1;
    if (options.slices.isOver()) await options.slices.pause();
    try {
      const entry = entryOf(item, options);
      if (found.has(entry.key)) throw new AppError("invalid", `${entry.key} stands there twice.`);
      found.set(entry.key, entry);
    } catch (error) {
      if (!isAppError(error)) throw error;
      faults.push(`entry ${at}: ${error.message}`);
      if (faults.length >= CONFIG_FAULTS_MAX) break;
    }
    if (found.size > CONFIG_CHANGE_MAX_KEYS)
      throw new AppError("too_large", `An import has at most ${CONFIG_CHANGE_MAX_KEYS} entries.`);
  }
  refuseFaults(faults);
  return [...found.values()];
}

export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new AppError("invalid", `Nothing was imported:\n${faults.join("\n")}`);
}

/** Directories are their nodes. */
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
    key: wholeKey(key, options),
    value: String(value),
    ...(secret !== undefined && { secret }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}

function wholeKey(text: string, { ospace, under }: ReadOptions): string {
  if (!text.startsWith("/") && under === undefined)
    throw new AppError("invalid", `${text || "An empty key"} is relative, and no key is given that it is relative to.`);
  const key = entryKey(ospace, text.startsWith("/") ? text : below(under ?? "/") + text);
  if (under !== undefined && !isInside(anyKey(under), key))
    throw new AppError("invalid", `${key} does not lie at or below ${under}.`);
  return key;
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
