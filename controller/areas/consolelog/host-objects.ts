import { Type } from "typebox";
import { CONSOLE_LOG_PAGE_MAX_ROWS } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject, membersOf } from "../../scripting/index.ts";
import { CONSOLE_LOG_KINDS } from "./classes.ts";
import { LEVELS, levelOf } from "./levels.ts";
import type { ConsoleLogService } from "./service.ts";

/** `log`: the script's own console log. */
export const LOG_HOST_OBJECT: HostObject = {
  name: "log",
  summary: "The console log of the script; an entry begins with the place it was made at",
  functions: LEVELS.filter((name) => name !== "panic").map(logFunction),
};

function logFunction(name: (typeof LEVELS)[number]): HostFunction {
  return hostFunction({
    name,
    summary: `Makes an entry of the level ${name}`,
    parameters: [{ name: "values", schema: Type.Unknown({ description: "Texts; others as JSON" }), rest: true }],
    returns: "nothing",
    example: `log.${name}("three", { of: [1, 2, 3] })`,
    positioned: true,
    call: async ({ log, at }, values) => {
      const text = (values as readonly Value[]).map(textOf).join(" ");
      log(levelOf(name), at === "" ? text : `${at}: ${text}`);
      return undefined;
    },
  });
}

const KIND = {
  name: "kind",
  schema: Type.Union(
    CONSOLE_LOG_KINDS.map((kind) => Type.Literal(kind)),
    { description: "rule, serverjs or trigger" },
  ),
} as const;
const NAME = {
  name: "name",
  schema: Type.String({ description: "Whose log: path of a script, key of a rule" }),
} as const;

const Selection = Type.Object({
  levels: Type.Array(Type.String({ description: "Numbers or names; all when absent" }), { default: [] }),
  mintime: Type.Optional(Type.Integer({ minimum: 0 })),
  maxtime: Type.Optional(Type.Integer({ minimum: 0 })),
  position: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: CONSOLE_LOG_PAGE_MAX_ROWS })),
});

/** `consolelog`: the console logs of scripts, rules and triggers. */
export function consoleLogHostObject(logs: ConsoleLogService): HostObject {
  return {
    name: "consolelog",
    summary: "Console logs of rules, scripts and triggers, with the rights of the script",
    functions: [
      hostFunction({
        name: "read",
        summary: "Entries of a log, the oldest first",
        parameters: [
          KIND,
          NAME,
          {
            name: "options",
            schema: Type.Object({}, { description: "{levels, mintime, maxtime in milliseconds, position, limit}" }),
            optional: true,
          },
        ],
        returns:
          "{logs: [{edtime, sttime, level, msg, …}], position}, times in milliseconds; the next read goes on from the position",
        example: 'OUTPUT = consolelog.read("serverjs", "/inline.js", { levels: ["error"], limit: 10 }).logs.length',
        call: async ({ principal, signal, log }, kind, name, options = {}) => {
          const { limit, position, ...selection } = membersOf(Selection, options, { log });
          const page = await logs.read(
            principal,
            { kind, name, ...selection },
            { signal, ...(limit !== undefined && { limit }), ...(position !== undefined && { position }) },
          );
          return page as unknown as Value;
        },
      }),
      hostFunction({
        name: "delete",
        summary: "Removes the entries of a log",
        parameters: [KIND, NAME],
        returns: "how many",
        example: 'OUTPUT = consolelog.delete("serverjs", "/none.js")',
        changes: true,
        call: ({ principal, signal }, kind, name) => logs.remove(principal, { kind, name }, signal),
      }),
      hostFunction({
        name: "truncate",
        summary: "Removes all entries of a kind",
        parameters: [KIND],
        returns: "how many",
        example: 'OUTPUT = consolelog.truncate("trigger")',
        changes: true,
        call: ({ principal, signal }, kind) => logs.truncate(principal, kind, signal),
      }),
    ],
  };
}

function textOf(value: Value): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
