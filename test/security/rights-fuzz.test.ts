import { rm } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import type { FastifyInstance } from "fastify";
import { expect, test } from "vitest";
import { allows, type Principal } from "../../controller/areas/permissions/index.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { storeFolder } from "../helpers/runs/folders.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { answerOf, httpFor, requested } from "./answering.ts";
import { drawerOf, type Draw, type DrawnCall } from "./draw.ts";
import { join, neighbourOf, type Call } from "./people.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Random calls of every endpoint, by users with few rights and by the administrator of another tenant. Data that they
 * may not see contains a mark that is in no call: no answer and no frame of a socket to any call may contain it.
 * Data that none of them may change must be unchanged at the end.
 */

/** Number of calls in every run; `npm run soak -- --calls N` makes more. */
const CALLS = Number(process.env["ODP_FUZZ_CALLS"] ?? 5_000);
/** A new world starts after this many calls: the data they leave, such as audit entries, makes later calls slower. */
const CALLS_PER_WORLD = 10_000;
/** One call in this many uses HTTP. The others skip it, because it causes most of the cost. */
const BY_HTTP = 25;
const AT_ONCE = 8;
/** Maximum wait for a call; after that the call counts as one that revealed nothing. */
const CALL_MAX_MS = 10_000;
/** Matched in upper and lower case, because text functions can change the case. */
const MARK = "xmarkx";
/** In data that rules on rows and columns hide, also from users who may see everything else. */
const DATA_MARK = "xmarkxdata";
/** In data of the other tenant, hidden from every user of this one. */
const NEIGHBOUR_MARK = "ymarkyneighbour";
/** Subjects of the sockets. The calls cause the events, except for those that the test itself publishes. */
const SUBJECTS = ["datachange", "jobrun", "transfer", "deployment", "vault"];

interface Person {
  readonly login: string;
  readonly principal: Principal;
  readonly mark: RegExp;
}

async function comeIn(world: World): Promise<readonly Person[]> {
  const { groups, users } = world.assembly;
  const rows = { readexps: ["/matrix/vault: code = 'open'"], fields: { "/matrix/vault": "-secret" } };
  await groups.create(testPrincipal(), { name: "few", readonly: ["/matrix/vault"], ...rows });
  await groups.create(testPrincipal(), { name: "some", writable: ["/matrix/vault"], ...rows });
  await join(world, "few", "/few");
  await join(world, "some", "/some");
  await users.create(testPrincipal(), {
    username: "reader",
    password: PASSWORD,
    rights: { grants: ["*:read", "objects:write"], data: [{ class: "/matrix/system", access: "read" }] },
    groups: ["/some"],
  });
  await neighbourOf(world);
  const person = async (tenant: string, user: string, mark: string): Promise<Person> => {
    const principal = await users.present(tenant, user);
    if (principal === undefined) throw new Error(`There is no ${user} of ${tenant}.`);
    return { login: `${tenant}.${user}`, principal, mark: new RegExp(mark, "i") };
  };
  return [
    await person("matrix", "few", `${MARK}|${NEIGHBOUR_MARK}`),
    await person("matrix", "some", `${MARK}|${NEIGHBOUR_MARK}`),
    await person("matrix", "reader", `${DATA_MARK}|${NEIGHBOUR_MARK}`),
    await person("second", "admin", MARK),
  ];
}

async function fill(world: World): Promise<void> {
  const { assembly } = world;
  const admin = testPrincipal();
  await assembly.query.rows(
    admin,
    `create class /matrix/vault (code varchar, note varchar, secret varchar, keys(code)) with autosearch=true, version=true;
    create class /matrix/shut (code varchar, note varchar, keys(code)) with autosearch=true;
    create edge type leads;
    insert into /matrix/shut code='a', note='${DATA_MARK}shut';
    insert into /matrix/vault code='open', note='plain', secret='${DATA_MARK}column';
    insert into /matrix/vault code='closed', note='${DATA_MARK}row', secret='${DATA_MARK}both';
    update /matrix/vault set leads='vault:closed' where code='open'; update /matrix/vault set leads='shut:a' where code='closed'`,
  );
  await assembly.query.rows(
    testPrincipal("administrator", "second"),
    `create class /second/vault (code varchar, note varchar, keys(code)) with autosearch=true, version=true;
    insert into /second/vault code='theirs', note='${NEIGHBOUR_MARK}row'`,
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

/** The targets of the calls of one world. */
interface Round extends AsyncDisposable {
  readonly world: World;
  readonly app: FastifyInstance;
  readonly people: readonly Person[];
  readonly dataDir: string;
  /** Frames of the sockets, with the listener that received them. */
  readonly heard: readonly { readonly by: Person; readonly text: string }[];
}

/** Opens a socket of each subject for everyone who may listen. */
function listened(world: World, people: readonly Person[], closed: AbortSignal): Round["heard"] {
  const heard: { readonly by: Person; readonly text: string }[] = [];
  const socket = world.assembly.sockets.find(({ path }) => path === "/websocket/:subject");
  if (socket === undefined) throw new Error("There is no socket of notifications.");
  for (const by of people.filter(({ principal }) => allows(principal, socket.permission))) {
    const send = (text: string): void => void heard.push({ by, text });
    const line = { send, sent: (text: string) => Promise.resolve((send(text), true)), end: () => {}, closed };
    for (const subject of SUBJECTS)
      socket.open({ principal: by.principal, input: { subject }, line, present: () => Promise.resolve(by.principal) });
  }
  return heard;
}

async function openRound(): Promise<Round> {
  const world = await openWorld({ scripts });
  const people = await comeIn(world);
  await fill(world);
  const callers = new Map(people.map(({ login, principal }) => [login, principal]));
  const dataDir = await storeFolder("odp-fuzz-");
  const app = await httpFor(world.assembly, { callers, dataDir });
  const closing = new AbortController();
  return {
    world,
    app,
    people,
    dataDir,
    heard: listened(world, people, closing.signal),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await app.close();
      await world[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true });
    },
  };
}

const scripts = pathToFileURL(await bundle("controller/script-worker.ts", `scripts/fuzz-${process.pid}.mjs`));
const FIRST_SEED = Number(process.env["ODP_TEST_SEED"] ?? 1);
const seeds = Array.from({ length: Math.ceil(CALLS / CALLS_PER_WORLD) }, (_, at) => FIRST_SEED + at);

test.each(seeds)("no answer has what its caller may not see (seed %i)", { timeout: 300_000 }, async (seed) => {
  await using round = await openRound();
  const random = seededRandom(seed);
  const draw: Draw = (list) => list[Math.floor(random.next() * list.length)] as never;
  // An event stream has no end.
  const drawn = drawerOf(round.world.assembly.endpoints.filter(({ events }) => events !== true));
  const before = await forbidden(round.world);
  for (let made = 0; made < Math.min(CALLS, CALLS_PER_WORLD); made += AT_ONCE) {
    const signal = AbortSignal.timeout(CALL_MAX_MS);
    const calls = Array.from({ length: AT_ONCE }, (_, at) => ({
      by: draw(round.people),
      call: drawn(draw),
      isWhole: (made + at) % BY_HTTP === 0,
    }));
    await Promise.all(calls.map((one) => look(round, { ...one, signal })));
  }
  await expectFrames(round);
  await expectMarks(round.world);
  expect(await forbidden(round.world)).toEqual(before);
});

/** Listeners must receive at least some frames, and none with hidden data. */
async function expectFrames({ world: { assembly }, heard }: Round): Promise<void> {
  const frame = {
    keyspace: "/matrix",
    source: "fuzz",
    subject: "vault",
    title: "t",
    reply: "",
    msg: "open",
    about: undefined,
  };
  const before = heard.length;
  assembly.notifications.publish("matrix", frame);
  assembly.notifications.publish("second", { ...frame, keyspace: "/second", msg: NEIGHBOUR_MARK });
  await expect.poll(() => heard.length - before, { timeout: CALL_MAX_MS }).toBeGreaterThanOrEqual(2);
  for (const { by, text } of heard) if (by.mark.test(text)) expect.fail(`${by.login} was told ${text.slice(0, 2_000)}`);
}

/** Data that none of the callers may change, as the administrator sees it. */
async function forbidden({ assembly: { query, rules }, app, signIn }: World): Promise<unknown> {
  const admin = testPrincipal();
  const rows = (text: string) => query.rows(admin, text);
  const sessionid = await signIn();
  const told = async (url: string) => (await app.inject({ url, query: { sessionid } })).body;
  return {
    shut: await rows("select code, note from /matrix/shut order by code"),
    closed: await rows("select code, note, secret from /matrix/vault where code = 'closed'"),
    // Some callers may change and remove the row.
    secrets: await rows(`select secret from /matrix/vault where secret is not null and secret <> '${DATA_MARK}column'`),
    jobs: await rows("select name, dir, exec, description from /matrix/jobs/jobdef order by name"),
    hosts: await rows("select host, domain from /matrix/system/hostinfo order by host"),
    admin: await rows("select username, isadmin, isactive, remark from /matrix/ldap where username = 'admin'"),
    rules: await rules.list(admin),
    others: [await told("/fs/notes/plan.txt"), await told("/appcontext/vault"), await told("/extend/vault")],
  };
}

interface Look {
  readonly by: Person;
  readonly call: DrawnCall;
  readonly isWhole: boolean;
  readonly signal: AbortSignal;
}

async function look({ app, dataDir }: Round, { by, call, isWhole, signal }: Look): Promise<void> {
  const told = isWhole
    ? await requested(app, call, { ...by, signal })
    : await answerOf(call, { ...by, signal, folder: dataDir });
  if (by.mark.test(told)) expect.fail(`${by.login}: ${textOf(call)} was answered ${told.slice(0, 2_000)}`);
}

/** The marked data must still exist for users who may see it; otherwise it could not have leaked. */
async function expectMarks({ assembly }: World): Promise<void> {
  const text = JSON.stringify(await assembly.query.rows(testPrincipal(), "select * from /matrix/vault"));
  for (const mark of ["row", "both"]) expect(text).toContain(DATA_MARK + mark);
}

function textOf({ endpoint: { method, path }, ...sent }: DrawnCall): string {
  return `${method} ${path} ${JSON.stringify(sent)}`;
}
