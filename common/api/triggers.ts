import { Type } from "typebox";
import { CLASS_PATH, oneOfWords } from "./documented.ts";
import { Revision } from "./revision.ts";

/** Schemas of `/mxobject/trigger`. */

export const TriggerQuery = Type.Object({ class: Type.String({ minLength: 1 }) });

export const TriggerName = Type.Object({
  class: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1, description: "Letters, digits, `_`, `-` and `.`" }),
});

const LEVEL = { minimum: -1_000_000, maximum: 1_000_000, multipleOf: 1 };
const LEVEL_TEXT = { pattern: "^(-?[0-9]{1,6})?$" };
/** Clients send flags as texts. */
const Truth = Type.Optional(
  Type.Union([Type.String({ documented: { pattern: "^([Tt]rue|[Ff]alse)?$" } }), Type.Boolean()]),
);

export const TriggerPut = Type.Object({
  class: Type.String({ minLength: 1, documented: CLASS_PATH }),
  name: Type.String({
    minLength: 1,
    description: "Letters, digits, `_`, `-` and `.`",
    documented: { pattern: "^[\\p{L}\\p{N}_.-]+$" },
  }),
  script: Type.String({ description: "Lua 5.1, or JavaScript where `attr.language` or the first line says so" }),
  attr: Type.Optional(
    Type.Object(
      {
        disable: Truth,
        before: Truth,
        level: Type.Optional(Type.Union([Type.String({ documented: LEVEL_TEXT }), Type.Number({ documented: LEVEL })])),
        language: Type.Optional(Type.String({ documented: oneOfWords(["", "lua", "javascript", "js"]) })),
      },
      { description: "Texts: `disable`, `before`, `level`, `language`" },
    ),
  ),
});

export const TriggerList = Type.Array(
  Type.Object({
    class: Type.String(),
    vtime: Type.Number({ description: "Of the latest change, in milliseconds" }),
    script: Type.Record(Type.String(), Type.String()),
    attr: Type.Record(Type.String(), Type.String({ description: "The attributes as JSON" })),
    revision: Type.Record(Type.String(), Revision),
  }),
);
