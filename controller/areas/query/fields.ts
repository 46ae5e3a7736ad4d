import type { Field } from "../../../common/mql/index.ts";
import type { Row } from "../../../common/value.ts";
import type { Kind } from "./kind.ts";
import type { Arguments } from "./literal.ts";
import type { Source } from "./predicate.ts";
import type { SeriesPart } from "./timeseries.ts";

/** What every object has besides its columns. A column cannot take these names away. */
export type PseudoField = "id" | "class" | "day" | "vtime" | "ctime" | "mtime";

/** A field name made definite: a pseudo field, or a column that at least one class of the scope has. */
export interface BoundField {
  /** Names it among all fields of the statement. */
  readonly label: string;
  /** As clients expect it in a row when no other field is called so. */
  readonly short: string;
  readonly name: string;
  /** Which of the joined classes it is of; 0 where there is one. */
  readonly table: number;
  readonly pseudo: PseudoField | undefined;
  /** Members of a map, from the outside in. */
  readonly members: readonly string[];
  /** Of a time series. */
  readonly series?: SeriesPart | undefined;
}

/** What names mean in a statement. */
export interface Names {
  /** `AppError("not_found")` for a field that does not exist, `invalid` for one that can be several. */
  bind(field: Field, values?: Arguments): BoundField;
  kindsOf(field: BoundField): readonly Kind[];
  /** Of what a star that stands for no list of fields puts into rows under that name. */
  kindsNamed(name: string): readonly Kind[];
  /** What `*` or `a.*` stands for; absent: all that a row's class has. */
  star(alias: string | undefined): readonly BoundField[] | undefined;
}

/** The same with the rows that the names are about. */
export interface Fields<R> extends Names {
  source(field: BoundField): Source<R>;
  /** When the object that the field is of was last written. */
  writtenMs(field: BoundField | undefined): (row: R) => number;
  /** Puts everything that a row has into the answer; for the star that stands for no list of fields. */
  wholeRow(): (row: R, result: Row) => void;
}
