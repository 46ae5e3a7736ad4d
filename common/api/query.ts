import { Type, type Static } from "typebox";

export const MqlInput = Type.Object({
  /** The statements; absent when they are the body. */
  mql: Type.Optional(Type.String()),
  /** Answers what the columns and classes of the rows are, too. */
  meta: Type.Optional(Type.Boolean()),
  /** For `?` placeholders: one list of values per execution, or the values of one. */
  values: Type.Optional(Type.Array(Type.Unknown())),
  /** For a page of a single SELECT with LIMIT: empty for the first one, then `meta.cursor` of the answer before. */
  cursor: Type.Optional(Type.String()),
  /** The zone whose days, weeks, months and years are meant, such as Europe/Berlin; absent: that of the user. */
  time_zone: Type.Optional(Type.String()),
});
export type MqlInput = Static<typeof MqlInput>;

export const MqlRows = Type.Array(Type.Record(Type.String(), Type.Unknown()));

export const SearchInput = Type.Object({
  /** The condition; absent when it is the body. */
  cond: Type.Optional(Type.String()),
  /** Answers what the columns and classes of the rows are, too. */
  meta: Type.Optional(Type.Boolean()),
  /** The zone whose days, weeks, months and years are meant, such as Europe/Berlin; absent: that of the user. */
  time_zone: Type.Optional(Type.String()),
});
export type SearchInput = Static<typeof SearchInput>;
