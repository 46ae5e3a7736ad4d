import { Type } from "typebox";
import { Revision } from "./revision.ts";

/** Schemas of `/mxobject/trigger`. */

export const TriggerQuery = Type.Object({ class: Type.String({ minLength: 1 }) });

export const TriggerName = Type.Object({
  class: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1, description: "Letters, digits, `_`, `-` and `.`" }),
});

export const TriggerPut = Type.Object({
  class: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1, description: "Letters, digits, `_`, `-` and `.`" }),
  script: Type.String({ description: "Lua 5.1, or JavaScript where `attr.language` or the first line says so" }),
  attr: Type.Optional(
    Type.Object(
      {
        disable: Type.Optional(Type.Union([Type.String(), Type.Boolean()])),
        before: Type.Optional(Type.Union([Type.String(), Type.Boolean()])),
        level: Type.Optional(Type.Union([Type.String(), Type.Number()])),
        language: Type.Optional(Type.String()),
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
