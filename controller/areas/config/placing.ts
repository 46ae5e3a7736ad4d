import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import { anyKey, below, ROOT } from "./keys.ts";

/**
 * The whole normalised key for a key in a file. A relative key is relative to `under`. `AppError("invalid")` for a text
 * that is no key.
 */
export function namedKey(text: string, under: string | undefined): string {
  if (text.startsWith("/")) {
    const key = anyKey(text);
    if (key === ROOT) throw new AppError("invalid", "/ is the key of no entry.");
    return key;
  }
  if (under === undefined)
    throw new AppError("invalid", `${text || "An empty key"} is relative, and no key is given that it is relative to.`);
  return anyKey(below(under) + text);
}

/**
 * Returns a function that answers the target key of an imported entry. Keys at and below `under` stay. In all other
 * keys, `under` replaces their longest common folder: `/a/b/x` and `/a/c` become `<under>/b/x` and `<under>/c`. Without
 * `under`, all keys stay.
 */
export function placing(keys: Iterable<string>, under: string | undefined): (key: string) => string {
  if (under === undefined) return (key) => key;
  let folder: readonly string[] | undefined;
  for (const key of keys) if (!isInside(under, key)) folder = shared(folder, foldersOf(key));
  const former = below(`/${(folder ?? []).join("/")}`);
  return (key) => (isInside(under, key) ? key : below(under) + key.slice(former.length));
}

function foldersOf(key: string): readonly string[] {
  return key.split("/").slice(1, -1);
}

/** The common beginning of two lists of names. Compares whole names: `/ab` and `/abc` have only `/` in common. */
function shared(one: readonly string[] | undefined, other: readonly string[]): readonly string[] {
  if (one === undefined) return other;
  const end = one.findIndex((name, at) => name !== other[at]);
  return end === -1 ? one : one.slice(0, end);
}
