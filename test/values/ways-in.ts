import { crc32 } from "node:zlib";
import { cells, workbook } from "../helpers/objects/own-sheets.ts";
import { type Caller, messageOf, type Reply } from "./calls.ts";
import { CLASS, classText, columnOf, LONE_SURROGATE, type Shape, type TestedValue } from "./values.ts";

/** Classes with the columns of `CLASS`; a trigger in that language reads each object and returns it. */
const TRIGGERED = { lua: "/matrix/triggered/lua", javascript: "/matrix/triggered/javascript" } as const;

/** Creates the classes, and the triggers if scripts run. */
export async function prepare(caller: Caller): Promise<void> {
  await caller.rows(classText(CLASS));
  if (!caller.runsScripts) return;
  for (const [language, path] of Object.entries(TRIGGERED)) {
    await caller.rows(classText(path));
    const attr = { before: "true", language };
    const payload = { class: path, name: "same", script: "OBJECT.k = OBJECT.k", attr };
    messageOf(await caller.call("PUT", "/mxobject/trigger", { payload }));
  }
}

/** One way in which a value gets into an object. */
export interface WayIn {
  readonly name: string;
  readonly shape?: Shape;
  /** Values that the way changes, by name: the mark, and the JSON of the stored value; `undefined`: no object. */
  readonly marks?: Readonly<Record<string, readonly [mark: string, instead: string | undefined]>>;
  /** Class that it writes to; `CLASS` if absent. */
  readonly path?: string;
  /** Writes an object with this key. `undefined`: the way has no notation for the value. */
  readonly write: (caller: Caller, value: TestedValue, key: string) => Promise<Reply> | undefined;
}

/** Sends a line to a rule of `/agent`; failed lines are errors of the call. */
export async function sendLine(caller: Caller, rule: string, line: string): Promise<Reply> {
  const key = `/matrix/rules/exact/r${crc32(rule)}`;
  const stored = await caller.call("PUT", "/mxobject/rule", form({ key, value: rule }));
  if (!stored.isOk) return stored;
  const sent = await caller.text(`/agent?rule=${encodeURIComponent(key)}`, line);
  const { failed = 0, failures } = (sent.message ?? {}) as { readonly failed?: number; readonly failures?: unknown };
  return failed === 0 ? sent : { ...sent, isOk: false, error: JSON.stringify(failures ?? sent.message) };
}

function form(members: Readonly<Record<string, string>>) {
  return {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    payload: new URLSearchParams(members).toString(),
  };
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const object = (value: TestedValue, key: string, shape: Shape = "plain"): string =>
  `{"class":"${CLASS}","k":"${key}","${columnOf(value.type, shape)}":${shaped(value.json, shape)}}`;

function shaped(text: string, shape: Shape): string {
  if (shape === "plain") return text;
  return shape === "list" ? `[${text}]` : `{"a":${text}}`;
}

const insert = (value: TestedValue, key: string, shape: Shape = "plain"): string =>
  `insert into ${CLASS} (k, ${columnOf(value.type, shape)}) values ('${key}', ${shaped(value.mql, shape)})`;

/** Uses the value's line of text; `undefined` without one. */
function ofText(
  make: (text: string, value: TestedValue, key: string) => readonly [rule: string, line: string],
): WayIn["write"] {
  return (caller, value, key) =>
    value.text === undefined ? undefined : sendLine(caller, ...make(value.text, value, key));
}

/** Bytes of the lone surrogate as UTF-8, which is invalid. */
const BYTES_OF_SURROGATE = Buffer.from([0x61, 0xed, 0xa0, 0x80, 0x62]);

const TYPE_OF_FIELD = { bigint: "INT", double: "FLOAT", timestamp: "VAR", date: "VAR", varchar: "VAR" } as const;
const TYPE_OF_CAPTURE = { bigint: ":int", double: ":float", timestamp: "", date: "", varchar: "" } as const;

/** Content of a workbook's cell. XML has no other notation for the characters that `_x…_` stands for. */
function cellOf({ name, text, json }: TestedValue, empty = ""): readonly string[] {
  const content = name === LONE_SURROGATE ? (JSON.parse(json) as string) : text;
  if (content === undefined) return [];
  const safe = (content || empty).replace(
    /[\u0000-\u001f\ud800]/g,
    (sign) => `_x${sign.charCodeAt(0).toString(16).padStart(4, "0")}_`,
  );
  return [`<c t="str"><v>${safe}</v></c>`];
}

/** A map cannot contain null. */
const NO_NULL = { null: ["not kept", "{}"] } as const;

/** Ways by statements, by their names in the grammar. */
const STATEMENTS: readonly WayIn[] = [
  { name: "MQL `INSERT … VALUES`", write: (caller, value, key) => caller.mql(insert(value, key)) },
  {
    name: "MQL in a form",
    write: (caller, value, key) => caller.call("POST", "/mxobject/mql", form({ mql: insert(value, key) })),
  },
  {
    name: "MQL `INSERT … SET`",
    write: (caller, value, key) =>
      caller.mql(`insert into ${CLASS} set k = '${key}', ${columnOf(value.type)} = ${value.mql}`),
  },
  {
    name: "MQL `INSERT JSON`",
    write: (caller, value, key) => caller.mql(`insert json ${quoted(object(value, key))}`),
  },
  {
    name: "MQL `UPDATE … SET`",
    async write(caller, value, key) {
      await caller.rows(`insert into ${CLASS} (k) values ('${key}')`);
      return caller.mql(`update ${CLASS} set ${columnOf(value.type)} = ${value.mql} where k = '${key}'`);
    },
  },
  { name: "MQL list element", shape: "list", write: (caller, value, key) => caller.mql(insert(value, key, "list")) },
  {
    name: "MQL map member",
    shape: "map",
    marks: NO_NULL,
    write: (caller, value, key) => caller.mql(insert(value, key, "map")),
  },
  {
    name: "MQL `BEGIN … END`",
    write: (caller, value, key) => caller.mql(`begin ${insert(value, key)}; end`),
  },
  {
    name: "MQL `values`",
    write: (caller, value, key) =>
      caller.json(
        "POST",
        "/mxobject/mql",
        `{"mql":"insert into ${CLASS} (k, ${columnOf(value.type)}) values (?, ?)","values":["${key}",${value.json}]}`,
      ),
  },
  {
    name: "MQL `values`, in a list",
    shape: "list",
    write: (caller, value, key) =>
      caller.json(
        "POST",
        "/mxobject/mql",
        `{"mql":"insert into ${CLASS} (k, ${columnOf(value.type, "list")}) values (?, ?)","values":["${key}",[${value.json}]]}`,
      ),
  },
  {
    name: "MQL `INSERT JSON`, in a map",
    shape: "map",
    marks: NO_NULL,
    write: (caller, value, key) => caller.mql(`insert json ${quoted(object(value, key, "map"))}`),
  },
];

/** The object is stored, and its column is not set. */
const NOT_KEPT = ["not kept", "null"] as const;

const RULES: readonly WayIn[] = [
  {
    name: "rule, JSON",
    write: (caller, value, key) => sendLine(caller, `--class=${CLASS}\n--parser=json`, object(value, key)),
  },
  {
    name: "rule, JSON in a list",
    shape: "list",
    write: (caller, value, key) => sendLine(caller, `--class=${CLASS}\n--parser=json`, object(value, key, "list")),
  },
  {
    name: "rule, CSV",
    write: ofText((text, { type }, key) => [
      `--class=${CLASS}\n--parser=csv\n--fields=k,${columnOf(type)}\n--fields_type=VAR,${TYPE_OF_FIELD[type]}`,
      `${key},${text}`,
    ]),
  },
  {
    name: "rule, grok",
    marks: { empty: NOT_KEPT, "2^53+1.5": ["whole part", '"9007199254740993"'] },
    write: ofText((text, { type }, key) => [
      `--class=${CLASS}\n--parser=grok\n--pattern_1=^%{NOTSPACE:k} %{GREEDYDATA:${columnOf(type)}${TYPE_OF_CAPTURE[type]}}$`,
      `${key} ${text}`,
    ]),
  },
  {
    name: "rule, grok with field types",
    marks: { empty: NOT_KEPT },
    write: ofText((text, { type }, key) => [
      `--class=${CLASS}\n--parser=grok\n--fields=k,${columnOf(type)}\n--fields_type=VAR,${TYPE_OF_FIELD[type]}\n--pattern_1=^%{NOTSPACE:k} %{GREEDYDATA:${columnOf(type)}}$`,
      `${key} ${text}`,
    ]),
  },
  {
    name: "rule, text",
    marks: { empty: ["not kept", undefined] },
    write: ofText((text, { type }, key) => [
      `--class=${CLASS}\n--parser=text\n--fields=${columnOf(type)}\n--var_k='${key}'`,
      text,
    ]),
  },
  {
    name: "rule, `--mqltmpl`",
    write: (caller, value, key) =>
      sendLine(
        caller,
        `--class=${CLASS}\n--parser=text\n--fields=x\n--mqltmpl=insert into ${CLASS} (k, ${columnOf(value.type)}) values (?, ${value.mql})\n--mqltmpl_fields=x`,
        key,
      ),
  },
  {
    name: "rule body, Lua",
    write: (caller, value, key) =>
      sendLine(
        caller,
        `--class=${CLASS}\n--parser=json\nsetvar("${columnOf(value.type)}", OBJECT.${columnOf(value.type)})`,
        object(value, key),
      ),
  },
  {
    name: "rule body, JavaScript",
    write: (caller, value, key) =>
      sendLine(
        caller,
        `--class=${CLASS}\n--parser=json\n--language=javascript\nsetvar("${columnOf(value.type)}", OBJECT.${columnOf(value.type)})`,
        object(value, key),
      ),
  },
];

function triggered(name: string, path: string): WayIn {
  return { name, path, write: (caller, value, key) => caller.mql(insert(value, key).replace(CLASS, path)) };
}

const SCRIPTS: readonly WayIn[] = [
  {
    name: "script, `odb.mql` with values",
    write: (caller, value, key) =>
      caller.script(
        `OUTPUT = odb.mql("insert into ${CLASS} (k, ${columnOf(value.type)}) values (?, ?)", "${key}", ${value.script}).data`,
      ),
  },
  {
    name: "script, MQL text",
    write: (caller, value, key) => caller.script(`OUTPUT = odb.mql(${JSON.stringify(insert(value, key))}).data`),
  },
  triggered("trigger, Lua", TRIGGERED.lua),
  triggered("trigger, JavaScript", TRIGGERED.javascript),
];

async function importNumber(caller: Caller, { type, text }: TestedValue, key: string): Promise<Reply> {
  const content = `<c><v>${text}</v></c>`;
  const sheet = await workbook({ Sheet1: cells(1, "k", columnOf(type)) + cells(2, key, content) });
  return caller.upload(`/mxobject/import?class=${CLASS}`, "a.xlsx", sheet);
}

const FILES: readonly WayIn[] = [
  {
    name: "import of a script",
    write: (caller, value, key) => caller.upload("/mxobject/import", "a.mql", `${insert(value, key)};\n`),
  },
  {
    name: "import of CSV",
    write(caller, value, key) {
      const head = Buffer.from(`k,${columnOf(value.type)}\n${key},`);
      const content =
        value.name === LONE_SURROGATE ? BYTES_OF_SURROGATE : Buffer.from(value.text || (value.text === "" ? '""' : ""));
      const bytes = Buffer.concat([head, content, Buffer.from("\n")]);
      return caller.upload(`/mxobject/import?class=${CLASS}`, "a.csv", bytes);
    },
  },
  {
    name: "import of a workbook",
    async write(caller, value, key) {
      const sheet = await workbook({ Sheet1: cells(1, "k", columnOf(value.type)) + cells(2, key, ...cellOf(value)) });
      return caller.upload(`/mxobject/import?class=${CLASS}`, "a.xlsx", sheet);
    },
  },
  {
    name: "import of a workbook, cells of numbers",
    write(caller, value, key) {
      return value.type === "bigint" || value.type === "double" ? importNumber(caller, value, key) : undefined;
    },
  },
  {
    name: "import of a class workbook",
    async write(caller, value, key) {
      const head = [
        cells(1, "class", CLASS),
        cells(2, "keys", "k"),
        cells(3, "name", "k", columnOf(value.type)),
        cells(4, "title", "", ""),
        cells(5, "type", "varchar", value.type),
      ];
      const sheet = await workbook({ Sheet1: head.join("") + cells(6, `exact:${key}`, key, ...cellOf(value, '""')) });
      return caller.upload("/mxobject/importclass", "a.xlsx", sheet);
    },
  },
];

export const WAYS_IN: readonly WayIn[] = [
  ...STATEMENTS,
  {
    name: "`/mxobject/actiontoclass`",
    write: (caller, value, key) =>
      caller.json("POST", "/mxobject/actiontoclass", `{"ctype":"insert","data":[${object(value, key)}]}`),
  },
  ...RULES,
  ...SCRIPTS,
  ...FILES,
];
