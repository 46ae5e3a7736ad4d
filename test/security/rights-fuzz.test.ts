import { rm } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { expect, test } from "vitest";
import type { Principal } from "../../controller/areas/permissions/index.ts";
import { seededRandom } from "../helpers/clock.ts";
import { storeFolder } from "../helpers/folders.ts";
import { PASSWORD } from "../helpers/http-app.ts";
import { testPrincipal } from "../helpers/runtime.ts";
import { answerOf, httpFor, requested } from "./answering.ts";
import { drawerOf, type Draw, type DrawnCall } from "./draw.ts";
import { join, neighbourOf, type Call } from "./people.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Random calls of every endpoint, by users with few rights and by the administrator of another tenant. What they may not
 * see bears a mark that stands in no call: no answer may have it, however the call is put together.
 */

/** Calls in every run; `npm run soak -- --calls N` makes more. */
const CALLS = Number(process.env["ODP_FUZZ_CALLS"] ?? 100_000);
/** Each world begins anew: what calls leave behind, as entries of the audit trail, makes later ones cost more. */
const CALLS_PER_WORLD = 10_000;
/** One of so many goes through all of HTTP; the others end before the wire, where most of the costs are. */
const BY_HTTP = 25;
const AT_ONCE = 8;
/** No call is waited for longer: it counts as one that told nothing. */
const CALL_MAX_MS = 10_000;
/** In any case of its letters, as functions of texts change that. */
const MARK = "xmarkx";
/** Of what rules about rows and columns hide, from those too who may see anything else. */
const DATA_MARK = "xmarkxdata";

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
    await person("matrix", "few", MARK),
    await person("matrix", "some", MARK),
    await person("matrix", "reader", DATA_MARK),
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

/** What the calls of one world are drawn for and sent to. */
interface Round extends AsyncDisposable {
  readonly world: World;
  readonly app: FastifyInstance;
  readonly people: readonly Person[];
}

async function openRound(): Promise<Round> {
  const world = await openWorld();
  await fill(world);
  const people = await comeIn(world);
  const callers = new Map(people.map(({ login, principal }) => [login, principal]));
  const dataDir = await storeFolder("odp-fuzz-");
  const app = await httpFor(world.assembly, { callers, dataDir });
  return {
    world,
    app,
    people,
    async [Symbol.asyncDispose]() {
      await app.close();
      await world[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true });
    },
  };
}

const seeds = Array.from({ length: Math.ceil(CALLS / CALLS_PER_WORLD) }, (_, at) => at + 1);

test.each(seeds)("no answer has what its caller may not see (seed %i)", { timeout: 300_000 }, async (seed) => {
  await using round = await openRound();
  const random = seededRandom(seed);
  const draw: Draw = (list) => list[Math.floor(random.next() * list.length)] as never;
  // A stream of events has no end.
  const drawn = drawerOf(round.world.assembly.endpoints.filter(({ events }) => events !== true));
  for (let made = 0; made < CALLS_PER_WORLD; made += AT_ONCE) {
    const signal = AbortSignal.timeout(CALL_MAX_MS);
    const calls = Array.from({ length: AT_ONCE }, (_, at) => ({
      by: draw(round.people),
      call: drawn(draw),
      isWhole: (made + at) % BY_HTTP === 0,
    }));
    await Promise.all(calls.map((one) => look(round, { ...one, signal })));
  }
  await expectMarks(round.world);
});

interface Look {
  readonly by: Person;
  readonly call: DrawnCall;
  readonly isWhole: boolean;
  readonly signal: AbortSignal;
}

async function look({ app }: Round, { by, call, isWhole, signal }: Look): Promise<void> {
  const told = isWhole ? await requested(app, call, { ...by, signal }) : await answerOf(call, { ...by, signal });
  if (by.mark.test(told)) expect.fail(`${by.login}: ${textOf(call)} was answered ${told.slice(0, 2_000)}`);
}

/** Still there for who may see them, so that they could have been told. */
async function expectMarks({ assembly }: World): Promise<void> {
  const text = JSON.stringify(await assembly.query.rows(testPrincipal(), "select * from /matrix/vault"));
  for (const mark of ["row", "both"]) expect(text).toContain(DATA_MARK + mark);
}

function textOf({ endpoint: { method, path }, ...sent }: DrawnCall): string {
  return `${method} ${path} ${JSON.stringify({ path: sent.path, input: sent.input })}`;
}
