import type { Field } from "../../../common/mql/index.ts";
import type { Row } from "../../../common/value.ts";
import type { Kind } from "./kind.ts";
import type { Arguments } from "./literal.ts";
import type { Source } from "./predicate.ts";
import type { BoundField } from "./scope.ts";

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
