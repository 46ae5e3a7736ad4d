import { hash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { IMPORT_PLAN_SHOWN_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { ClassView, Objects } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { NotedRow } from "../check.ts";
import type { RowPlan } from "./types.ts";

interface Held {
  readonly row: number;
  readonly id: string;
}

interface TallyOptions {
  readonly objects: Pick<Objects, "visible">;
  readonly principal: Principal;
  readonly view: ClassView;
  /** False: existing objects are not looked up; only objects that occur twice are found. */
  readonly isPlan: boolean;
}

/** Counts the objects that a sheet creates and updates, and finds objects that occur twice in the sheet. */
export class RowTally {
  readonly #objects: Pick<Objects, "visible">;
  readonly #principal: Principal;
  readonly #view: ClassView;
  readonly #isPlan: boolean;
  /** Row number by id. The keys are digests of ids, because ids may be long. */
  readonly #rows = new Map<string, number>();
  #held: Held[] = [];
  readonly #changes: RowPlan[] = [];
  created = 0;
  updated = 0;

  constructor({ objects, principal, view, isPlan }: TallyOptions) {
    this.#objects = objects;
    this.#principal = principal;
    this.#view = view;
    this.#isPlan = isPlan;
  }

  /**
   * Notes a row. `AppError("invalid")` if an earlier row has the same object, because one of the rows would be lost.
   */
  note({ id, part: { row = 0 } }: NotedRow): void {
    if (id === undefined) return this.#count({ row, action: "create" });
    const digest = hash("sha256", id, "base64").slice(0, 22);
    const earlier = this.#rows.get(digest);
    if (earlier !== undefined) throw new AppError("invalid", `[Valid] it is the same object as row ${earlier}: ${id}.`);
    this.#rows.set(digest, row);
    if (this.#isPlan) this.#held.push({ row, id });
  }

  /** Finds out which of the noted objects exist for the principal. Does nothing if fewer than `atLeast` are noted. */
  async lookUp(atLeast = 1): Promise<void> {
    if (this.#held.length < atLeast) return;
    const held = this.#held;
    this.#held = [];
    for (let at = 0; at < held.length; at += OBJECT_PAGE_MAX) {
      const some = held.slice(at, at + OBJECT_PAGE_MAX);
      const refs = some.map(({ id }) => ({ id, class: this.#view.path }));
      const found = await this.#objects.visible.get(this.#principal, refs);
      for (const [index, { row, id }] of some.entries())
        this.#count({ row, id, action: found[index] ? "update" : "create" });
    }
  }

  /** The first changes, in the order of the file. */
  changes(): readonly RowPlan[] {
    return this.#changes.sort((one, other) => one.row - other.row).slice(0, IMPORT_PLAN_SHOWN_MAX);
  }

  #count(plan: RowPlan): void {
    if (plan.action === "create") this.created += 1;
    else this.updated += 1;
    if (this.#changes.length < IMPORT_PLAN_SHOWN_MAX) this.#changes.push(plan);
  }
}
