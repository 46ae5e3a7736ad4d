import { Type } from "typebox";
import { RuleNew } from "../../../common/api/rules.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject, membersOf } from "../../scripting/index.ts";
import type { FileParser } from "./parsing/parse-file.ts";
import type { SentLines } from "./parsing/sent-lines.ts";
import type { RuleService } from "./service.ts";

export interface RuleHostParts {
  readonly rules: RuleService;
  readonly fileParser: FileParser;
}

const KEY = {
  name: "key",
  schema: Type.String({ description: "Configuration key, as /matrix/rules/access" }),
} as const;
const MADE = 'rule.put("/matrix/rules/example", "--class=/matrix/example\\n--parser=text\\n--fields=line"); ';

/** Host object `rule`: rules and their extension tables. */
export function ruleHostObject(parts: RuleHostParts): HostObject {
  return {
    name: "rule",
    summary: "Rules and their extension tables, with the rights of the script",
    functions: [...own(parts), ...extensions(parts)],
  };
}

/** Host object `forward`: sends lines of a script to a rule, like `POST /agent`. */
export function forwardHostObject(sentLines: Pick<SentLines, "take">): HostObject {
  return {
    name: "forward",
    summary: "Lines through a rule, with the rights of the script",
    // Not in bodies of rules: they have a function of this name.
    kinds: ["serverjs", "trigger"],
    functions: [
      hostFunction({
        name: "send",
        summary: "Stores what a rule makes of lines; sent again, they are stored again",
        parameters: [
          { ...KEY, name: "rule" },
          {
            name: "data",
            schema: Type.Unknown({ description: "Text, a record in each line; a list, a record each; others as JSON" }),
          },
        ],
        returns: "{class, records, removed, failed, errors, warnings}",
        example: `odb.mql("CREATE CLASS IF NOT EXISTS /matrix/example (line varchar)");
${MADE}OUTPUT = forward.send("/matrix/rules/example", ["one", "two"]).records`,
        changes: true,
        call: async ({ principal, signal }, rule, data) =>
          valueOf(await sentLines.take(principal, { rule, text: linesOf(data), signal })),
      }),
    ],
  };
}

function linesOf(data: unknown): string {
  return Array.isArray(data) ? data.map(lineOf).join("\n") : lineOf(data);
}

function lineOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function own({ rules, fileParser }: RuleHostParts): readonly HostFunction[] {
  return [
    hostFunction({
      name: "list",
      summary: "Rules, or those of one class",
      parameters: [{ name: "class", schema: Type.String({ description: "Its path" }), optional: true }],
      returns: "list of {key, class, type, value}",
      example: 'OUTPUT = _.pluck(rule.list(), "key")',
      call: async ({ principal }, path) => valueOf(await rules.list(principal, path)),
    }),
    hostFunction({
      name: "put",
      summary: "Inserts or replaces a rule",
      parameters: [KEY, { name: "text", schema: Type.String({ description: "Its text" }) }],
      returns: "list of warnings",
      example: MADE.trim(),
      changes: true,
      call: async ({ principal }, key, text) => valueOf(await rules.put(principal, key, text)),
    }),
    hostFunction({
      name: "create",
      summary: "Makes the rule of a class and type",
      parameters: [{ name: "rule", schema: Type.Object({}, { description: "{class, type, fields, mapping}" }) }],
      returns: "its key",
      example: `odb.mql("CREATE CLASS IF NOT EXISTS /matrix/example (line varchar)");
OUTPUT = rule.create({ class: "/matrix/example", type: "text", fields: ["line"] })`,
      changes: true,
      call: async ({ principal, log }, given) =>
        (await rules.create(principal, membersOf(RuleNew, given, { log }))).key,
    }),
    hostFunction({
      name: "delete",
      summary: "Removes a rule with its extension table",
      parameters: [KEY],
      returns: "nothing",
      example: `${MADE}rule.delete("/matrix/rules/example")`,
      changes: true,
      call: async ({ principal }, key) => {
        await rules.remove(principal, key);
        return undefined;
      },
    }),
    hostFunction({
      name: "parsefile",
      summary: "Parses a file of the file space into the class of a rule",
      parameters: [
        KEY,
        { name: "path", schema: Type.String({ description: "Path of the file" }) },
        {
          name: "encoding",
          schema: Type.String({ description: "Encoding of the file; UTF-8 without it" }),
          optional: true,
        },
      ],
      returns: "{class, records, failed, errors, warnings}",
      example: `odb.mql("CREATE CLASS IF NOT EXISTS /matrix/example (line varchar)");
dfs.write("/tmp/lines.txt", "one\\ntwo"); ${MADE}
OUTPUT = rule.parsefile("/matrix/rules/example", "/tmp/lines.txt").records`,
      changes: true,
      call: async ({ principal, signal }, key, filename, encoding) =>
        valueOf(await fileParser.parse(principal, { rule: key, filename, space: "user", encoding, signal })),
    }),
  ];
}

function extensions({ rules }: RuleHostParts): readonly HostFunction[] {
  return [
    hostFunction({
      name: "getextend",
      summary: "The extension table of a rule",
      parameters: [KEY],
      returns: "LTSV text, empty without one",
      example: `${MADE}OUTPUT = rule.getextend("/matrix/rules/example")`,
      call: ({ principal }, key) => rules.extension(principal, key),
    }),
    hostFunction({
      name: "setextend",
      summary: "Replaces the extension table of a rule; an empty text removes it",
      parameters: [KEY, { name: "text", schema: Type.String({ description: "Lines of label:value, split by tabs" }) }],
      returns: "nothing",
      example: `${MADE}rule.setextend("/matrix/rules/example", "key:web-1\\tval:front")`,
      changes: true,
      call: async ({ principal }, key, text) => {
        await rules.putExtension(principal, key, text);
        return undefined;
      },
    }),
  ];
}

function valueOf(answer: object): Value {
  return answer as Value;
}
