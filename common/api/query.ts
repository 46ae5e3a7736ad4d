import { Type, type Static } from "typebox";
import { NOT_EMPTY } from "./documented.ts";

export const MqlInput = Type.Object(
  {
    /** The statements; absent if they are the body. */
    mql: Type.Optional(Type.String({ documented: NOT_EMPTY })),
    /** True: also returns the columns and classes of the rows. */
    meta: Type.Optional(Type.Boolean()),
    /** Values for `?` placeholders: one list of values per execution, or the values of one execution. */
    values: Type.Optional(Type.Array(Type.Unknown())),
    /** Position of a page of one SELECT with LIMIT: empty for the first, then `meta.cursor` of the previous answer. */
    cursor: Type.Optional(Type.String()),
    /** Zone of the days, weeks, months and years in the statement, such as Europe/Berlin; absent: the user's zone. */
    time_zone: Type.Optional(Type.String()),
  },
  { documented: { required: ["mql"] } },
);
export type MqlInput = Static<typeof MqlInput>;

export const MqlRows = Type.Array(Type.Record(Type.String(), Type.Unknown()));

export const SearchInput = Type.Object(
  {
    /** The condition; absent if it is the body. */
    cond: Type.Optional(Type.String({ documented: NOT_EMPTY })),
    /** True: also returns the columns and classes of the rows. */
    meta: Type.Optional(Type.Boolean()),
    /** Zone of the days, weeks, months and years in the condition, such as Europe/Berlin; absent: the user's zone. */
    time_zone: Type.Optional(Type.String()),
  },
  { documented: { required: ["cond"] } },
);
export type SearchInput = Static<typeof SearchInput>;
