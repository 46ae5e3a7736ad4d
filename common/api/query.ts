import { Type, type Static } from "typebox";
import { NOT_EMPTY } from "./documented.ts";

export const MqlInput = Type.Object(
  {
    mql: Type.Optional(
      Type.String({
        documented: NOT_EMPTY,
        description: "Statements, separated by semicolons; absent if they are the body",
      }),
    ),
    meta: Type.Optional(
      Type.Boolean({ description: "True: also answers the columns and classes of the rows, as meta" }),
    ),
    values: Type.Optional(
      Type.Array(Type.Unknown(), {
        description: "Values for `?` placeholders: one list of values per execution, or the values of one execution",
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        description:
          "Position of a page of one SELECT with LIMIT: empty for the first, then `meta.cursor` of the answer before",
      }),
    ),
    time_zone: Type.Optional(
      Type.String({
        description:
          "Zone of the days, weeks, months and years in the statement, such as Europe/Berlin; absent: the user's zone, otherwise that of the class",
      }),
    ),
  },
  { documented: { required: ["mql"] } },
);
export type MqlInput = Static<typeof MqlInput>;

export const MqlRows = Type.Array(Type.Record(Type.String(), Type.Unknown()));

export const SearchInput = Type.Object(
  {
    cond: Type.Optional(Type.String({ documented: NOT_EMPTY, description: "The search; absent if it is the body" })),
    meta: Type.Optional(
      Type.Boolean({ description: "True: also answers the columns and classes of the rows, as meta" }),
    ),
    time_zone: Type.Optional(
      Type.String({
        description:
          "Zone of the days, weeks, months and years in the search, such as Europe/Berlin; absent: the user's zone, otherwise that of the class",
      }),
    ),
  },
  { documented: { required: ["cond"] } },
);
export type SearchInput = Static<typeof SearchInput>;
