import type { ClassView, ObjectRow } from "../../../objects/index.ts";
import type { AccessPart, ClassAccess, HiddenColumns } from "../../../permissions/index.ts";
import type { Predicate } from "../../expressions/predicate.ts";

export interface CellRules {
  access(view: ClassView): ClassAccess;
  /** Compiles a condition over all columns, including those that the principal does not see. */
  compile(where: string): Predicate<ObjectRow>;
}

/** Rights of one group on a class, with the condition compiled. */
interface Part {
  readonly access: AccessPart;
  readonly has: (row: ObjectRow) => boolean;
}

/**
 * Rights of a principal if several groups open different rows and columns of a class. A value is open if one group
 * alone opens both its row and its column. The rows passed to it must have all their values.
 */
export class Cells {
  readonly #rules: CellRules;
  readonly #parts = new Map<number, readonly Part[]>();
  /**
   * Columns hidden in a row by all groups that have the row, by row. Cached, because there is a call for each column of
   * a row.
   */
  readonly #hidden = new WeakMap<ObjectRow, HiddenColumns>();

  constructor(rules: CellRules) {
    this.#rules = rules;
  }

  /** Columns that are unset for the principal in that row. */
  hiddenIn(row: ObjectRow): HiddenColumns {
    let hidden = this.#hidden.get(row);
    if (hidden === undefined) this.#hidden.set(row, (hidden = this.#hiddenOf(row)));
    return hidden;
  }

  /**
   * True if these columns of the object may be written: for each, one group alone has the column and the object before
   * and after the write. Without columns, one group must have the object before and after. `before` is absent for an
   * insert, `after` for a removal.
   */
  mayWrite(view: ClassView, columns: readonly string[], change: RowChange): boolean {
    const able = this.#partsOf(view).filter(
      ({ access, has }) =>
        access.writable && (!change.before || has(change.before)) && (!change.after || has(change.after)),
    );
    return able.length > 0 && columns.every((name) => able.some(({ access }) => !access.hidden.has(name)));
  }

  #hiddenOf(row: ObjectRow): HiddenColumns {
    const having = this.#partsOf(row.class).filter(({ has }) => has(row));
    const [first, second] = having;
    if (first && !second) return first.access.hidden;
    if (having.some(({ access }) => access.hidden.size === 0)) return NONE;
    return { size: Infinity, has: (column) => having.every(({ access }) => access.hidden.has(column)) };
  }

  #partsOf(view: ClassView): readonly Part[] {
    let parts = this.#parts.get(view.cid);
    if (parts === undefined) {
      parts = this.#rules.access(view).parts.map((access) => ({ access, has: this.#conditionOf(access) }));
      this.#parts.set(view.cid, parts);
    }
    return parts;
  }

  #conditionOf({ where }: AccessPart): Part["has"] {
    if (where === undefined) return () => true;
    const holds = this.#rules.compile(where);
    return (row) => holds(row) === true;
  }
}

export interface RowChange {
  readonly before?: ObjectRow | undefined;
  readonly after?: ObjectRow | undefined;
}

const NONE: HiddenColumns = new Set<string>();
