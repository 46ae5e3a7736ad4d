import { Type } from "typebox";
import { RECENT_RECORDS_DEFAULT, RECENT_RECORDS_MAX } from "../limits.ts";
import {
  ENCODING,
  FILE_NAME,
  having,
  NOT_EMPTY,
  oneOfMembers,
  PATH_BELOW,
  RULE_KEY,
  RULE_PATH,
  without,
} from "./documented.ts";
import { Revision } from "./revision.ts";

const Key = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "Configuration key of the rule, such as /matrix/rules/access",
  documented: RULE_KEY,
});

export const RuleQuery = Type.Object({
  class: Type.Optional(Type.String({ description: "Only rules whose records go to this class" })),
});

export const RuleList = Type.Array(
  Type.Object({
    key: Type.String({ description: "Configuration key of the rule" }),
    class: Type.String({ description: "Path of the class that its rows go to; empty where its body names classes" }),
    type: Type.String({ description: "Parser of the rule: text, json, csv or grok" }),
    value: Type.String({ description: "The rule's text" }),
    revision: Revision,
  }),
);

export const RulePut = Type.Object({ key: Key, value: Type.String({ description: "The rule's text: option lines" }) });

export const RuleKey = Type.Object({ key: Key });

const NEW_RULES = [
  { properties: { type: { enum: ["text", "json", "csv"] } } },
  { properties: { fields: { minItems: 1 } }, required: ["fields"] },
];

export const RuleNew = Type.Object(
  {
    class: Type.String({ minLength: 1, description: "Path of the class that the rows go to" }),
    type: Type.Union([Type.Literal("text"), Type.Literal("json"), Type.Literal("csv"), Type.Literal("grok")], {
      description: "Parser of the rule",
    }),
    fields: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "Of grok: names of patterns, tried in this order, or where mapping names several of them, one line of all of them with blanks between; of csv and text: class fields",
      }),
    ),
    mapping: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: "Of grok: class field to the name of a pattern of fields, or to a name that one captures",
      }),
    ),
  },
  { documented: { anyOf: NEW_RULES } },
);

const SAMPLES = [
  { ...having("lines"), ...without("policy") },
  { ...having("policy"), ...without("lines") },
];
const TRIED = [
  { ...having("pattern"), ...without("key", "text") },
  { ...oneOfMembers(["key"], ["text"], ["policy"]), ...without("pattern") },
];

export const RuleTry = Type.Object(
  {
    key: Type.Optional(Key),
    text: Type.Optional(Type.String({ description: "A rule's text; without it, the stored rule of the key is tried" })),
    pattern: Type.Optional(
      Type.String({
        documented: NOT_EMPTY,
        description: "A grok expression, tried alone, in place of a rule: what it captures is in fields",
      }),
    ),
    lines: Type.Optional(
      Type.Array(Type.String(), { description: "Sample records; without them, those of the policy" }),
    ),
    policy: Type.Optional(
      Type.String({
        documented: FILE_NAME,
        description:
          "A policy whose latest raw records are the sample, as the controllers that run have them in memory; without key and text, its rule is tried",
      }),
    ),
    last: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: RECENT_RECORDS_MAX,
        description: `How many records of the policy, ${RECENT_RECORDS_DEFAULT} without it`,
      }),
    ),
    host: Type.Optional(Type.String({ description: "Where the records would come from" })),
    source: Type.Optional(Type.String({ description: "The file or policy they would come from" })),
    groups: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: "Named groups of a log policy's file match" }),
    ),
  },
  { documented: { allOf: [{ anyOf: SAMPLES }, { anyOf: TRIED }] } },
);

export const RuleTryReply = Type.Object({
  class: Type.String({ description: "Of the rule; empty where its body names classes, and of a pattern" }),
  records: Type.Array(
    Type.Object({
      line: Type.Integer({ description: "Of the sample, from 1" }),
      raw: Type.Optional(
        Type.Object(
          {
            text: Type.String({ description: "Text of the record" }),
            time: Type.Number({ description: "Milliseconds since 1970" }),
            host: Type.String({ description: "Host that sent the record" }),
            source: Type.String({ description: "File or command of the record" }),
          },
          { description: "The record of the policy" },
        ),
      ),
      fields: Type.Optional(
        Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
          description: "Of pattern: what it captures of the record, by name",
        }),
      ),
      rows: Type.Array(
        Type.Object({
          class: Type.String({ description: "Path of the class of the row" }),
          values: Type.Record(Type.String(), Type.Unknown(), { description: "Values by column" }),
          time: Type.Optional(
            Type.Number({ description: "Milliseconds since 1970, where --time gives the record a time of its own" }),
          ),
        }),
        { description: "Rows that the rule makes of the record" },
      ),
      errors: Type.Array(
        Type.Object({
          message: Type.String({ description: "The error in words" }),
          line: Type.Optional(Type.Integer({ description: "Of the rule's text, where its body went wrong" })),
          column: Type.Optional(Type.Integer({ description: "Column of the rule's text, from 1" })),
        }),
        { description: "Why the record, or a row of it, does not fit" },
      ),
    }),
    { description: "Each record of the sample" },
  ),
  log: Type.Array(
    Type.Object({
      level: Type.String({ description: "Level of the message, such as info" }),
      msg: Type.String({ description: "Text of the message" }),
    }),
    { description: "Messages of the body" },
  ),
  notCalled: Type.Array(Type.String(), { description: "Functions that bodies called and a trial does not carry out" }),
  msPerRecord: Type.Number({ description: "Mean time for a record, in milliseconds" }),
});

export const ParseFileQuery = Type.Object({
  rule: Key,
  filename: Type.String({ minLength: 1, documented: PATH_BELOW, description: "Path of the file in the file space" }),
  encoding: Type.Optional(
    Type.String({
      description: "Encoding of the file, such as gbk, utf-16le or windows-1252; UTF-8 when absent",
      documented: ENCODING,
    }),
  ),
  $issys: Type.Optional(Type.Boolean({ description: "As issys" })),
  issys: Type.Optional(
    Type.Boolean({
      description:
        "The file is in the system's space only, for administrators. Otherwise in the users' space first, then in the system's. Older clients send it as $issys",
    }),
  ),
});

export const ParseFileReply = Type.Object({
  class: Type.String({ description: "Path of the class of the rule" }),
  records: Type.Integer({ description: "Records stored" }),
  removed: Type.Integer({ description: "Records that were removed after an earlier run, and stay so" }),
  failed: Type.Integer({ description: "Lines that could not be parsed or stored" }),
  errors: Type.Array(
    Type.Object({
      line: Type.Integer({ description: "Number of the line, from 1" }),
      error: Type.String({ description: "Reason" }),
    }),
    { description: "The first lines that failed" },
  ),
});

export const SentLinesQuery = Type.Object({
  rule: Type.Optional(Key),
  subject: Type.Optional(
    Type.String({ minLength: 1, maxLength: 500, description: "Channel that hears each line, in place of a rule" }),
  ),
  malformed: Type.Optional(
    Type.Literal("mark", {
      description:
        "Lines with bytes that are no text are taken for a rule that makes records, and these are marked; refused otherwise",
    }),
  ),
});

export const SentLinesReply = Type.Partial(
  Type.Object({
    ...ParseFileReply.properties,
    frames: Type.Integer({ description: "Of a channel: lines sent" }),
  }),
);

export const ExtensionPath = Type.Object({
  "*": Type.String({
    description: "Configuration key of the rule, without its first slash",
    documented: RULE_PATH,
  }),
});

const PatternText = Type.String({
  documented: { pattern: "^[A-Za-z0-9_]{1,128}$" },
  description: "Name of the pattern",
});

export const PatternName = Type.Object({ name: PatternText });

export const PatternPut = Type.Object({
  name: PatternText,
  pattern: Type.String({
    documented: NOT_EMPTY,
    description: "A regular expression that names others as %{NAME} or %{NAME:field}",
  }),
  eg: Type.Optional(
    Type.String({ description: "A sample that the pattern is tried on; where it does not match, warnings say so" }),
  ),
});

export const Pattern = Type.Object({
  name: Type.String({ description: "Name of the pattern" }),
  pattern: Type.String({ description: "The regular expression" }),
  eg: Type.String({ description: "Sample that the pattern was tried on; empty: none" }),
  revision: Revision,
});

export const PatternList = Type.Array(Pattern);
