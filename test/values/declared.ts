import type { Condition, Insert, Statement, ValueNode } from "../../common/mql/index.ts";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";

/**
 * Places in which the program takes or returns values, with their tests: names of ways, or the reason why none is
 * needed. Add every new endpoint, host function, parser, format or form of MQL here.
 */
export type Coverage = { readonly tried: readonly string[] } | { readonly untried: string };

export const tried = (...names: readonly string[]): Coverage => ({ tried: names });
export const untried = (why: string): Coverage => ({ untried: why });

const FILES = untried("keeps the bytes of files");
const SETTINGS = untried("takes names and texts, and no value of a column");
const DEFINITION = untried("defines a class; values come by other ways");

/** Endpoints that take a body without members, files, or members of any type. */
export const ENDPOINTS_IN: Readonly<Record<string, Coverage>> = {
  "POST /mxobject/mql": tried("MQL `INSERT … VALUES`", "MQL in a form", "MQL `values`"),
  "POST /mxobject/search": untried("asks; see the ways out"),
  "POST /mxobject/import": tried("import of a script", "import of CSV", "import of a workbook"),
  "POST /mxobject/importclass": tried("import of a class workbook"),
  "POST /mxobject/actiontoclass": tried("`/mxobject/actiontoclass`"),
  "POST /mxobject/schema/class": DEFINITION,
  "POST /agent": tried("rule, JSON", "rule, CSV", "rule, text", "`/agent` to a channel"),
  "POST /script/exec/js": tried("script, MQL text", "script `input` and `OUTPUT`"),
  "POST /host": tried("`/host` `config`"),
  "POST /extend/:name": tried("`/extend/:name`"),
  "PUT /extend/:name": tried("`/extend/:name`"),
  "POST /appcontext/:key": tried("`/appcontext/:key`"),
  "POST /appcontext/collection/:name": tried("`/appcontext/collection`"),
  "POST /appcontext/collection/:name/:id": tried("`/appcontext/collection`"),
  "PUT /appcontext/collection/:name/:id": tried("`/appcontext/collection`"),
  "POST /config/import": tried("`/config/import`"),
  "POST /monitoring/policy/extend/*": untried("keeps a text of lines as it is"),
  "PUT /monitoring/policy/deploy/conf/:name": untried("its bytes are on hosts only; its own test compares them"),
  "POST /monitoring/depot": FILES,
  "PUT /monitoring/depot": FILES,
  "PUT /monitoring/depot/file": FILES,
  "PUT /monitoring/depot/file/:name": FILES,
  "POST /monitoring/deploy": SETTINGS,
  "POST /monitoring/undeploy": SETTINGS,
  "POST /monitoring/extagent/deploy": SETTINGS,
  "POST /monitoring/extagent/undeploy": SETTINGS,
  "POST /monitoring/extagent/start": SETTINGS,
  "POST /monitoring/extagent/stop": SETTINGS,
  "POST /monitoring/extagent/restart": SETTINGS,
  "POST /monitoring/zabbix/deploy": SETTINGS,
  "POST /monitoring/zabbix/undeploy": SETTINGS,
  "POST /monitoring/zabbix/start": SETTINGS,
  "POST /monitoring/zabbix/stop": SETTINGS,
  "POST /monitoring/zabbix/restart": SETTINGS,
  "POST /fs": FILES,
  "POST /fs/*": FILES,
  "PUT /fs/*": tried("`/fs`"),
  "POST /fs/export": FILES,
  "POST /fs/import": FILES,
  "POST /license/import": FILES,
  "POST /admin/perms/api": SETTINGS,
  "PUT /admin/perms/api/:name": SETTINGS,
  "PUT /admin/perms/api/:name/group": SETTINGS,
  "POST /admin/users": SETTINGS,
  "POST /user/vali_password": SETTINGS,
};

const TREE = untried("answers definitions, names and texts");

/** Endpoints that answer with members of any type. */
export const ENDPOINTS_OUT: Readonly<Record<string, Coverage>> = {
  "GET /mxobject/mql": tried("MQL"),
  "GET /mxobject/search": tried("search"),
  "GET /script/exec/js": tried("script `odb.mql`", "script `input` and `OUTPUT`"),
  "GET /extend/:name": tried("`/extend/:name`"),
  "GET /config/get": tried("`/config/set`"),
  "GET /mxobject/schema/class": TREE,
  "GET /mxobject/schema/class/list": TREE,
  "GET /mxobject/schema/class/tree": TREE,
  "GET /mxobject/schema/class/fields": TREE,
  "GET /tagdir/:domain": TREE,
  "GET /admin/users": TREE,
  "GET /job/*": tried("`/job` `description`"),
  "GET /job/exec/*": tried("job `param`"),
};

const LOG = untried("makes texts of entries of a log");
const LOCAL = untried("works within the script");
const DEFINES = untried("takes a definition, which its schema checks");
const OUTSIDE = untried("sends JSON to another program");
const REFUSED = untried("is refused, or has no effect");

/** Functions of scripts with a parameter that is not a text, a number or a boolean. A star stands for any name. */
export const HOST_FUNCTIONS: Readonly<Record<string, Coverage>> = {
  "odb.mql": tried("script, `odb.mql` with values"),
  "odb.*": untried("takes names of classes, or the keys of an object whose id it answers"),
  "appcontext.create": tried("script `appcontext.create`"),
  "appcontext.update": tried("script `appcontext.create`"),
  setvar: tried("rule body, Lua"),
  "record.*": untried("keeps JSON of the script for the next record, in memory, or takes a key"),
  "graphalg.*": untried("takes ids"),
  "message.send": untried("takes a text"),
  "nats.send": untried("takes a text"),
  "websocket.send": untried("takes a text"),
  "log.*": LOG,
  "consolelog.*": LOG,
  "json.*": LOCAL,
  "csv.*": LOCAL,
  "strings.*": LOCAL,
  "concurrent.*": LOCAL,
  getattr: LOCAL,
  gettimekey: LOCAL,
  getvar: LOCAL,
  setClass: LOCAL,
  retry: LOCAL,
  "http.*": OUTSIDE,
  "forward.*": OUTSIDE,
  forward: OUTSIDE,
  cforward: OUTSIDE,
  dforward: OUTSIDE,
  "depot.*": DEFINES,
  "job.*": DEFINES,
  "policy.*": DEFINES,
  "rule.*": DEFINES,
  "perm.*": DEFINES,
  "tagdir.*": DEFINES,
  "webcontext.*": DEFINES,
  "zabbix.*": REFUSED,
  "nlp.*": REFUSED,
  "aialg.*": REFUSED,
};

/** Parsers of rules, as the error for an unknown one lists them. */
export const PARSERS: Readonly<Record<string, Coverage>> = {
  text: tried("rule, text"),
  json: tried("rule, JSON", "rule, JSON in a list"),
  csv: tried("rule, CSV"),
  grok: tried("rule, grok", "rule, grok with field types"),
  bitlog: untried("keeps lines as texts"),
};

/** Formats of exports, as the error for an unknown one lists them. */
export const FORMATS: Readonly<Record<string, Coverage>> = {
  mql: tried("export as MQL"),
  xlsx: tried("export as workbook"),
};

const NO_VALUES = untried("has no values");

/** Forms of MQL: the compiler requires each one of the grammar. */
export const GRAMMAR = {
  statements: {
    insert: tried("MQL `INSERT … VALUES`", "MQL `INSERT … SET`"),
    insertJson: tried("MQL `INSERT JSON`", "MQL `INSERT JSON`, in a map"),
    update: tried("MQL `UPDATE … SET`"),
    batch: tried("MQL `BEGIN … END`"),
    select: tried("MQL", "MQL `GROUP BY`", "pages by `ORDER BY`"),
    union: untried("answers rows of SELECTs"),
    match: untried("answers rows as SELECT does"),
    delete: untried("has conditions as SELECT does"),
    explain: NO_VALUES,
    selectEdgeTypes: NO_VALUES,
    createClass: NO_VALUES,
    dropClass: NO_VALUES,
    alterClass: NO_VALUES,
    createEdgeType: NO_VALUES,
    dropEdgeType: NO_VALUES,
  } satisfies Record<Statement["kind"], Coverage>,
  inserts: {
    set: tried("MQL `INSERT … SET`"),
    values: tried("MQL `INSERT … VALUES`"),
  } satisfies Record<Insert["form"], Coverage>,
  values: {
    text: tried("MQL `INSERT … VALUES`"),
    number: tried("MQL `INSERT … VALUES`"),
    constant: tried("MQL `INSERT … VALUES`"),
    list: tried("MQL list element"),
    map: tried("MQL map member"),
    placeholder: tried("MQL `values`", "MQL `values`, in a list"),
  } satisfies Record<ValueNode["kind"], Coverage>,
  conditions: {
    compare: tried("condition `=`", "condition `= ?`", "condition on a map"),
    in: tried("condition `IN`"),
    inSelect: tried("MQL sub-select"),
    between: tried("condition `BETWEEN`"),
    isNull: tried("condition `IS NULL`"),
    contains: tried("condition on a list"),
    not: tried("condition on a neighbour"),
    and: tried("condition `=`"),
    or: untried("joins conditions as AND does"),
    relate: untried("compares two columns"),
    like: untried("asks for a part of a text"),
    textMatch: untried("asks for words"),
  } satisfies Record<Condition["kind"], Coverage>,
};

/** Returns true for endpoints that take values of any type. */
export function takesValues({ method, body, input }: Endpoint): boolean {
  const isChange = ["POST", "PUT", "PATCH"].includes(method);
  return isChange && (body === "text" || body === "raw" || body === "multipart" || holdsAny(input));
}

/** Returns true for endpoints that return values of any type. */
export function answersValues({ method, output }: Endpoint): boolean {
  return method === "GET" && holdsAny(output);
}

/** Returns true if the schema, or a part of it, accepts any value. */
function holdsAny(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  const parts = schema as Readonly<Record<string, unknown>>;
  if (Object.keys(parts).every((name) => name === "description")) return true;
  const within = ["properties", "patternProperties"].flatMap((name) => Object.values((parts[name] ?? {}) as object));
  return [
    ...within,
    parts["items"],
    parts["additionalProperties"],
    ...((parts["anyOf"] ?? []) as readonly unknown[]),
  ].some((part) => holdsAny(part));
}
