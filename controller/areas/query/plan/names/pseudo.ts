import { arrivalText } from "../../../../../common/ids.ts";
import type { Value } from "../../../../../common/value.ts";
import type { ClassView, ObjectRow } from "../../../objects/index.ts";
import { dayOf } from "../../expressions/functions/day.ts";
import type { PseudoField } from "../../expressions/fields.ts";
import { type Kind, TEXT, TIME } from "../../expressions/kind.ts";
import type { Source } from "../../expressions/predicate.ts";

const PSEUDO: Readonly<
  Record<PseudoField, { readonly kind: Kind; readonly type: string; readonly read: (row: ObjectRow) => Value }>
> = {
  id: { kind: TEXT, type: "varchar", read: (row) => row.id },
  class: { kind: TEXT, type: "varchar", read: (row) => row.class.path },
  day: { kind: TEXT, type: "varchar", read: (row) => dayOf(row.vtimeMs) },
  vtime: { kind: TIME, type: "timestamp", read: (row) => row.vtimeMs },
  ctime: { kind: TIME, type: "timestamp", read: (row) => row.ctimeMs },
  mtime: { kind: TIME, type: "timestamp", read: (row) => row.vtimeMs },
};

export const PSEUDO_FIELDS = Object.keys(PSEUDO) as readonly PseudoField[];

export function isPseudo(name: string): name is PseudoField {
  return Object.hasOwn(PSEUDO, name);
}

export function pseudoType(name: PseudoField): string {
  return PSEUDO[name].type;
}

export function readPseudo(name: PseudoField, row: ObjectRow): Value {
  return PSEUDO[name].read(row);
}

export function pseudoSource(name: PseudoField, label: string): Source<ObjectRow> {
  const { kind, read } = PSEUDO[name];
  return { label, kinds: [kind], read, kind: () => kind };
}

/**
 * Source of the ids without the labels of their classes. Ids of records and entities together are read in a form that
 * has one order.
 */
export function arrivalSource(classes: readonly ClassView[], label: string): Source<ObjectRow> {
  const kinds = new Set(classes.map((view) => view.kind));
  const keyOf = ({ id, class: { label: own } }: ObjectRow): string => id.slice(own.length + 1);
  const read = kinds.size > 1 ? (row: ObjectRow) => arrivalText(keyOf(row)) : keyOf;
  return { label, kinds: [TEXT], read, kind: () => TEXT };
}
