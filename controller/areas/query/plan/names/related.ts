import type { Value } from "../../../../../common/value.ts";
import type { ObjectRow } from "../../../objects/index.ts";
import type { BoundField, Fields, RelationPath } from "../../expressions/fields.ts";
import { ANY, type Kind, LIST_OF_ANY, LIST_OF_TEXT, severalOf } from "../../expressions/kind.ts";
import { isList } from "../../expressions/literal.ts";
import type { Source } from "../../expressions/predicate.ts";

/** Value at the end of a path from one object. */
export interface Related {
  readonly value: Value;
  readonly kind: Kind;
}

/** An object with what its relations lead to, by the keys of the paths. A path that is absent leads to nothing. */
export interface RelatedRow extends ObjectRow {
  readonly related: ReadonlyMap<string, Related>;
}

/** Null if the object is related to nothing that the principal sees, or if the related objects have no value. */
export function relationSource(
  { key, end }: RelationPath,
  everything: Pick<Fields<ObjectRow>, "kindsOf">,
  label: string,
): Source<ObjectRow> {
  const kinds = kindsOf(end, everything);
  const [usual = ANY] = kinds;
  return {
    label,
    kinds,
    read: (row) => relatedOf(row, key)?.value ?? null,
    kind: (row) => relatedOf(row, key)?.kind ?? usual,
  };
}

/**
 * The value itself if there is one; several values become a list in the order of their objects, and the lists among
 * them are joined.
 */
export function together(found: readonly Related[]): Related | undefined {
  const [first] = found;
  if (!first || found.length === 1) return first;
  const isAlike = found.every(({ kind }) => kind === first.kind);
  const value = found.flatMap((one) => (isList(one.value) ? one.value : [one.value]));
  return { value, kind: isAlike ? severalOf(first.kind) : LIST_OF_ANY };
}

export function isRelated(row: ObjectRow): row is RelatedRow {
  return "related" in row;
}

function relatedOf(row: ObjectRow, key: string): Related | undefined {
  return isRelated(row) ? row.related.get(key) : undefined;
}

function kindsOf(end: BoundField | undefined, everything: Pick<Fields<ObjectRow>, "kindsOf">): readonly Kind[] {
  if (!end) return [LIST_OF_TEXT];
  const own = everything.kindsOf(end);
  return [...new Set([...own, ...own.map(severalOf), ...(own.length > 1 ? [LIST_OF_ANY] : [])])];
}
