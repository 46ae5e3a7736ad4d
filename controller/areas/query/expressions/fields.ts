import type { Call, Field, Operand } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { Kind } from "./kind.ts";
import type { Arguments } from "./literal.ts";
import type { Source } from "./source.ts";
import type { SeriesPart } from "./aggregates/timeseries.ts";

/** Fields that every object has besides its columns. A column with the same name does not hide them. */
export type PseudoField = "id" | "class" | "day" | "vtime" | "ctime" | "mtime";

/** A field name after it was bound: a pseudo field, or a column that at least one class of the scope has. */
export interface BoundField {
  /** Identifies the field in the statement. */
  readonly label: string;
  /** Name in a row of the answer if no other field has that name. */
  readonly short: string;
  readonly name: string;
  /** Index of the joined class that has the field; 0 without a join. */
  readonly table: number;
  readonly pseudo: PseudoField | undefined;
  /**
   * Set for the id without its label, which ascends in the order of arrival in all classes. Statements cannot name it.
   */
  readonly isArrival?: true;
  /** Members of a map, from the outside in. */
  readonly members: readonly string[];
  /** Set if the value belongs to related objects, not to the object itself. */
  readonly relation?: RelationPath;
  /** Set if the value is computed from several rows: index of the window in the SELECT, and kinds of its values. */
  readonly window?: { readonly index: number; readonly kinds: readonly Kind[] };
  /** Set for a time series. */
  readonly series?: SeriesPart | undefined;
  /** Present if the value is computed from fields and is not a field itself. */
  readonly computed?: { readonly node: Exclude<Operand, Field | Call>; readonly values: Arguments };
}

/**
 * A path such as `uplink.site.name`: the edges to follow one after the other, and the field of the objects at their
 * ends.
 */
export interface RelationPath {
  /** Identifies the path among all paths from objects of the same class tree. */
  readonly key: string;
  /** Edge types. */
  readonly steps: readonly string[];
  /** Field in the scope of all objects; absent: the ids of the objects are wanted. */
  readonly end: BoundField | undefined;
  /** The path as written, but with the defined names. */
  readonly parts: readonly string[];
}

/** Meaning of names in a statement. */
export interface Names {
  /** `AppError("not_found")` for a field that does not exist, `invalid` for a name with several meanings. */
  bind(field: Field, values?: Arguments): BoundField;
  kindsOf(field: BoundField): readonly Kind[];
  /** The defined form of a name written in any case, as `*` puts it into rows; undefined if there is none. */
  definedName(written: string): string | undefined;
  /** Kinds of the values that `*` puts into rows under that name. Empty if `*` means a list of fields. */
  kindsNamed(name: string): readonly Kind[];
  /** The fields of `*` or `a.*`; absent: all fields of a row's class. */
  star(alias: string | undefined): readonly BoundField[] | undefined;
}

/** The same names together with the rows that have the values. */
export interface Fields<R> extends Names {
  source(field: BoundField): Source<R>;
  /** Time of the last write of the object that the field belongs to. */
  writtenMs(field: BoundField | undefined): (row: R) => number;
  /** Puts all values of a row into the answer. Only for a `*` that does not mean a list of fields. */
  wholeRow(): (row: R, result: Row) => void;
}
