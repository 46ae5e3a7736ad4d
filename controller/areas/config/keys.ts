import { AppError } from "../../../common/errors.ts";
import { CONFIG_KEY_MAX_BYTES } from "../../../common/limits.ts";
import { absolutePath, isInside } from "../../../common/paths.ts";

/** The key of the whole tree. */
export const ROOT = "/";

/**
 * Normalises the key of an entry of the tenant: `/<ospace>/…`, without a trailing slash. `AppError("invalid")` for any
 * other text.
 */
export function entryKey(ospace: string, text: string): string {
  const key = anyKey(text);
  if (key === ospace || !isInside(ospace, key))
    throw new AppError("invalid", `A configuration key begins with ${ospace}/, not ${key}.`);
  return key;
}

/** Normalises the key of an entry or a directory, including `/`. */
export function anyKey(text: string): string {
  if (/^\/+$/.test(text)) return ROOT;
  const key = absolutePath(text);
  if (Buffer.byteLength(key) > CONFIG_KEY_MAX_BYTES)
    throw new AppError("too_large", `A configuration key has at most ${CONFIG_KEY_MAX_BYTES} bytes.`);
  return key;
}

/** Last part of a key; `/` for the root. */
export function nameOf(key: string): string {
  return key === ROOT ? ROOT : key.slice(key.lastIndexOf("/") + 1);
}

export function parentOf(key: string): string {
  return key.slice(0, key.lastIndexOf("/")) || ROOT;
}

/** The prefix that all keys below this key have. */
export function below(key: string): string {
  return key === ROOT ? ROOT : `${key}/`;
}
