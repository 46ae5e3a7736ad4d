import { AppError } from "../../../common/errors.ts";
import { CONFIG_HISTORY_MAX_ENTRIES, CONFIG_STORED_MAX_BYTES } from "../../../common/limits.ts";
import type { Stamped } from "../../../common/revisions.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry } from "../../store/kv.ts";

/**
 * A version of a configuration entry in a tenant's KvStore.
 *
 * - Entry: `config<key>`, for example `config/matrix/etc/x`. The store expires it at `expiresAtMs`.
 * - History: `config-history<key>//<slot>`, a ring of `CONFIG_HISTORY_MAX_ENTRIES` slots. Version n is in slot n modulo
 *   their number, so that it replaces the oldest version and no cleanup is needed.
 */
export interface Version {
  /**
   * Number of the change, which counts changes of the key from 1, including deletions. 0: written before versions
   * existed.
   */
  readonly n: number;
  /** Random id of the write. A writer whose answer was lost recognises its own write by it. */
  readonly id: string;
  readonly by: string;
  readonly atMs: number;
  /** Text of a readable value; a secret value has `sealed` instead. A deletion has neither. */
  readonly text?: string;
  readonly sealed?: string;
  readonly expiresAtMs?: number;
}

/** The content of an entry. Without `text` and `sealed` it is a deletion. */
export type Content = Pick<Version, "text" | "sealed" | "expiresAtMs">;

export interface Entry extends Version {
  readonly key: string;
  readonly revision: number;
}

const VALUE = "config";
const HISTORY = "config-history";
/** Prefixes of all entries and of all versions. Configuration keys begin with a slash. */
export const VALUES = `${VALUE}/`;
export const SLOTS = `${HISTORY}/`;

export function valueKey(key: string): string {
  return VALUE + key;
}

/** The configuration key of an entry, from its key in the store. */
export function keyOf(stored: string): string {
  return stored.slice(VALUE.length);
}

export function slotPrefix(key: string): string {
  return `${HISTORY}${key}//`;
}

/** The configuration key of a version, from the key of its slot in the store. */
export function keyOfSlot(stored: string): string {
  return stored.slice(HISTORY.length, stored.lastIndexOf("//"));
}

export function slotKey(key: string, n: number): string {
  return slotPrefix(key) + String(n % CONFIG_HISTORY_MAX_ENTRIES).padStart(2, "0");
}

/** The stored form. `AppError("too_large")` beyond `CONFIG_STORED_MAX_BYTES`. */
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
  // Versions did not exist when the first rules were stored: those are plain texts.
  return typeof stored === "string" ? { n: 0, id: "", by: "", atMs: 0, text: stored } : stored;
}

export function entryOf({ key, value, revision }: KvEntry): Entry {
  return { ...decodeVersion(value), key: keyOf(key), revision };
}

/** The stamp of the entry's last change: the id of its write is its revision. */
export function stampOf({ id, by, atMs }: Version): Stamped {
  return id === "" ? {} : { stamp: { revision: id, by, atMs } };
}

export function isDelete({ text, sealed }: Content): boolean {
  return text === undefined && sealed === undefined;
}

/** Context for sealing. It binds a sealed value to its key. */
export function sealContext(tenant: string, key: string): string {
  return `${tenant}/config${key}`;
}
