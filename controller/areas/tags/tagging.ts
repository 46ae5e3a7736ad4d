import { AppError } from "../../../common/errors.ts";
import { TAGGED_IDS_PER_CALL_MAX, TAGS_PER_CALL_MAX } from "../../../common/limits.ts";
import { classAccess, type Principal } from "../permissions/index.ts";
import type { Objects } from "../objects/index.ts";
import type { Query } from "../query/index.ts";

export interface Tagging {
  readonly ids: readonly string[];
  readonly tags: readonly string[];
}

/**
 * Adds tags to objects, or removes them, by object id. Like MQL, it applies the caller's rules for rows, columns and
 * classes, and writes through the owners of system classes.
 */
export class ObjectTagging {
  readonly #objects: Pick<Objects, "catalog">;
  readonly #query: Pick<Query, "rows">;

  constructor({ objects, query }: { readonly objects: Pick<Objects, "catalog">; readonly query: Pick<Query, "rows"> }) {
    this.#objects = objects;
    this.#query = query;
  }

  add(principal: Principal, tagging: Tagging): Promise<void> {
    return this.#change(principal, "+", tagging);
  }

  take(principal: Principal, tagging: Tagging): Promise<void> {
    return this.#change(principal, "-", tagging);
  }

  async #change(principal: Principal, operation: "+" | "-", { ids, tags }: Tagging): Promise<void> {
    checkCount(ids.length, "ids", { most: TAGGED_IDS_PER_CALL_MAX, limit: "TAGGED_IDS_PER_CALL_MAX" });
    checkCount(tags.length, "tags", { most: TAGS_PER_CALL_MAX, limit: "TAGS_PER_CALL_MAX" });
    for (const [path, known] of await this.#found(principal, new Set(ids))) {
      const text = `update ${path} tags = tags ${operation} ? where id in (${places(known)})`;
      await this.#query.rows(principal, text, [[...tags], ...known]);
    }
  }

  /** Ids by class. `AppError("not_found")` when the caller sees no such object, before anything is changed. */
  async #found(principal: Principal, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, readonly string[]>> {
    const found = new Map<string, readonly string[]>();
    for (const [path, asked] of await this.#candidates(principal, ids)) {
      const rows = await this.#query.rows(
        principal,
        `select id from ${path} where id in (${places(asked)}) limit ${asked.length}`,
        asked,
      );
      if (rows.length > 0)
        found.set(
          path,
          rows.map(({ id }) => String(id)),
        );
    }
    const known = new Set([...found.values()].flat());
    const missing = [...ids].find((id) => !known.has(id));
    if (missing !== undefined) throw new AppError("not_found", `There is no object ${missing}.`);
    return found;
  }

  /** Candidate ids by class path: several classes may share the label at the beginning of an id. */
  async #candidates(principal: Principal, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, readonly string[]>> {
    const catalog = await this.#objects.catalog(principal);
    const asked = new Map<string, string[]>();
    for (const id of ids) {
      for (const view of catalog.byLabel(id.slice(0, Math.max(0, id.indexOf(":"))))) {
        if (!classAccess(principal, view).readable) continue;
        const { path } = view;
        const others = asked.get(path);
        if (others) others.push(id);
        else asked.set(path, [id]);
      }
    }
    return asked;
  }
}

function places(values: readonly string[]): string {
  return values.map(() => "?").join(", ");
}

function checkCount(
  count: number,
  what: string,
  { most, limit }: { readonly most: number; readonly limit: string },
): void {
  if (count === 0) throw new AppError("invalid", `There are no ${what}.`);
  if (count > most) throw new AppError("too_large", `One call takes at most ${most} ${what}.`, { details: { limit } });
}
