import { Type } from "typebox";

const Key = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "Configuration key of the rule, such as /matrix/rules/access",
});

export const RuleQuery = Type.Object({
  class: Type.Optional(Type.String({ description: "Only rules whose records go to this class" })),
});

export const RuleList = Type.Array(
  Type.Object({
    key: Type.String(),
    class: Type.String(),
    type: Type.String(),
    value: Type.String({ description: "The rule's text" }),
  }),
);

export const RulePut = Type.Object({ key: Key, value: Type.String({ description: "The rule's text: option lines" }) });

export const RuleKey = Type.Object({ key: Key });

export const RuleNew = Type.Object({
  class: Type.String({ minLength: 1 }),
  type: Type.Union([Type.Literal("text"), Type.Literal("json"), Type.Literal("csv"), Type.Literal("grok")]),
  fields: Type.Optional(
    Type.Array(Type.String(), {
      description: "Of grok: names of patterns, tried in this order; of csv and text: class fields",
    }),
  ),
  mapping: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: "Of grok: class field to captured name" }),
  ),
});

export const ParseFileQuery = Type.Object({
  rule: Key,
  filename: Type.String({ minLength: 1 }),
  $issys: Type.Optional(Type.Boolean()),
  issys: Type.Optional(Type.Boolean()),
});

export const ParseFileReply = Type.Object({
  class: Type.String(),
  records: Type.Integer({ description: "Records stored" }),
  removed: Type.Integer({ description: "Records that were removed after an earlier run, and stay so" }),
  failed: Type.Integer({ description: "Lines that could not be parsed or stored" }),
  errors: Type.Array(Type.Object({ line: Type.Integer(), error: Type.String() })),
});

export const ExtensionPath = Type.Object({ "*": Type.String({ description: "Configuration key of the rule" }) });

export const PatternName = Type.Object({ name: Type.String() });

export const PatternPut = Type.Object({
  name: Type.String(),
  pattern: Type.String({ description: "A regular expression that names others as %{NAME} or %{NAME:field}" }),
  eg: Type.Optional(Type.String({ description: "A sample that the pattern is tried on" })),
});

export const Pattern = Type.Object({ name: Type.String(), pattern: Type.String(), eg: Type.String() });

export const PatternList = Type.Array(Pattern);
