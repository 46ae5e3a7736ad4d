import { parseJson } from "../../common/json.ts";
import type { Row } from "../../common/value.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { type Caller, messageOf } from "./calls.ts";
import { sendLine } from "./ways-in.ts";
import { columnOf, type Shape, type TestedValue } from "./values.ts";

/** An object written by a way in, and the column with the value. */
export interface Written {
  readonly path: string;
  readonly key: string;
  readonly value: TestedValue;
  readonly shape: Shape;
  readonly column: string;
}

/** One way in which values get out of objects. */
export interface WayOut {
  readonly name: string;
  /** Returns the value as JSON. `undefined`: the way has no notation for it. */
  readonly read: (caller: Caller, written: Written) => Promise<string | undefined>;
}

export function written(path: string, key: string, value: TestedValue, shape: Shape): Written {
  return { path, key, value, shape, column: columnOf(value.type, shape) };
}

const SENTINEL = "nothing was found";

/** Returns the value if the condition finds exactly its object, otherwise a text that no value equals. */
function byCondition(name: string, condition: (written: Written) => string | undefined): WayOut {
  return {
    name,
    async read(caller, of) {
      const where = condition(of);
      if (where === undefined) return undefined;
      const rows = await caller.rows(`select k from ${of.path} where k = '${of.key}' and ${where}`);
      const others = await caller.rows(`select k from ${of.path} where k = '${of.key}' and not (${where})`);
      return rows.length === 1 && others.length === 0 ? heldBy(of) : SENTINEL;
    },
  };
}

/** The expected answer of a way that changes nothing. */
export function heldBy({ value, shape }: Pick<Written, "value" | "shape">): string {
  const { held = "null" } = value;
  if (shape === "plain") return held;
  if (shape === "list") return `[${held}]`;
  return `{"a":${held}}`;
}

const cell = (row: Readonly<Record<string, unknown>> | undefined): string =>
  row === undefined ? SENTINEL : JSON.stringify(row["c"] ?? null);

const plain = ({ shape, value }: Written): boolean => shape === "plain" && value.held !== "null";

/** The object after an export of the class and an import below another path. */
function byExport(name: string, filetype: string, url: string): WayOut {
  return {
    name,
    async read(caller, of) {
      const root = `/matrix/again/${filetype}`;
      const copy = of.path.replace("/matrix", root);
      // One export contains all objects. A new one is made when an object is missing in the last import.
      const find = async (): Promise<string> => {
        const reply = await caller.mql(`select ${of.column} as c from ${copy} where k = '${of.key}'`);
        return reply.isOk ? cell((reply.message as readonly Row[])[0]) : SENTINEL;
      };
      const before = await find();
      if (before !== SENTINEL) return before;
      const exported = await caller.call("GET", `/mxobject/export?class=${of.path}&filetype=${filetype}`);
      messageOf(exported);
      messageOf(await caller.upload(`${url}?root=${root}`, `export.${filetype}`, exported.bytes));
      return find();
    },
  };
}

const PAGES_MAX = 10_000;

const NOTIFIED = "/matrix/told";

async function told(caller: Caller, of: Written): Promise<string | undefined> {
  if (of.shape !== "plain" || of.value.held === undefined) return undefined;
  await caller.rows(`create class if not exists ${NOTIFIED}/${of.value.type} (k varchar, c ${of.value.type}, keys(k))`);
  const path = `${NOTIFIED}/${of.value.type}`;
  const payload = { class: path, name: "tell", script: "DATACHANGE = true", attr: { before: "true" } };
  messageOf(await caller.call("PUT", "/mxobject/trigger", { payload }));
  let heard: string | undefined;
  const end = caller.world.assembly.notifications.subscribe(testPrincipal(), { subject: "datachange" }, ({ msg }) => {
    heard = msg;
  });
  await caller.rows(`insert into ${path} (k, c) values ('${of.key}', ${of.value.mql})`);
  end();
  const { fields } = parseJson(heard ?? "{}") as { readonly fields?: Row };
  return cell(fields);
}

const WALKS = new WeakMap<Caller, Map<string, readonly Row[]>>();

/** All objects in the order of the column, in pages. Reuses an earlier result if it contains this object. */
async function walk(caller: Caller, { path, column, key }: Written): Promise<readonly Row[]> {
  const walks = WALKS.get(caller) ?? new Map<string, readonly Row[]>();
  WALKS.set(caller, walks);
  const known = walks.get(`${path} ${column}`);
  if (known?.some(({ k }) => k === key)) return known;
  const anew = await walked(caller, path, column);
  walks.set(`${path} ${column}`, anew);
  return anew;
}

async function walked(caller: Caller, path: string, column: string): Promise<readonly Row[]> {
  const found: Row[] = [];
  let cursor: string | undefined = "";
  for (let page = 0; page < PAGES_MAX && cursor !== undefined; page += 1) {
    const text = `select k, ${column} as c from ${path} order by ${column} limit 7 cursor '${cursor}'`;
    const reply = await caller.text("/mxobject/mql?meta=true", text);
    found.push(...(messageOf(reply) as readonly Row[]));
    cursor = reply.meta.cursor;
  }
  return found;
}

export const WAYS_OUT: readonly WayOut[] = [
  {
    name: "MQL",
    async read(caller, of) {
      return cell((await caller.rows(`select ${of.column} as c from ${of.path} where k = '${of.key}'`))[0]);
    },
  },
  {
    name: "MQL `GROUP BY`",
    async read(caller, of) {
      if (of.shape !== "plain") return undefined;
      const text = `select ${of.column} as c, count(*) as n from ${of.path} where k = '${of.key}' group by ${of.column}`;
      return cell((await caller.rows(text))[0]);
    },
  },
  {
    name: "MQL sub-select",
    async read(caller, of) {
      if (!plain(of)) return undefined;
      const text = `select ${of.column} as c from ${of.path} where k = '${of.key}' and ${of.column} in (select ${of.column} from ${of.path} where k = '${of.key}')`;
      return cell((await caller.rows(text))[0]);
    },
  },
  byCondition("condition `=`", (of) => (plain(of) ? `${of.column} = ${of.value.mql}` : undefined)),
  byCondition("condition `IN`", (of) => (plain(of) ? `${of.column} in (${of.value.mql})` : undefined)),
  byCondition("condition `BETWEEN`", (of) =>
    plain(of) ? `${of.column} between ${of.value.mql} and ${of.value.mql}` : undefined,
  ),
  byCondition("condition on a neighbour", (of) =>
    of.shape === "plain" && of.value.near !== undefined ? `not ${of.column} = ${of.value.near}` : undefined,
  ),
  byCondition("condition `IS NULL`", (of) =>
    of.shape === "plain" ? `${of.column} is ${of.value.held === "null" ? "" : "not "}null` : undefined,
  ),
  byCondition("condition on a list", (of) =>
    of.shape === "list" && of.value.held !== "null" ? `${of.column} contains ${of.value.mql}` : undefined,
  ),
  byCondition("condition on a map", (of) =>
    of.shape === "map" && of.value.held !== "null" ? `${of.column}.a = ${of.value.mql}` : undefined,
  ),
  {
    name: "condition `= ?`",
    async read(caller, of) {
      if (!plain(of)) return undefined;
      const mql = `select ${of.column} as c from ${of.path} where k = ? and ${of.column} = ?`;
      const payload = `{"mql":${JSON.stringify(mql)},"values":["${of.key}",${of.value.json}]}`;
      return cell((messageOf(await caller.json("POST", "/mxobject/mql", payload)) as readonly Row[])[0]);
    },
  },
  {
    name: "pages by `ORDER BY`",
    async read(caller, of) {
      if (of.shape !== "plain") return undefined;
      const pages = await walk(caller, of);
      const seen = pages.filter(({ k }) => k === of.key).map(cell);
      return seen.length === 1 ? seen[0] : `${seen.length} times`;
    },
  },
  {
    name: "search",
    async read(caller, of) {
      const reply = await caller.text("/mxobject/search", `#${of.path}: | k=${of.key} | print ${of.column} as c`);
      return cell((messageOf(reply) as readonly Row[])[0]);
    },
  },
  {
    name: "script `odb.mql`",
    async read(caller, of) {
      const text = `select ${of.column} as c from ${of.path} where k = '${of.key}'`;
      return cell(messageOf(await caller.script(`OUTPUT = odb.mql(${JSON.stringify(text)}).data[0]`)) as Row);
    },
  },
  {
    name: "rule body `odb.mql`, Lua",
    async read(caller, of) {
      // A Lua table cannot hold null.
      if (of.shape !== "plain" && of.value.held === "null") return undefined;
      const text = `select ${of.column} as c from ${of.path} where k = ?`;
      const body = `setvar("k", OBJECT.to)\nsetvar("${of.column}", odb.mql("${text}", OBJECT.k).data[1].c)`;
      const rule = `--class=${of.path}\n--parser=json\n${body}`;
      messageOf(await sendLine(caller, rule, `{"k":"${of.key}","to":"${of.key}lua"}`));
      return cell((await caller.rows(`select ${of.column} as c from ${of.path} where k = '${of.key}lua'`))[0]);
    },
  },
  {
    name: "object key",
    async read(caller, of) {
      if (!plain(of) || of.value.held === '""') return undefined;
      const path = `/matrix/keyed/${of.value.type}`;
      await caller.rows(`create class if not exists ${path} (c ${of.value.type}, n int, keys(c))`);
      const of_ = `insert into ${path} (c, n) values (${of.value.mql}, `;
      await caller.rows(`delete from ${path}`);
      await caller.rows(`${of_}1)`);
      await caller.rows(`${of_}2)`);
      const [row] = await caller.rows(`select id, c, n from ${path}`);
      const payload = JSON.stringify({ mql: `select c, n from ${path} where id = ?`, values: [row?.["id"]] });
      const found = messageOf(await caller.json("POST", "/mxobject/mql", payload)) as readonly Row[];
      return found.length === 1 && found[0]?.["n"] === 2 ? cell(found[0]) : SENTINEL;
    },
  },
  { name: "notification", read: told },
  byExport("export as MQL", "mql", "/mxobject/import"),
  byExport("export as workbook", "xlsx", "/mxobject/importclass"),
];
