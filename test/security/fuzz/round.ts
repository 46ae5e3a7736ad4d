import { rm } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { expect } from "vitest";
import { storeFolder } from "../../helpers/runs/folders.ts";
import { PASSWORD } from "../../helpers/http/http-app.ts";
import { testPrincipal } from "../../helpers/time/runtime.ts";
import { httpFor } from "../answering.ts";
import type { Call } from "../people.ts";
import { openWorld, type World } from "../world.ts";
import { HIDDEN_SIZE, MARK, type Marked, NEIGHBOUR_MARK, WORD } from "./names.ts";
import { comeIn, type People } from "./people.ts";
import type { Interface } from "./ways.ts";

/** A world with marked data, and the people who call it. */
export interface Round extends AsyncDisposable {
  readonly world: World;
  readonly app: FastifyInstance;
  readonly people: People;
  readonly to: Interface;
  /** Folder for uploads. */
  readonly folder: string;
}

const admin = testPrincipal();
/** Script whose console log has a mark. */
const LOG_NAME = "/said.js";
const mark = (what: Marked): string => `${MARK}${what}`;

/** `scripts`: the built `script-worker.ts`. */
export async function openRound(scripts: URL): Promise<Round> {
  const world = await openWorld({ scripts });
  await fillObjects(world);
  await fillOthers(world);
  const people = await comeIn(world);
  const callers = new Map(Object.values(people).map(({ login, principal }) => [login, principal]));
  const folder = await storeFolder("odp-fuzz-");
  const app = await httpFor(world.assembly, { callers, dataDir: folder });
  return {
    world,
    app,
    people,
    folder,
    to: {
      endpoints: world.assembly.endpoints,
      preferred: world.assembly.endpoints,
      sockets: world.assembly.sockets,
      functions: await functionsOf(world),
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await world[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

async function fillObjects({ assembly: { query, tenants } }: World): Promise<void> {
  await query.rows(
    admin,
    `create class /matrix/vault (code varchar, owner varchar, note varchar, hushed varchar, size int, keys(code), index(hushed)) with autosearch=true, version=true;
    create class /matrix/shut (code varchar, note varchar, keys(code)) with autosearch=true;
    create class /matrix/lines (code varchar, owner varchar, note varchar, hushed varchar, size int, index(hushed, size)) with kind='record', autosearch=true;
    create edge type leads;
    insert into /matrix/shut code='a', note='${mark("shut")} ${WORD}';
    insert into /matrix/vault (code, owner, note, hushed) values ('open', 'theirs', '${mark("past")}', '${mark("past")}') at '2025-01-01 00:00:00';
    insert into /matrix/vault (code, owner, note, hushed, size) values ('open', 'ours', 'plain', '${mark("column")} ${WORD}', 1), ('ajar', 'ours', 'simple', '${mark("column")}', 2);
    insert into /matrix/vault (code, owner, note, hushed, size) values ('closed', 'theirs', '${mark("row")} ${WORD} (', '${mark("both")} ${WORD} (', ${HIDDEN_SIZE});
    insert into /matrix/lines (code, owner, note, hushed, size) values ('open', 'ours', 'plain', '${mark("column")} ${WORD}', 1);
    insert into /matrix/lines (code, owner, note, hushed, size) values ('closed', 'theirs', '${mark("row")} ${WORD} (', '${mark("both")} ${WORD} (', ${HIDDEN_SIZE});
    update /matrix/vault set leads='vault:closed' where code='open';
    update /matrix/vault set leads='shut:a' where code='closed';
    update /matrix/vault set leads=leads + 'vault:ajar' where code='closed'`,
  );
  await tenants.ensureTenant({ name: "second", ospace: "/second" });
  await query.rows(
    testPrincipal("administrator", "second"),
    `create class /second/vault (code varchar, note varchar, keys(code)) with autosearch=true, version=true;
    insert into /second/vault code='theirs', note='${NEIGHBOUR_MARK}row'`,
  );
}

/** Objects of the platform and its other stores. */
async function fillOthers(world: World): Promise<void> {
  const { users, hosts, jobs, rules, policies, config } = world.assembly;
  const rights = { grants: [], data: [] };
  await users.create(admin, { username: "covert", password: PASSWORD, rights, details: { remark: mark("user") } });
  await hosts.save(admin, { host: "covert", domain: mark("host") });
  await jobs.save(admin, { name: "covert", dir: "d", exec: ["true"], description: mark("job") });
  for (const value of ["first", "second"])
    await config.set(admin, { key: "/matrix/covert/key", value: `${mark("config")} ${value}` });
  for (const [name, what] of [
    ["vault", "rule"],
    ["shut", "shut"],
  ] as const)
    await rules.put(
      admin,
      `/matrix/rules/${name}`,
      `--class=/matrix/${name}\n--parser=text\n--fields=code,${mark(what)}`,
    );
  const tick = { ctype: 1, interval: 1, unit: "minute" } as const;
  const spec = {
    kind: "command",
    name: "covert",
    rule: "/matrix/rules/vault",
    command: mark("policy"),
    ...tick,
  } as const;
  await policies.save(admin, { spec });
  const session = await world.signIn();
  const calls: readonly Call[] = [
    { method: "PUT", url: "/fs/notes/plan.txt", payload: { data: `${mark("file")} ${WORD}` } },
    {
      method: "PUT",
      url: "/fs/notes/plan.txt",
      payload: { type: "attr", attr: JSON.stringify({ note: mark("file") }) },
    },
    { method: "PUT", url: "/fs/open/plain.txt", payload: { data: "plain" } },
    { method: "PUT", url: "/fs/script/query.js", payload: { data: "OUTPUT = odb.mql(INPUT)" } },
    { method: "PUT", url: "/fs/script/said.js", payload: { data: "log.info(INPUT)" } },
    { method: "POST", url: "/script/exec/js", payload: { filepath: LOG_NAME, input: mark("log") } },
    { method: "POST", url: "/appcontext/covert", payload: { note: mark("context") } },
    { method: "POST", url: "/extend/covert", payload: [{ key: "a", note: mark("table") }] },
  ];
  for (const call of calls)
    expect((await world.app.inject({ ...call, query: { sessionid: session } })).json()).toMatchObject({ status: "ok" });
}

/** Functions of scripts. Those that wait are left out. */
async function functionsOf({ app, signIn }: World): Promise<readonly string[]> {
  const answer = await app.inject({ url: "/api/trigger/funcs", query: { sessionid: await signIn() } });
  const { message } = answer.json<{ readonly message: readonly { readonly name: string }[] }>();
  return message.map(({ name }) => name).filter((name) => !/sleep|wait/i.test(name));
}

/** Data that none of the callers may change, as the administrator sees it. */
export async function forbidden({ assembly: { query, rules }, app, signIn }: World): Promise<unknown> {
  const rows = (text: string) => query.rows(admin, text);
  const sessionid = await signIn();
  const told = async (url: string) => (await app.inject({ url, query: { sessionid } })).body;
  return {
    shut: await rows("select code, note from /matrix/shut order by code"),
    closed: await rows("select code, owner, note, hushed, size from /matrix/vault where code = 'closed'"),
    lines: await rows("select code, owner, note, hushed, size from /matrix/lines where code = 'closed'"),
    // Some callers may change and remove the row.
    secrets: await rows(
      `select hushed from /matrix/vault where hushed is not null and hushed not like '${mark("column")}%'`,
    ),
    jobs: await rows("select name, dir, exec, description from /matrix/jobs/jobdef order by name"),
    hosts: await rows("select host, domain from /matrix/system/hostinfo order by host"),
    users: await rows(
      "select username, isadmin, isactive, remark from /matrix/ldap where username in ('admin', 'covert')",
    ),
    config: await rows("select key, value from /matrix/system/config where key = '/matrix/covert/key'"),
    rules: await rules.list(admin),
    others: [await told("/fs/notes/plan.txt"), await told("/appcontext/covert"), await told("/extend/covert")],
  };
}

/** The marked data must still exist for users who may see it; otherwise it could not have leaked. */
export async function expectMarks({ assembly }: World): Promise<void> {
  const text = JSON.stringify(await assembly.query.rows(admin, "select * from /matrix/vault"));
  for (const what of ["row", "both"] as const) expect(text).toContain(mark(what));
}
