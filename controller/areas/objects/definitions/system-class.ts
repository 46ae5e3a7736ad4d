import type { Row } from "../../../../common/value.ts";
import type { Principal } from "../../permissions/index.ts";
import type { ClassGuard, ClassSpec, ColumnSpec } from "../types.ts";

/** A column of a system class. Its title says what the value means, with its unit; sealed columns are never shown. */
export type SystemColumn = ColumnSpec & ({ readonly title: string } | { readonly sealed: true });

/** A system class that its owner wants in every tenant. `path` is relative to the ospace, as in `/system/hostinfo`. */
export interface SystemClass extends ClassSpec {
  readonly columns: readonly SystemColumn[];
  readonly guard: ClassGuard;
  /**
   * For a class that is not stored: returns its rows, each with `id` and `class`. The query area applies row and field
   * permissions.
   */
  readonly provide?: (principal: Principal) => AsyncIterable<readonly Row[]>;
}

/** Columns of one type, for the classes of the platform: maps the name of each to its title. */
export function columns(
  type: Exclude<ColumnSpec["type"], "list" | "set" | "map">,
  titles: Readonly<Record<string, string>>,
): readonly SystemColumn[] {
  return Object.entries(titles).map(([name, title]) => ({ name, type, title }));
}

/** Like `columns`, for columns that hold several texts each. */
export function textColumns(type: "list" | "set", titles: Readonly<Record<string, string>>): readonly SystemColumn[] {
  return Object.entries(titles).map(([name, title]) => ({ name, type, elements: ["varchar"], title }));
}
