import { isAppError } from "../../../../common/errors.ts";
import { OBJECT_PAGE_MAX, QUERY_ENDS_CHECKED_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { Objects } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { isList } from "../expressions/literal.ts";
import { type Scope, scopeOf, visibility } from "../plan/names/scope.ts";

/** A relation that a statement writes, with the id or ids of its targets. */
export interface WrittenRelation {
  readonly type: string;
  readonly value: Value;
}

/**
 * Targets of the relations that a script writes. A relation to a missing object is stored, because the object may come
 * later. The caller gets a warning.
 */
export class WrittenRelations {
  /** Edge types by id. */
  readonly #types = new Map<string, string>();

  get isEmpty(): boolean {
    return this.#types.size === 0;
  }

  /** Adds relations. Only the first `QUERY_ENDS_CHECKED_MAX` targets are looked up. */
  add(relations: Iterable<WrittenRelation>): void {
    for (const { type, value } of relations) {
      for (const id of isList(value) ? value : [value]) {
        if (this.#types.size >= QUERY_ENDS_CHECKED_MAX) return;
        if (typeof id === "string" && id !== "") this.#types.set(id, type);
      }
    }
  }

  /**
   * One text for each target that does not exist for the principal. Empty if the store fails; the write has already
   * succeeded.
   */
  async warnings(principal: Principal, objects: Objects): Promise<readonly string[]> {
    if (this.#types.size === 0) return [];
    try {
      const catalog = await objects.catalog(principal);
      const known = await visibleIds(
        [...this.#types.keys()],
        scopeOf(principal, catalog, { path: "/", subtree: true, alias: undefined }),
        objects,
      );
      const missing = [...this.#types].filter(([id]) => !known.has(id));
      return missing.map(
        ([id, type]) => `${type}: there is no ${id}; the relation is kept and holds when the object comes.`,
      );
    } catch (error) {
      if (!isAppError(error)) throw error;
      return [];
    }
  }
}

async function visibleIds(ids: readonly string[], scope: Scope, objects: Objects): Promise<ReadonlySet<string>> {
  const visible = visibility(scope);
  const known = new Set<string>();
  for (let from = 0; from < ids.length; from += OBJECT_PAGE_MAX) {
    const rows = await objects.unrestricted.get(
      scope.principal,
      ids.slice(from, from + OBJECT_PAGE_MAX).map((id) => ({ id })),
    );
    for (const row of rows) if (row !== undefined && visible(row) === true) known.add(row.id);
  }
  return known;
}
