import type { Row } from "../../../../common/value.ts";
import type { Principal } from "../../permissions/index.ts";
import type { ClassGuard, ClassSpec, ColumnSpec } from "../types.ts";

/**
 * A column of a system class. `meaning` says what the value means, with its unit; it is only for the page of columns
 * and is not stored. Sealed columns are never shown.
 */
export type SystemColumn = ColumnSpec & ({ readonly meaning: string } | { readonly sealed: true });

/** A system class that its owner needs in every tenant. `path` is relative to the ospace, as in `/system/hostinfo`. */
export interface SystemClass extends ClassSpec {
  readonly columns: readonly SystemColumn[];
  readonly guard: ClassGuard;
  /**
   * For a class that is not stored: returns its rows, each with `id` and `class`. The query area applies row and field
   * permissions.
   */
  readonly provide?: (principal: Principal) => AsyncIterable<readonly Row[]>;
}

/** Columns of one type for a class of the platform. `meanings` maps the name of each to its meaning. */
export function columns(
  type: Exclude<ColumnSpec["type"], "list" | "set" | "map">,
  meanings: Readonly<Record<string, string>>,
): readonly SystemColumn[] {
  return Object.entries(meanings).map(([name, meaning]) => ({ name, type, meaning }));
}

/** Like `columns`, for columns that hold several texts each. */
export function textColumns(type: "list" | "set", meanings: Readonly<Record<string, string>>): readonly SystemColumn[] {
  return Object.entries(meanings).map(([name, meaning]) => ({ name, type, elements: ["varchar"], meaning }));
}

/** The meanings of the columns by name, without sealed ones. */
export function meaningsOf({ columns: all }: SystemClass): ReadonlyMap<string, string> {
  return new Map(all.flatMap((column) => ("meaning" in column ? [[column.name, column.meaning] as const] : [])));
}

/** The columns as they are stored. */
export function storedColumns({ columns: all }: SystemClass): readonly ColumnSpec[] {
  return all.map((column) => {
    const stored: ColumnSpec & { meaning?: string } = { ...column };
    delete stored.meaning;
    return stored;
  });
}
