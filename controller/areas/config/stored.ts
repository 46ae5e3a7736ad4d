import { AppError } from "../../../common/errors.ts";
import { CONFIG_HISTORY_MAX_ENTRIES, CONFIG_STORED_MAX_BYTES } from "../../../common/limits.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry } from "../../store/kv.ts";

/**
 * How configuration lies in a tenant's KvStore. An entry: `config<key>`, so `config/matrix/etc/x`, which expires with
 * it. Its history: `config-history<key>//<slot>`, a ring of `CONFIG_HISTORY_MAX_ENTRIES` slots which version n goes
 * into at n modulo their number, so that a version takes the place of the oldest one and nothing has to be tidied.
 */
export interface Version {
  /** Counts the changes of the key from 1, deletes among them; 0: written before there were versions. */
  readonly n: number;
  /** Of the write, so that its writer knows it again when the answer was lost. */
  readonly id: string;
  readonly by: string;
  readonly atMs: number;
  /** One of these two, unless it is a delete. */
  readonly text?: string;
  readonly sealed?: string;
  readonly expiresAtMs?: number;
}

/** What an entry holds. */
export type Content = Pick<Version, "text" | "sealed" | "expiresAtMs">;

export interface Entry extends Version {
  readonly key: string;
  readonly revision: number;
}

const VALUE = "config";
const HISTORY = "config-history";
/** Under these lie all entries, and all versions: keys begin with a slash. */
export const VALUES = `${VALUE}/`;
export const SLOTS = `${HISTORY}/`;

export function valueKey(key: string): string {
  return VALUE + key;
}

/** Of an entry in the store. */
export function keyOf(stored: string): string {
  return stored.slice(VALUE.length);
}

export function slotPrefix(key: string): string {
  return `${HISTORY}${key}//`;
}

/** The key whose version lies in a slot. */
export function keyOfSlot(stored: string): string {
  return stored.slice(HISTORY.length, stored.lastIndexOf("//"));
}

export function slotKey(key: string, n: number): string {
  return slotPrefix(key) + String(n % CONFIG_HISTORY_MAX_ENTRIES).padStart(2, "0");
}

/** `AppError("too_large")` beyond `CONFIG_STORED_MAX_BYTES`. */
export function encodeVersion(key: string, version: Version): Uint8Array {
  const bytes = encodeJson(version);
  if (bytes.length > CONFIG_STORED_MAX_BYTES)
    throw new AppError(
      "too_large",
      `The value of ${key} takes ${bytes.length} bytes in the store, more than ${CONFIG_STORED_MAX_BYTES}.`,
    );
  return bytes;
}

export function decodeVersion(bytes: Uint8Array): Version {
  const stored = decodeStored<Version | string>(bytes);
  // Rules were texts before they had versions.
  return typeof stored === "string" ? { n: 0, id: "", by: "", atMs: 0, text: stored } : stored;
}

export function entryOf({ key, value, revision }: KvEntry): Entry {
  return { ...decodeVersion(value), key: keyOf(key), revision };
}

export function isDelete({ text, sealed }: Content): boolean {
  return text === undefined && sealed === undefined;
}

/** What a sealed value of a key belongs to. */
export function sealContext(tenant: string, key: string): string {
  return `${tenant}/config${key}`;
}
