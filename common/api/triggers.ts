import { Type } from "typebox";
import { CLASS_PATH, oneOfWords } from "./documented.ts";
import { Revision } from "./revision.ts";

/** Schemas of `/mxobject/trigger`. */

export const TriggerQuery = Type.Object({ class: Type.String({ minLength: 1, description: "Path of the class" }) });

export const TriggerName = Type.Object({
  class: Type.String({ minLength: 1, description: "Path of the class" }),
  name: Type.String({ minLength: 1, description: "Letters, digits, `_`, `-` and `.`" }),
});

const LEVEL = { minimum: -1_000_000, maximum: 1_000_000, multipleOf: 1 };
const LEVEL_TEXT = { pattern: "^(-?[0-9]{1,6})?$" };
/** Clients send flags as texts. */
const truth = (description: string) =>
  Type.Optional(
    Type.Union([Type.String({ documented: { pattern: "^([Tt]rue|[Ff]alse)?$" } }), Type.Boolean()], { description }),
  );

export const TriggerPut = Type.Object({
  class: Type.String({
    minLength: 1,
    documented: CLASS_PATH,
    description: "Path of the class; its subclasses have the trigger as well",
  }),
  name: Type.String({
    minLength: 1,
    description: "Letters, digits, `_`, `-` and `.`",
    documented: { pattern: "^[\\p{L}\\p{N}_.-]+$" },
  }),
  script: Type.String({ description: "Lua 5.1, or JavaScript where `attr.language` or the first line says so" }),
  attr: Type.Optional(
    Type.Object(
      {
        disable: truth("True: the trigger does not run"),
        before: truth("True or absent: the trigger runs before the write and may change or refuse it; false: after it"),
        level: Type.Optional(
          Type.Union([Type.String({ documented: LEVEL_TEXT }), Type.Number({ documented: LEVEL })], {
            description: "Order among the triggers of a write, ascending; 0 when absent",
          }),
        ),
        language: Type.Optional(
          Type.String({
            documented: oneOfWords(["", "lua", "javascript", "js"]),
            description: "Language of the script; Lua when absent, unless its first line says otherwise",
          }),
        ),
      },
      { description: "Texts: `disable`, `before`, `level`, `language`" },
    ),
  ),
});

export const TriggerList = Type.Array(
  Type.Object({
    class: Type.String({ description: "Path of the class" }),
    vtime: Type.Number({ description: "Of the latest change, in milliseconds" }),
    script: Type.Record(Type.String(), Type.String(), { description: "Script of each trigger by name" }),
    attr: Type.Record(Type.String(), Type.String({ description: "The attributes as JSON" }), {
      description: "Attributes of each trigger by name",
    }),
    revision: Type.Record(Type.String(), Revision, { description: "Revision of each trigger by name" }),
  }),
);
