import type { Call, Field, Operand } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { Kind } from "./kind.ts";
import type { Arguments } from "./literal.ts";
import type { Source } from "./source.ts";
import type { SeriesPart } from "./aggregates/timeseries.ts";

/** Fields that every object has besides its columns. A column of the same name does not hide them. */
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
  /** The id without its label, which ascends in the order of arrival in all classes. No statement names it. */
  readonly isArrival?: true;
  /** Members of a map, from the outside in. */
  readonly members: readonly string[];
  /** It is what edges lead to, and no value of the object itself. */
  readonly relation?: RelationPath;
  /** It follows from several rows: which of the windows of the SELECT, and what it answers. */
  readonly window?: { readonly index: number; readonly kinds: readonly Kind[] };
  /** Set for a time series. */
  readonly series?: SeriesPart | undefined;
  /** Present if the value is computed from fields and is not a field itself. */
  readonly computed?: { readonly node: Exclude<Operand, Field | Call>; readonly values: Arguments };
}

/** `uplink.site.name`: the edges that are followed, one behind the other, and what is wanted of the objects at their ends. */
export interface RelationPath {
  /** Names it among all paths from objects of the same class tree. */
  readonly key: string;
  /** Edge types. */
  readonly steps: readonly string[];
  /** Among the fields of all objects; absent: their ids are wanted. */
  readonly end: BoundField | undefined;
  /** As written, by the defined names. */
  readonly parts: readonly string[];
}

/** Meaning of names in a statement. */
export interface Names {
  /** `AppError("not_found")` for a field that does not exist, `invalid` for one that can be several. */
  bind(field: Field, values?: Arguments): BoundField;
  kindsOf(field: BoundField): readonly Kind[];
  /** The defined form of a name written in any case, as a star puts it into rows; undefined if there is none. */
  definedName(written: string): string | undefined;
  /** Kinds of the values that a star puts into rows under that name, if the star does not mean a list of fields. */
  kindsNamed(name: string): readonly Kind[];
  /** The fields of `*` or `a.*`; absent: all that a row's class has. */
  star(alias: string | undefined): readonly BoundField[] | undefined;
}

/** The same with the rows that the names are about. */
export interface Fields<R> extends Names {
  source(field: BoundField): Source<R>;
  /** Time of the last write of the object that the field belongs to. */
  writtenMs(field: BoundField | undefined): (row: R) => number;
  /** Puts all values of a row into the answer; for a star that does not mean a list of fields. */
  wholeRow(): (row: R, result: Row) => void;
}
