import type { ObjectRow } from "../../objects/index.ts";
import { LIST_OF_TEXT } from "../expressions/kind.ts";
import type { Source } from "../expressions/predicate.ts";

/** An object with the ids that it is related to, by edge type. */
export interface RelatedRow extends ObjectRow {
  readonly related: ReadonlyMap<string, readonly string[]>;
}

/** Null where an object is related to nothing that its reader sees. */
export function relationSource(type: string, label: string): Source<ObjectRow> {
  const read = (row: ObjectRow): readonly string[] | null => (isRelated(row) ? (row.related.get(type) ?? null) : null);
  return { label, kinds: [LIST_OF_TEXT], read, kind: () => LIST_OF_TEXT };
}

function isRelated(row: ObjectRow): row is RelatedRow {
  return "related" in row;
}
