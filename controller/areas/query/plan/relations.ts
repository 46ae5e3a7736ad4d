import type { ClassCatalog } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Output } from "./outputs.ts";
import { type Scope, scopeOf } from "./scope.ts";

/** Relations that a SELECT answers: of each object the ids at the ends of its edges. */
export interface RelationPlan {
  /** Edge types. */
  readonly types: readonly string[];
  /** All that the principal may see: what stands at an end and is not among it is left out. */
  readonly ends: Scope;
  readonly asOfMs: number | undefined;
}

export function relationPlan(
  outputs: readonly Output[],
  of: { readonly principal: Principal; readonly catalog: ClassCatalog; readonly asOfMs: number | undefined },
): RelationPlan | undefined {
  const fields = outputs.flatMap((output) => {
    const isRelation = output.kind === "value" && output.value.kind === "field" && output.value.field.isRelation;
    return isRelation ? [output.value.field] : [];
  });
  if (fields.length === 0) return undefined;
  const ends = scopeOf(of.principal, of.catalog, { path: "/", subtree: true, alias: undefined });
  return { types: [...new Set(fields.map((field) => field.name))], ends, asOfMs: of.asOfMs };
}
