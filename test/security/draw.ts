import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";

/** Selects an entry of a list by a seed. */
export type Draw = <T>(list: readonly T[]) => T;

/** A call of an endpoint, before it becomes a request. */
export interface DrawnCall {
  readonly endpoint: Endpoint;
  /** Values for the path parameters, by name. */
  readonly path: Readonly<Record<string, string>>;
  readonly input: Readonly<Record<string, unknown>>;
  /** A body that has no members, such as a script. */
  readonly text?: string;
  /** Parts of a multipart body in addition to the members. */
  readonly files?: readonly DrawnFile[];
}

export interface DrawnFile {
  readonly field: string;
  readonly filename: string;
  readonly content: string;
}

const NAMES = ["vault", "closed", "open", "admin", "second", "matrix", "common", "rule", "1", "vault@d", "plan.txt"];
const PATHS = [
  "/",
  "/matrix",
  "/matrix/vault",
  "/matrix/shut",
  "/matrix/ldap",
  "/matrix/system/hostinfo",
  "/second",
  "/second/vault",
];
const IDS = ["vault:closed", "vault:open", "vault:theirs", "shut:a", "ldap:1", "1000000000000000000"];
/** Reading all data costs the most, so it is drawn rarely. */
const CLASSES = [
  ...Array.from({ length: 12 }, () => "/matrix/vault"),
  ...Array.from({ length: 4 }, () => "/matrix/shut"),
  "/matrix/",
  "/matrix/system/hostinfo",
  "/matrix/system/userinfo",
  "/second/vault",
  "/",
];
const COLUMNS = [
  "note",
  "secret",
  "code",
  "id",
  "*",
  "remark",
  "domain",
  "leads",
  "leads.note",
  "leads.secret",
  "max(secret)",
  "count(*)",
  "upper(secret)",
  "coalesce(secret, note) as told",
];
const CONDITIONS = [
  "code='closed'",
  "secret is not null",
  "secret >= 'a'",
  "note like '%'",
  "note match 'x*'",
  "id='vault:closed'",
  "code in ('closed', 'open')",
  "not code='open'",
  "leads.secret is not null",
  "leads = 'vault:closed'",
  "length(secret) > 2",
  "1=1",
];
const ORDERS = ["secret", "note", "id", "leads.note"];
const ENDS = ["", ":vault", "vault:closed", "vault:open", ":shut"];

/** Statements of every kind, about existing objects. */
const STATEMENTS: readonly ((draw: Draw) => string)[] = [
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)}`,
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)} where ${draw(CONDITIONS)}`,
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)} where ${draw(CONDITIONS)} or ${draw(CONDITIONS)}`,
  (draw) => `select ${draw(COLUMNS)}, code from ${draw(CLASSES)} order by ${draw(ORDERS)} desc limit 5`,
  (draw) => `select ${draw(ORDERS)}, count(*) from ${draw(CLASSES)} group by ${draw(ORDERS)}`,
  (draw) =>
    `select a.*, b.* from ${draw(CLASSES)} a ${draw(["", "left "])}join (b:${draw(CLASSES)}) on a.code=b.code where ${draw(["a.", "b."])}${draw(["code='closed'", "secret is not null", "note like '%'"])}`,
  (draw) =>
    `select a.code, b.note from ${draw(CLASSES)} a left join (b:${draw(CLASSES)}) on a.${draw(["code", "secret"])}=b.${draw(["code", "secret"])}`,
  (draw) =>
    `select code from ${draw(CLASSES)} where ${draw(["code", "note"])} ${draw(["in", "not in"])} (select ${draw(COLUMNS)} from ${draw(CLASSES)} where ${draw(CONDITIONS)})`,
  (draw) => `select * from (select ${draw(COLUMNS)}, code from ${draw(CLASSES)}) x where x.code='closed'`,
  (draw) =>
    `select code, ${draw(["lag(secret)", "lead(note)", "row_number()", "sum(length(secret))"])} over (partition by ${draw(["code", "secret"])} order by ${draw(ORDERS)}) as w from ${draw(CLASSES)}`,
  (draw) => `select * from ${draw(CLASSES)} union select * from ${draw(CLASSES)}`,
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)} as of '${draw(["2020-01-01", "2099-01-01"])}'`,
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)} order by id limit 1 cursor ''`,
  (draw) => `explain select ${draw(COLUMNS)} from ${draw(CLASSES)} where ${draw(CONDITIONS)}`,
  (draw) => `match (${draw(ENDS)})${draw(["-[]->", "-[:leads]->", "<-[]-", "-[*]->"])}(${draw(ENDS)})`,
  (draw) =>
    `match (:/matrix/vault${draw(["", " where secret > 'a'"])})-[]->() return ${draw(["note", "secret", "code"])}`,
  (draw) => `update /matrix/vault note=${draw(["'x'", "secret", "leads.note"])} where ${draw(CONDITIONS)}`,
  (draw) => `update /matrix/vault set leads='${draw(IDS)}' where ${draw(CONDITIONS)}`,
  (draw) => `update /matrix/vault code='${draw(["closed", "open"])}'`,
  (draw) => `insert into /matrix/vault code='${draw(["closed", "new"])}', note='x'`,
  (draw) => `insert json '{"class":"/matrix/vault","code":"${draw(["closed", "new"])}","note":"x"}'`,
  (draw) => `delete from ${draw(CLASSES)} where ${draw(["code='closed'", "code='nothing'"])}`,
  (draw) => `create class ${draw(["/matrix/vault", "/matrix", "/second"])}/own (code varchar, keys(code))`,
  (draw) => `alter class /matrix/vault ${draw(["drop column secret", "add column more varchar"])}`,
  () => `begin insert into /matrix/vault code='closed', note='x' end`,
];

const SEARCHES: readonly ((draw: Draw) => string)[] = [
  (draw) => `#${draw(CLASSES)}: ${draw(["", "closed", "a", "*", "x*"])}`,
  (draw) =>
    `#${draw(CLASSES)}: | ${draw(["top 5", "sort by secret", "uniq secret", "count() by secret", "print secret, note", "group secret"])}`,
  (draw) => `#${draw(CLASSES)}: | call ${draw(["tree", "graph"])}`,
  (draw) => draw(["closed", "*", "code:closed", "secret:*", "secret=x*"]),
];

/** Scripts that call the platform through the functions available to them. */
const SCRIPTS: readonly ((draw: Draw) => string)[] = [
  (draw) => `OUTPUT = odb.mql(${JSON.stringify(draw(STATEMENTS)(draw))})`,
  (draw) => `OUTPUT = odb.search(${JSON.stringify(draw(SEARCHES)(draw))})`,
  (draw) =>
    `try { odb.mql(${JSON.stringify(draw(STATEMENTS)(draw))}) } catch (error) { OUTPUT = String(error.message) }`,
  (draw) => `OUTPUT = JSON.stringify(odb.mql("select * from ${draw(CLASSES)} where code = ?", "closed"))`,
];

const FILE_NAMES = ["file", "depot", "image"];
const CONTENTS: readonly ((draw: Draw) => string)[] = [
  (draw) => `${draw(STATEMENTS)(draw)};\n${draw(STATEMENTS)(draw)};\n`,
  (draw) => `insert into /matrix/vault code='${draw(["closed", "open", "new"])}', note='x';`,
  () => '[{"key":"a","note":"x"}]',
  () => "code,note\nclosed,x\n",
];

/** Scripts need their own threads and machines, so only one call in this many is a script. */
const SCRIPT_TO_OTHERS = 400;

/** A password hash costs as much as hundreds of other calls, so such calls are drawn this much less often. */
const CHEAP_TO_DEAR = 50;

/** Draws calls of these endpoints. Half of them read data and have no other members: most of those succeed. */
export function drawerOf(endpoints: readonly Endpoint[]): (draw: Draw) => DrawnCall {
  const dear = endpoints.filter(isDear);
  const cheap = endpoints.filter((endpoint) => !isDear(endpoint));
  const tickets = Array.from({ length: CHEAP_TO_DEAR }, (_, at) => at);
  const named = (method: string, path: string): Endpoint => {
    const found = endpoints.find((one) => one.method === method && one.path === path);
    if (found === undefined) throw new Error(`There is no ${method} ${path}.`);
    return found;
  };
  const mql = ["GET", "POST"].map((method) => named(method, "/mxobject/mql"));
  const search = ["GET", "POST"].map((method) => named(method, "/mxobject/search"));
  const exported = named("GET", "/mxobject/export");
  const script = named("POST", "/script/exec/js");
  const scripts = Array.from({ length: SCRIPT_TO_OTHERS }, (_, at) => at);
  return (draw) => {
    if (draw(scripts) === 0) return { endpoint: script, path: {}, input: {}, text: draw(SCRIPTS)(draw) };
    if (draw([true, false])) return callOf(draw(draw(tickets) === 0 ? dear : cheap), draw);
    return draw([
      () => ({ endpoint: draw(mql), path: {}, input: { mql: draw(STATEMENTS)(draw) } }),
      () => ({ endpoint: draw(search), path: {}, input: { cond: draw(SEARCHES)(draw) } }),
      () => ({
        endpoint: exported,
        path: {},
        input: { class: draw(CLASSES), recursive: true, filetype: draw(["mql", "json"]) },
      }),
    ])();
  };
}

const PASSWORD_MEMBER = /passw/;

function isDear({ input }: Endpoint): boolean {
  return Object.keys((input as Schema).properties ?? {}).some((name) => PASSWORD_MEMBER.test(name));
}

/** A call of this endpoint with names and paths of data that may exist. */
export function callOf(endpoint: Endpoint, draw: Draw): DrawnCall {
  const names = [...endpoint.path.matchAll(/:(\w+)|(\*)/g)].map(([, name = "*"]) => name);
  const path = Object.fromEntries(names.map((name) => [name, draw([...NAMES, ...IDS])]));
  const files = endpoint.body === "multipart" && draw([true, false]) ? [fileOf(draw)] : [];
  return { endpoint, path, input: inputOf(endpoint, draw), ...(files.length > 0 && { files }) };
}

function fileOf(draw: Draw): DrawnFile {
  const filename = draw(["objects.mql", "plan.txt", "table.csv", "entries.json", "../plan.txt"]);
  return { field: draw(FILE_NAMES), filename, content: draw(CONTENTS)(draw) };
}

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
}

function inputOf({ input, path }: Endpoint, draw: Draw): Readonly<Record<string, unknown>> {
  const { properties = {}, required = [] } = input as Schema;
  const wanted = Object.entries(properties).filter(
    ([name]) => name !== "*" && !path.includes(`:${name}`) && (required.includes(name) || draw([true, false])),
  );
  return Object.fromEntries(wanted.map(([name, schema]) => [name, valueOf(name, schema, draw)]));
}

function valueOf(name: string, schema: Schema, draw: Draw): unknown {
  if (name === "mql") return draw(STATEMENTS)(draw);
  if (name === "cond") return draw(SEARCHES)(draw);
  if (PASSWORD_MEMBER.test(name)) return draw([PASSWORD, "another long password"]);
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf?.length) return valueOf(name, draw(schema.anyOf), draw);
  switch (schema.type) {
    case "integer":
    case "number":
      return draw([0, 1, 2, -1]);
    case "boolean":
      return draw([true, false]);
    case "array":
      return [valueOf(name, schema.items ?? {}, draw)];
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([member, of]) => [member, valueOf(member, of, draw)]),
      );
    default:
      return draw([...NAMES, ...PATHS, ...IDS, "/matrix/rules/vault", "notes/plan.txt", ...CONDITIONS]);
  }
}
