import { afterAll, beforeAll, expect, test } from "vitest";
import type { Endpoint } from "../../controller/http/endpoint.ts";
import { PASSWORD } from "../helpers/http-app.ts";
import { seededRandom } from "../helpers/clock.ts";
import { testPrincipal } from "../helpers/runtime.ts";
import { TIMES } from "../helpers/times.ts";
import { join, neighbourOf, type Call, type Credentials } from "./people.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Random calls of every endpoint, by users with few rights and by the administrator of another tenant. What they may not
 * see bears a mark that stands in no call: no answer may have it, however the call is put together.
 */

/** Calls in every run; `npm run soak` makes more. */
const CALLS = 6_000 * TIMES;
const AT_ONCE = 8;
/** No single call is waited for longer: it counts as one that told nothing. */
const CALL_MAX_MS = 10_000;
/** In any case of its letters, as functions of texts change that. */
const MARK = "xmarkx";

const NAMES = ["vault", "closed", "open", "admin", "second", "matrix", "common", "rule", "1", "vault@d", "plan.txt"];
const PATHS = ["/", "/matrix", "/matrix/vault", "/matrix/shut", "/matrix/ldap", "/matrix/system/hostinfo", "/second"];
const IDS = ["vault:closed", "vault:open", "shut:a", "ldap:1", "1000000000000000000"];
const CLASSES = ["/matrix/vault", "/matrix/shut", "/matrix/ldap", "/matrix", "/matrix/system/hostinfo", "/"];
const COLUMNS = ["note", "secret", "code", "id", "*", "remark", "domain", "max(secret)", "count(*)", "upper(secret)"];
const CONDITIONS = [
  "code='closed'",
  "secret is not null",
  "secret >= 'a'",
  "note like '%'",
  "id='vault:closed'",
  "code in ('closed', 'open')",
  "not code='open'",
  "1=1",
];

type Draw = <T>(list: readonly T[]) => T;

/** Statements of every kind, about what there is. */
const STATEMENTS: readonly ((draw: Draw) => string)[] = [
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)}`,
  (draw) => `select ${draw(COLUMNS)} from ${draw(CLASSES)} where ${draw(CONDITIONS)}`,
  (draw) =>
    `select ${draw(COLUMNS)}, code from ${draw(CLASSES)} order by ${draw(["secret", "note", "id"])} desc limit 5`,
  (draw) => `select ${draw(["secret", "note"])}, count(*) from ${draw(CLASSES)} group by ${draw(["secret", "note"])}`,
  (draw) =>
    `select a.*, b.* from ${draw(CLASSES)} a join ${draw(CLASSES)} b on a.code=b.code where a.${draw(CONDITIONS)}`,
  (draw) => `select * from ${draw(CLASSES)} union select * from ${draw(CLASSES)}`,
  (draw) => `select * from ${draw(CLASSES)} as of '2020-01-01'`,
  (draw) => `explain select * from ${draw(CLASSES)} where ${draw(CONDITIONS)}`,
  (draw) => `match (${draw(["", ":vault", "vault:closed", ":shut"])})-[]->(${draw(["", ":vault", ":shut"])})`,
  (draw) => `update /matrix/vault note='x' where ${draw(CONDITIONS)}`,
  (draw) => `update /matrix/vault code='${draw(["closed", "open"])}'`,
  (draw) => `insert into /matrix/vault code='${draw(["closed", "new"])}', note='x'`,
  (draw) => `delete from ${draw(CLASSES)} where ${draw(["code='closed'", "code='nothing'"])}`,
  (draw) => `create class ${draw(CLASSES)}/own (code varchar, keys(code))`,
  (draw) => `alter class /matrix/vault ${draw(["drop column secret", "add column more varchar"])}`,
  () => `begin insert into /matrix/vault code='closed', note='x' end`,
];

const SEARCHES: readonly ((draw: Draw) => string)[] = [
  (draw) => `#${draw(CLASSES)}: ${draw(["", "closed", "a", "*"])}`,
  (draw) =>
    `#${draw(CLASSES)}: | ${draw(["top 5", "sort by secret", "uniq secret", "count() by secret", "print secret, note"])}`,
  (draw) => `#${draw(CLASSES)}: | call ${draw(["tree", "graph"])}`,
  (draw) => draw(["closed", "*", "code:closed", "secret:*"]),
];

let world: World;
let callers: readonly (readonly [name: string, credentials: Credentials])[];

beforeAll(async () => {
  world = await openWorld();
  const rows = { readexps: ["/matrix/vault: code = 'open'"], fields: { "/matrix/vault": "-secret" } };
  const { groups } = world.assembly;
  await groups.create(testPrincipal(), { name: "few", readonly: ["/matrix/vault", "/matrix/ldap"], ...rows });
  await groups.create(testPrincipal(), { name: "some", writable: ["/matrix/vault"], ...rows });
  callers = [
    ["few", await join(world, "few", "/few")],
    ["some", await join(world, "some", "/some")],
    ["neighbour", await neighbourOf(world)],
  ];
  await fill();
});
afterAll(() => world[Symbol.asyncDispose]());

async function fill(): Promise<void> {
  const { assembly } = world;
  const admin = testPrincipal();
  await assembly.query.rows(
    admin,
    `create class /matrix/vault (code varchar, note varchar, secret varchar, keys(code)) with autosearch=true;
    create class /matrix/shut (code varchar, note varchar, keys(code)) with autosearch=true;
    create edge type leads;
    insert into /matrix/shut code='a', note='${MARK}shut';
    insert into /matrix/vault code='open', note='plain', secret='${MARK}column';
    insert into /matrix/vault code='closed', note='${MARK}row', secret='${MARK}both'`,
  );
  await assembly.users.update(admin, "admin", { details: { remark: `${MARK}user` } });
  await assembly.hosts.save(admin, { host: "vault", domain: `${MARK}host` });
  await assembly.jobs.save(admin, { name: "vault", dir: "d", exec: ["true"], description: `${MARK}job` });
  await assembly.rules.put(
    admin,
    "/matrix/rules/vault",
    `--class=/matrix/vault\n--parser=text\n--fields=code,${MARK}rule`,
  );
  const session = await world.signIn();
  const calls: readonly Call[] = [
    { method: "PUT", url: "/fs/notes/plan.txt", payload: { data: `${MARK}file` } },
    { method: "POST", url: "/appcontext/vault", payload: { note: `${MARK}context` } },
    { method: "POST", url: "/extend/vault", payload: [{ key: "a", note: `${MARK}table` }] },
  ];
  for (const call of calls)
    expect((await world.app.inject({ ...call, query: { sessionid: session } })).json()).toMatchObject({ status: "ok" });
}

test.each([1, 2])("no answer has what its caller may not see (seed %i)", { timeout: 120_000 * TIMES }, async (seed) => {
  const random = seededRandom(seed);
  const draw: Draw = (list) => list[Math.floor(random.next() * list.length)] as never;
  // A stream of events has no end.
  const endpoints = world.assembly.endpoints.filter(({ events }) => events !== true);
  for (let made = 0; made < CALLS / 2; made += AT_ONCE) {
    const calls = Array.from({ length: AT_ONCE }, () => ({
      caller: draw(callers),
      call: drawn(endpoints, draw),
    }));
    await Promise.all(
      calls.map(async ({ caller: [name, headers], call }) => {
        const told = await answerTo({ ...call, headers });
        if (told.toLowerCase().includes(MARK))
          expect.fail(`${name}: ${JSON.stringify(call)} was answered ${told.slice(0, 2_000)}`);
      }),
    );
  }
});

test("the marks are there for who may see them", async () => {
  const { query } = world.assembly;
  const text = JSON.stringify(await query.rows(testPrincipal(), "select * from /matrix/vault"));
  for (const mark of ["column", "row", "both"]) expect(text).toContain(MARK + mark);
});

async function answerTo(call: Call): Promise<string> {
  try {
    const { body, headers } = await world.app.inject({ ...call, signal: AbortSignal.timeout(CALL_MAX_MS) });
    return body + JSON.stringify(headers);
  } catch (error) {
    if (error instanceof Error && /abort|timeout/i.test(error.name + error.message)) return "";
    throw error;
  }
}

/** Half of the calls ask for data and name nothing besides, so that most of them get as far as an answer. */
function drawn(endpoints: readonly Endpoint[], draw: Draw): Call {
  if (draw([true, false])) return callOf(draw(endpoints), draw);
  const [url, query] = draw([
    ["/mxobject/mql", { mql: draw(STATEMENTS)(draw) }],
    ["/mxobject/search", { cond: draw(SEARCHES)(draw) }],
    ["/mxobject/export", { class: draw(CLASSES), recursive: "true", filetype: draw(["mql", "json"]) }],
  ] as const);
  return draw([true, false]) ? { method: "GET", url, query } : { method: "POST", url, payload: query };
}

function callOf(endpoint: Endpoint, draw: Draw): Call {
  const { method, path } = endpoint;
  const url = path.replaceAll(/:\w+|\*/g, () => encodeURIComponent(draw([...NAMES, ...IDS])));
  const input = inputOf(endpoint, draw);
  if (method === "GET" || method === "DELETE") {
    const texts = Object.entries(input).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
    return { method, url, query: Object.fromEntries(texts) as Record<string, string> };
  }
  return { method, url, payload: input };
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
  if (/passw/.test(name)) return draw([PASSWORD, "another long password"]);
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
