import { EXPORT_PAGE_ROWS } from "../../../../common/limits.ts";
import type { Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { PastRow } from "./bind.ts";
import type { PastNotes } from "./notes.ts";

interface FirstRow extends Pick<PastRow, "kind" | "id" | "timeUs"> {
  readonly class: string;
}

/** Finds out, for a plan, which objects of an import exist, and counts those that an import would not store. */
export class PastPlan {
  readonly #objects: Unrestricted<"times">;
  readonly #principal: Principal;
  readonly #notes: PastNotes;
  #rows: FirstRow[] = [];
  #last: FirstRow | undefined;

  constructor(objects: Unrestricted<"times">, principal: Principal, notes: PastNotes) {
    this.#objects = objects;
    this.#principal = principal;
    this.#notes = notes;
  }

  /** Notes a row. Only the first row of each object counts, because it decides for all of them. */
  async note({ class: path, kind, id, timeUs }: { readonly class: string } & PastRow): Promise<void> {
    const isFirst = this.#last?.class !== path || this.#last.id !== id;
    this.#last = { class: path, kind, id, timeUs };
    if (!isFirst) return;
    if (this.#rows.length >= EXPORT_PAGE_ROWS || (this.#rows[0]?.class ?? path) !== path) await this.lookUp();
    this.#rows.push(this.#last);
  }

  /** Looks up the objects that were noted since the last call. */
  async lookUp(): Promise<void> {
    const rows = this.#rows.splice(0);
    const [first] = rows;
    if (first === undefined) return;
    const ids = rows.map(({ id }) => id);
    const times = await this.#objects.unrestricted.times(this.#principal, first.class, ids);
    for (const [at, { id, kind, timeUs }] of rows.entries()) {
      const { writeUs } = times[at] ?? {};
      if (writeUs === undefined) continue;
      if (writeUs > timeUs) this.#notes.add("later", id);
      else if (kind === "removal") this.#notes.add("exists", id);
    }
  }
}
