import { BlockList, isIP } from "node:net";
import { Type } from "typebox";
import { AppError } from "../../../../common/errors.ts";
import type { Value } from "../../../../common/value.ts";
import { type HostContext, hostFunction, type HostObject } from "../../../scripting/index.ts";
import { requirePermission } from "../../permissions/index.ts";
import { keyOf } from "../../tables/index.ts";
import { readExtension } from "../definitions/extension.ts";
import type { RuleMemory } from "./memory.ts";
import { cachedClasses, readRuleText } from "../definitions/options.ts";
import type { PinnedTable } from "../definitions/supplements.ts";
import type { Rule } from "../types.ts";

/** Data of a run for the host functions of rules. */
export interface RuleRun {
  readonly rule: Rule;
  readonly memory: RuleMemory;
}

const CACHE_VALUE_MAX_CHARACTERS = 65_536;
const KINDS = ["rule"] as const;

/** Host object `record`: functions for the body of a rule. Each of them is also a global function. */
export const RECORD_HOST_OBJECT: HostObject = {
  name: "record",
  summary: "What the body of a rule asks for; each function is a global one, too",
  kinds: KINDS,
  functions: [
    hostFunction({
      name: "lookup",
      summary: "A row of an extension table: of a rule by its key, or of /extend by its name, which stands in the text",
      parameters: [
        { name: "table", schema: Type.String({ description: "As it stands in the text of the rule" }) },
        { name: "where", schema: Type.Object({}, { additionalProperties: true, description: "{key: …}" }) },
      ],
      returns: "the row, nothing without one",
      example: 'local row = lookup("/matrix/rules/hosts", { key = "web-1" })\nsetvar("note", row and row.val)',
      call: async (context, name, where) => {
        const { key } = where as { readonly key?: Value };
        return rowOf(context, name, typeof key === "string" ? key : JSON.stringify(key ?? null));
      },
    }),
    hostFunction({
      name: "setcache",
      summary:
        "Keeps a value for later records of the rule, in the memory of this controller, as long as there is room",
      parameters: [
        { name: "key", schema: Type.String({ maxLength: 1_024 }) },
        { name: "value", schema: Type.Unknown() },
        { name: "ttl", schema: Type.Number({ minimum: 0, description: "Seconds; 0: none" }), optional: true },
      ],
      returns: "nothing",
      example: 'setcache("last", getvar("_raw"), 60)',
      call: async (context, key, value, ttlSeconds = 0) => {
        const { memory, name } = runOf(context, key);
        const text = JSON.stringify(value) ?? "null";
        if (text.length > CACHE_VALUE_MAX_CHARACTERS)
          throw new AppError(
            "too_large",
            `A value kept by setcache has at most ${CACHE_VALUE_MAX_CHARACTERS} characters.`,
          );
        memory.set(context.principal.tenant, name, { text, ttlSeconds });
        return undefined;
      },
    }),
    hostFunction({
      name: "getcache",
      summary: "A value that setcache keeps; nothing when it is gone",
      parameters: [{ name: "key", schema: Type.String({ maxLength: 1_024 }) }],
      returns: "the value",
      example: 'setvar("note", getcache("last"))',
      call: async (context, key) => {
        const { memory, name } = runOf(context, key);
        const text = memory.get(context.principal.tenant, name);
        return text === undefined ? undefined : (JSON.parse(text) as Value);
      },
    }),
    hostFunction({
      name: "classcache",
      summary: "Rows of a class that --cache_classes names: those with all these values, as they were at most 10 s ago",
      parameters: [
        { name: "class", schema: Type.String({ description: "As the option names it" }) },
        {
          name: "where",
          schema: Type.Object({}, { additionalProperties: true, description: "{column: value, …}" }),
          optional: true,
        },
      ],
      returns: "list of rows, empty without one",
      example:
        '--cache_classes=/matrix/keyed\nlocal rows = classcache("/matrix/keyed", { name = OBJECT.name })\nsetvar("note", rows[1] and rows[1].note)',
      call: async (context, path, where = {}) => {
        const { rule, memory } = context.about as RuleRun;
        if (!cachedClasses(readRuleText(rule.text)).includes(path))
          throw new AppError("invalid", `The rule has no ${path} in its option --cache_classes.`);
        return memory.classes.find(context, path, where as Readonly<Record<string, Value>>);
      },
    }),
    hostFunction({
      name: "ipinfo",
      summary: "What an address is by itself; where it lies is not known here",
      parameters: [{ name: "address", schema: Type.String({ maxLength: 64 }) }],
      returns: "{ip, version, scope: global|private|loopback|linklocal|multicast}, nothing for what is no address",
      example: 'local info = ipinfo("10.0.0.1")\nsetvar("note", info.scope)',
      call: async (_context, address) => {
        const version = isIP(address);
        return version === 0 ? undefined : { ip: address, version, scope: scopeOf(address, version) };
      },
    }),
  ],
};

/** Host object `websocket`: another name for `message`. */
export const WEBSOCKET_HOST_OBJECT: HostObject = {
  name: "websocket",
  summary: "Frames to those who listen at /websocket/<subject>, as message.send",
  kinds: KINDS,
  functions: [
    hostFunction({
      name: "send",
      summary: "Sends a frame to all who listen to the subject",
      parameters: [
        { name: "source", schema: Type.String() },
        { name: "subject", schema: Type.String() },
        { name: "title", schema: Type.String() },
        { name: "msg", schema: Type.Unknown() },
      ],
      returns: "nothing",
      example: 'websocket.send("rules", "news", "a record", OBJECT)',
      call: ({ call }, ...args) => call("message.send", args as Value[]),
    }),
  ],
};

/** Functions that the frame defines for the body. They make no host calls. */
export const RULE_LOCAL_OBJECT: HostObject = {
  name: "",
  summary: "What the body of a rule makes of its record",
  kinds: KINDS,
  isLocal: true,
  functions: [
    local("setvar", ["name", "value"], "Gives a column of the row its value", 'setvar("note", "seen")'),
    local(
      "getvar",
      ["name"],
      "What was set, a field of the record, or _raw, _host, _source, _time",
      'setvar("note", getvar("_raw"))',
    ),
    local(
      "setClass",
      ["class"],
      "Sends the row to a class; a value that is set after it begins another row, where something was set before",
      'setClass("/matrix/other")\nsetvar("name", "b")',
    ),
    local(
      "getattr",
      ["name"],
      "host, source, time or a named group of the file's path",
      'setvar("note", getattr("source"))',
    ),
    local("hostname", [], "The host that the record comes from", 'setvar("note", hostname())'),
    local(
      "gettimekey",
      ["unit"],
      "The record's time as digits, in UTC, down to year, month, day, hour, minute or second",
      'setvar("note", gettimekey("hour"))',
    ),
    local(
      "forward",
      ["rule", "data"],
      "Passes the record, or the data, on to a rule whose key stands in the text, and stores nothing by this one",
      'forward("/matrix/rules/next")',
    ),
    local(
      "cforward",
      ["rule", "data"],
      "Passes on a copy of the record, or the data; this rule goes on",
      'cforward("/matrix/rules/next", "x,1")',
    ),
    local(
      "dforward",
      ["rule", "value"],
      "Passes on the fields, or the value, as JSON",
      'dforward("/matrix/rules/json", { name = "d" })',
    ),
    local(
      "retry",
      ["reason"],
      "Stores nothing now, and runs the rule for this record again after --retry_interval, --retry_total times at most",
      '--cache_classes=/matrix/keyed\n--retry_interval=30s\nlocal rows = classcache("/matrix/keyed", { name = OBJECT.name })\nif #rows == 0 then retry("not there yet") end',
    ),
  ],
};

function local(name: string, parameters: readonly string[], summary: string, example: string) {
  return hostFunction({
    name,
    summary,
    parameters: parameters.map((parameter) => ({ name: parameter, schema: Type.Unknown() })),
    returns: /^set|forward$|^retry$/.test(name) ? "nothing" : "the value",
    example,
    call: () => Promise.reject(new AppError("unsupported", `${name} is answered by the text itself.`)),
  });
}

function runOf({ about }: HostContext, key: string): { readonly memory: RuleMemory; readonly name: string } {
  const { rule, memory } = about as RuleRun;
  return { memory, name: `${rule.key}\n${key}` };
}

const SCOPES: readonly (readonly [scope: string, list: BlockList])[] = (
  [
    ["loopback", ["127.0.0.0/8", "::1/128"]],
    ["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"]],
    ["linklocal", ["169.254.0.0/16", "fe80::/10"]],
    ["multicast", ["224.0.0.0/4", "ff00::/8"]],
  ] as const
).map(([scope, networks]) => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return [scope, list];
});

function scopeOf(address: string, version: number): string {
  const family = version === 6 ? "ipv6" : "ipv4";
  return SCOPES.find(([, list]) => list.check(address, family))?.[0] ?? "global";
}

/** Parsed rows of the tables that are pinned with a rule, by table name and key. */
const tables = new WeakMap<Rule["supplements"], Map<string, ReadonlyMap<string, Value>>>();

function rowOf({ principal, about }: HostContext, name: string, key: string): Value | undefined {
  const { rule } = about as RuleRun;
  const pinned = rule.supplements.tables ?? {};
  const table = Object.hasOwn(pinned, name) ? pinned[name] : undefined;
  requirePermission(principal, typeof table === "string" ? "rules:read" : "tables:read");
  if (table === undefined)
    throw new AppError("not_found", `There is no table ${name}, or its name does not stand in the text.`);
  const known = tables.get(rule.supplements) ?? new Map<string, ReadonlyMap<string, Value>>();
  tables.set(rule.supplements, known);
  const rows = known.get(name) ?? rowsByKey(table);
  known.set(name, rows);
  return rows.get(key);
}

function rowsByKey(table: PinnedTable): ReadonlyMap<string, Value> {
  if (typeof table === "string")
    return new Map(Array.from(readExtension(table), ([key, row]) => [key, Object.fromEntries(row)]));
  const rows = table.flatMap((row) => {
    const key = keyOf(row);
    return key === undefined ? [] : [[key, row] as const];
  });
  return new Map<string, Value>(rows);
}
