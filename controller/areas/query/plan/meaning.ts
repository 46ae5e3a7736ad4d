import { QUERY_MEANINGS_KEPT_MAX } from "../../../../common/limits.ts";
import type { Select } from "../../../../common/mql/index.ts";
import { mentions } from "../expressions/mentions.ts";
import type { Arguments } from "../expressions/literal.ts";
import { columnsOf } from "./columns.ts";
import { type BoundNames, boundNames, isStoredOrder } from "./bound-outputs.ts";
import { OutputBinder } from "./outputs.ts";
import { followPlan, splitCondition, type SplitCondition } from "./relations.ts";
import type { Scope } from "./names/scope.ts";
import type { VisibleTree } from "./names/tree.ts";

/** The names of a SELECT over one class tree, resolved. */
export interface Meaning {
  readonly scope: Scope;
  readonly names: BoundNames;
  readonly split: SplitCondition;
  /** As in `ReadOptions`. */
  readonly columns: readonly string[] | undefined;
  /** True if rows of one class come from the store in the order asked for. */
  readonly isStored: boolean;
  /** True if no values and no principal are part of it, and it follows no relation. */
  readonly isCommon: boolean;
}

/** Meanings of the SELECTs of texts that come again, which principals with equal rights share. */
export class Meanings {
  #kept = new WeakMap<Select, WeakMap<VisibleTree, Meaning>>();
  #size = 0;

  /** Number of meanings since all were last forgotten. */
  get size(): number {
    return this.#size;
  }

  of(select: Select, scope: Scope, values: Arguments): Meaning {
    const known = this.#kept.get(select)?.get(scope.tree);
    if (known) return { ...known, scope: known.scope.seenBy(scope.principal) };
    const meaning = meaningOf(select, scope, values);
    if (!isCommon(select, meaning, values)) return meaning;
    const common = { ...meaning, isCommon: true };
    this.#keep(select, common);
    return common;
  }

  #keep(select: Select, meaning: Meaning): void {
    if (this.#size >= QUERY_MEANINGS_KEPT_MAX) [this.#kept, this.#size] = [new WeakMap(), 0];
    let ofSelect = this.#kept.get(select);
    if (!ofSelect) this.#kept.set(select, (ofSelect = new WeakMap()));
    ofSelect.set(meaning.scope.tree, meaning);
    this.#size += 1;
  }
}

/** The meanings of this process. */
export const MEANINGS = new Meanings();

export function meaningOf(select: Select, scope: Scope, values: Arguments): Meaning {
  const names = boundNames(select, new OutputBinder(select, scope, values));
  return {
    scope,
    names,
    split: splitCondition(select.where, scope),
    columns: columnsOf(select, scope),
    isStored: isStoredOrder(scope, names.orderBy, names.grouping !== undefined),
    isCommon: false,
  };
}

function isCommon(select: Select, { scope, names, split }: Meaning, values: Arguments): boolean {
  if (select.cursor || select.from.kind !== "class" || names.windows.length > 0 || hasOwnValues(select)) return false;
  return followPlan(select, split, { scope, following: { values, asOfMs: undefined } }) === undefined;
}

/** True if values of the placeholders, or values computed from them, stand outside the parts that each run binds. */
function hasOwnValues({ items, groupBy, fill, having, orderBy }: Select): boolean {
  return mentions([items, groupBy, fill, having, orderBy], OF_VALUES);
}

const OF_VALUES: ReadonlySet<string> = new Set(["placeholder", "computed"]);
