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
  readonly objects: Pick<Objects, "get">;
  readonly principal: Principal;
  readonly view: ClassView;
  /** False: only finds objects that occur twice. */
  readonly isPlan: boolean;
}

/** Counts the objects that a sheet creates and changes, and finds objects that occur twice in it. */
export class RowTally {
  readonly #objects: Pick<Objects, "get">;
  readonly #principal: Principal;
  readonly #view: ClassView;
  readonly #isPlan: boolean;
  /** Row number of each id. Keys are digests, because ids may be long. */
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

  /** Throws `AppError("invalid")` for an object that an earlier row has: one of the rows would be lost. */
  note({ id, part: { row = 0 } }: NotedRow): void {
    if (id === undefined) return this.#count({ row, action: "create" });
    const digest = hash("sha256", id, "base64").slice(0, 22);
    const earlier = this.#rows.get(digest);
    if (earlier !== undefined) throw new AppError("invalid", `[Valid] it is the same object as row ${earlier}: ${id}.`);
    this.#rows.set(digest, row);
    if (this.#isPlan) this.#held.push({ row, id });
  }

  /** Looks up which of the noted objects exist, if there are at least `atLeast`. */
  async lookUp(atLeast = 1): Promise<void> {
    if (this.#held.length < atLeast) return;
    const held = this.#held;
    this.#held = [];
    for (let at = 0; at < held.length; at += OBJECT_PAGE_MAX) {
      const some = held.slice(at, at + OBJECT_PAGE_MAX);
      const refs = some.map(({ id }) => ({ id, class: this.#view.path }));
      const found = await this.#objects.get(this.#principal, refs);
      for (const [index, { row, id }] of some.entries())
        this.#count({ row, id, action: found[index] ? "update" : "create" });
    }
  }

  /** In the order of the file. */
  changes(): readonly RowPlan[] {
    return this.#changes.sort((one, other) => one.row - other.row).slice(0, IMPORT_PLAN_SHOWN_MAX);
  }

  #count(plan: RowPlan): void {
    if (plan.action === "create") this.created += 1;
    else this.updated += 1;
    if (this.#changes.length < IMPORT_PLAN_SHOWN_MAX) this.#changes.push(plan);
  }
}
