import { AppError } from "../../../../common/errors.ts";
import type { Value } from "../../../../common/value.ts";
import { ANY, isSeveral, type Kind } from "./kind.ts";
import { isList, isMap } from "./literal.ts";
import type { Source } from "./source.ts";

/** The members of a value, as `any(x)` names them. */
export interface Members<R> {
  readonly label: string;
  /** Kinds that a member can have. */
  readonly kinds: readonly Kind[];
  /** The set, list or map that contains the members. */
  read(row: R): Value | undefined;
  /** Kind of the members of this row. */
  kind(row: R): Kind;
}

/**
 * The elements of a set or list, or the values of a map. A relation may lead to one value, which is then the only
 * member. Throws `AppError("invalid")` if no row can have several members.
 */
export function membersOf<R>(operands: readonly Source<R>[]): Members<R> {
  const [whole] = operands;
  if (!whole || operands.length > 1)
    throw new AppError("invalid", `[Valid] any() takes 1 value and was given ${operands.length}.`);
  const { label, kinds, constant } = whole;
  if (constant !== undefined)
    throw new AppError(
      "invalid",
      `[Valid] any() is about a set, list or map of the row; IN asks about written values.`,
    );
  if (kinds.length > 0 && !kinds.some((kind) => isSeveral(kind) || kind.type === "any"))
    throw new AppError(
      "invalid",
      `[Valid] any() needs a set, list or map: ${label} is a ${kinds[0]?.type ?? "value"}.`,
    );
  return {
    label: `any(${label})`,
    kinds: [...new Set(kinds.map(memberKind))],
    read: (row) => whole.read(row),
    kind: (row) => memberKind(whole.kind(row)),
  };
}

function memberKind(kind: Kind): Kind {
  return isSeveral(kind) ? (kind.element ?? ANY) : kind;
}

export function hasMember(whole: Value, holds: (member: Value) => boolean): boolean {
  const isSo = (member: Value): boolean => member !== null && holds(member);
  if (isList(whole)) return whole.some(isSo);
  return isMap(whole) ? Object.values(whole).some(isSo) : isSo(whole);
}
