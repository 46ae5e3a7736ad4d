import { AppError } from "../../../../common/errors.ts";
import {
  CHANGE_SUBSCRIPTION_NAME_MAX_CHARACTERS,
  CLASS_DEPTH_MAX,
  CLASS_PATH_MAX_BYTES,
  COLUMN_NAME_MAX_CHARACTERS,
  EDGE_TYPE_NAME_MAX_CHARACTERS,
  TRIGGER_NAME_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { madeWellFormed } from "../../../turns/well-formed.ts";
import { isBelow } from "./definition.ts";

const CLASS_PATH = /^(\/[\p{L}\p{N}_]+)+$/u;
const COLUMN_NAME = /^[^\p{Cc}\p{Cs}'"`/\\]+$/u;
const SUBSCRIPTION_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const TRIGGER_NAME = /^[\p{L}\p{N}_.-]+$/u;
const EDGE_TYPE_NAME = /^[\p{L}\p{N}_]+(\.[\p{L}\p{N}_]+)*$/u;

/** Throws when the path has a wrong form, is too long or too deep, or is outside the tenant's name space. */
export function checkClassPath(path: string, ospace: string): void {
  if (!CLASS_PATH.test(path))
    throw new AppError("invalid", `[Valid] class ${path}: a path is /a/b/c of letters, digits and _.`);
  if (Buffer.byteLength(path) > CLASS_PATH_MAX_BYTES || path.split("/").length - 1 > CLASS_DEPTH_MAX) {
    throw new AppError(
      "too_large",
      `[Valid] class ${path}: at most ${CLASS_PATH_MAX_BYTES} bytes and ${CLASS_DEPTH_MAX} components.`,
    );
  }
  if (path !== ospace && !isBelow(path, ospace))
    throw new AppError("invalid", `[Valid] class ${path} lies outside ${ospace}.`);
}

export function checkColumnName(name: string): void {
  // A name of a member that every JavaScript object has is refused: rows without such a column would seem to have it.
  const clear = COLUMN_NAME.test(name) && name.trim() === name && !(name in Object.prototype);
  if (clear && name.length <= COLUMN_NAME_MAX_CHARACTERS) return;
  throw new AppError("invalid", `[Valid] "${madeWellFormed(name)}" is no name for a column.`);
}

export function checkEdgeTypeName(name: string): void {
  if (name.length <= EDGE_TYPE_NAME_MAX_CHARACTERS && EDGE_TYPE_NAME.test(name) && !(name in Object.prototype)) return;
  throw new AppError("invalid", `[Valid] "${name}" is no name for an edge type.`);
}

/** The name of a trigger wherever it is shown: `<class>#<trigger>`. */
export function triggerName({ class: path, name }: { readonly class: string; readonly name: string }): string {
  return `${path}#${name}`;
}

export function checkTriggerName(name: string): void {
  if (name.length <= TRIGGER_NAME_MAX_CHARACTERS && TRIGGER_NAME.test(name) && !(name in Object.prototype)) return;
  throw new AppError("invalid", `[Valid] "${name}" is no name for a trigger.`);
}

export function checkSubscriptionName(name: string): void {
  if (name.length <= CHANGE_SUBSCRIPTION_NAME_MAX_CHARACTERS && SUBSCRIPTION_NAME.test(name)) return;
  throw new AppError("invalid", `[Valid] "${name}" is no name for a subscription.`);
}

/**
 * The name that a text in any case means; an exact match wins. Undefined when there is none; `AppError("invalid")` when
 * several match and none is exact.
 */
export function nameAmong(names: Iterable<string>, written: string): string | undefined {
  const lower = written.toLowerCase();
  const alike = new Set<string>();
  for (const name of names) if (name.toLowerCase() === lower) alike.add(name);
  if (alike.has(written)) return written;
  if (alike.size > 1)
    throw new AppError("invalid", `[Valid] ${written} can be ${[...alike].join(" or ")}: write one of them.`);
  const [only] = alike;
  return only;
}
