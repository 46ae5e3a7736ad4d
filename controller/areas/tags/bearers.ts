import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { TAG_MOVE_REFUSED_MAX, TAG_MOVE_WRITES_AT_ONCE } from "../../../common/limits.ts";
import { isTransient } from "../../store/journal/index.ts";
import { TAGS_COLUMN, type Edit, type ObjectRow, type Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { isAtOrBelow } from "./paths.ts";

/** Maps a tag to its new path, to `undefined` if it is removed, or to itself if it stays. */
export type TagChange = (tag: string) => string | undefined;

/** The tags of an object. The stored value has no guaranteed form, because MQL can write any value. */
export function tagsOf({ values }: ObjectRow): readonly string[] {
  const tags = values[TAGS_COLUMN];
  return Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === "string") : [];
}

/** Objects of every class that have the tag or one below it: by the index, and among the rows that owners provide. */
export async function* bearersOf(
  objects: Unrestricted<"read">,
  platform: Principal,
  { path, signal }: { readonly path: string; readonly signal?: AbortSignal },
): AsyncGenerator<readonly ObjectRow[]> {
  const where = [{ kind: "equals", column: TAGS_COLUMN, values: [path, `${path}/`] } as const];
  const request = { class: "/", subtree: true, where, ...(signal && { signal }) };
  for await (const rows of objects.unrestricted.read(platform, request)) {
    const found = rows.filter((row) => tagsOf(row).some((tag) => isAtOrBelow(tag, path)));
    if (found.length > 0) yield found;
  }
}

/** Changes the tags of objects with the platform's rights: a user who may rename a tag renames it on every object. */
export class BearerChanges {
  readonly #objects: Unrestricted<"update">;
  readonly #platform: Principal;
  /** Objects that refused the change; `#reason` is the error of the first of them. */
  readonly #refused = new Set<string>();
  #reason = "";

  constructor(objects: Unrestricted<"update">, platform: Principal) {
    this.#objects = objects;
    this.#platform = platform;
  }

  get refused(): { readonly count: number; readonly reason: string } {
    return { count: this.#refused.size, reason: this.#reason };
  }

  /** Returns the number of changed objects. An object that refused is not tried again. */
  async make(rows: readonly ObjectRow[], change: TagChange): Promise<number> {
    const done = await mapLimited(rows, TAG_MOVE_WRITES_AT_ONCE, (row) => this.#one(row, change));
    return done.filter(Boolean).length;
  }

  async #one(row: ObjectRow, change: TagChange): Promise<boolean> {
    const taken = tagsOf(row).filter((tag) => change(tag) !== tag);
    const name = `${row.class.cid} ${row.id}`;
    if (taken.length === 0 || this.#refused.has(name)) return false;
    const added = taken.flatMap((tag) => change(tag) ?? []);
    try {
      return await this.#write(row, [
        ...(added.length > 0 ? [{ column: TAGS_COLUMN, operation: "add", value: added } as const] : []),
        { column: TAGS_COLUMN, operation: "take", value: taken },
      ]);
    } catch (error) {
      if (isTransient(error) || !isAppError(error)) throw error;
      this.#refuse(name, error);
      return false;
    }
  }

  /** The owner of a system class changes its rows: they may not be stored as objects, or have revisions. */
  async #write({ id, class: view }: ObjectRow, edits: readonly Edit[]): Promise<boolean> {
    if (view.system && view.guard?.update) return view.guard.update(this.#platform, id, edits);
    if (await this.#objects.unrestricted.update(this.#platform, { id, class: view.path }, edits, { admitted: true }))
      return true;
    if (!view.system) return false;
    throw new AppError("unsupported", `Tags of ${view.path} are kept by its owner.`);
  }

  #refuse(name: string, error: AppError): void {
    if (this.#refused.size === 0) this.#reason = error.message;
    this.#refused.add(name);
    if (this.#refused.size > TAG_MOVE_REFUSED_MAX)
      throw new AppError("too_large", `More than ${TAG_MOVE_REFUSED_MAX} objects keep the tag: ${this.#reason}`, {
        details: { limit: "TAG_MOVE_REFUSED_MAX" },
      });
  }
}
