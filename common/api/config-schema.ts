/** Schemas of `/config/schema`. */
import { Type, type Static } from "typebox";
import { CONFIG_SCHEMA_VALUES_MAX, PATTERN_MAX_CHARACTERS } from "../limits.ts";
import { CONFIG_KEY, without } from "./documented.ts";

const Key = Type.String({
  minLength: 1,
  description: "A key or a directory, such as /matrix/etc/mail",
  documented: CONFIG_KEY,
});
const Length = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));

/** Restrictions on values, in the words and with the meaning of JSON Schema, except for `secret`. */
const RULES = {
  type: Type.Union(
    [
      Type.Literal("string"),
      Type.Literal("integer"),
      Type.Literal("number"),
      Type.Literal("boolean"),
      Type.Literal("json"),
    ],
    { description: "string, integer, number, boolean (true or false) or json (any JSON text)" },
  ),
  minimum: Type.Optional(Type.Number({ description: "Of integer and number" })),
  maximum: Type.Optional(Type.Number({ description: "Of integer and number" })),
  minLength: Length("Characters of a string"),
  maxLength: Length("Characters of a string"),
  enum: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: CONFIG_SCHEMA_VALUES_MAX,
      description: "The values there may be, as they are written",
    }),
  ),
  pattern: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: PATTERN_MAX_CHARACTERS,
      description: "A regular expression that is found in the value; ^ and $ bind it to the whole",
    }),
  ),
  secret: Type.Optional(Type.Boolean({ description: "Every value is sealed and shown as ********" })),
};

export const ConfigValueSchema = Type.Object(RULES, { additionalProperties: false });
export type ConfigValueSchema = Static<typeof ConfigValueSchema>;

const ofType = (types: readonly string[], unfit: readonly string[]) => ({
  properties: { type: { enum: types } },
  ...without(...unfit),
});
const NUMERIC = ["minimum", "maximum"];
const SIZED = ["minLength", "maxLength"];

export const ConfigSchemaInput = Type.Object(
  { key: Key, ...RULES },
  {
    documented: {
      anyOf: [
        ofType(["string"], NUMERIC),
        ofType(["integer", "number"], SIZED),
        ofType(["boolean", "json"], [...NUMERIC, ...SIZED]),
      ],
    },
  },
);

export const ConfigSchemaKey = Type.Object({ key: Key });

export const ConfigSchemaReply = Type.Object({
  key: Type.String({ description: "What it was made for: the key that was asked for, or the nearest above it" }),
  ...RULES,
  version: Type.Optional(Type.Integer({ description: "Counts the changes of the schema" })),
  author: Type.Optional(Type.String({ description: "User who wrote the schema" })),
  changed: Type.Optional(Type.Integer({ description: "Milliseconds since 1970" })),
});
