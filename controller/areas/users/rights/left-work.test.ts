import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { heldWork, openJobRuns } from "../../../../test/helpers/jobs/job-runs.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import { TestTransfer } from "../../../../test/helpers/objects/transfer.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import { GroupService } from "../../groups/index.ts";
import { BegunRuns } from "../../jobs/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../../query/index.ts";
import { UserService } from "../service.ts";
import type { BegunWork, NodeChange } from "../types.ts";

const admin = testPrincipal();
const runtime = testRuntime(realClock);
const PATIENCE = { timeout: 30_000 };

/** Work under way on a controller that stops; another controller then finishes it. */
interface UnderWay {
  /** Matches the sentence that reports the work. */
  readonly told: RegExp;
  /** Lets another controller finish the work; answers its result. */
  goOn(): Promise<unknown>;
}

let scene: Awaited<ReturnType<typeof openJobRuns>>;
let http: TestHttp;
let second: TestTransfer;
let secondQuery: QueryService;
/** Controllers that are alive: their leases last. */
const present = new Set(["first", "second"]);

beforeAll(async () => {
  scene = await openJobRuns();
  http = await openTestHttp({ engine: scene.engine });
  for (const name of ["crew", "more"]) await http.groups.create(admin, { name });
  second = new TestTransfer(scene.engine, { own: "second", present });
  secondQuery = queryOf("second", second);
  await secondQuery.rows(admin, "create class /matrix/box (host varchar, keys(host))");
  await scene.jobs.save(admin, { name: "sweep", exec: ["x"], host: ["h1", "h2"] });
});
afterAll(async () => {
  await second.close();
  await http.app.close();
  await http.groups.close();
  await scene[Symbol.asyncDispose]();
});

function queryOf(
  own: string,
  { objects }: TestTransfer,
  stores: ConstructorParameters<typeof TestTransfer>[0] = scene.engine,
) {
  const controllers = { own, has: (id: string) => present.has(id) };
  return new QueryService({ objects, runtime, batches: { stores, controllers, objects, runtime } });
}

const begunRuns = (): BegunRuns => new BegunRuns({ stores: scene.engine, objects: scene.objects, jobs: scene.jobs });
const users = (...more: readonly BegunWork[]): UserService =>
  new UserService({
    ...{ runtime, stores: scene.engine, tenants: http.tenants, audit: http.audit, groups: http.groups },
    begun: [
      { kind: "job runs", goesOn: (...of) => begunRuns().goesOn(...of) },
      { kind: "batches of MQL", goesOn: (...of) => secondQuery.goesOn(...of) },
      { kind: "imports", goesOn: (...of) => second.imports.goesOn(...of) },
      ...more,
    ],
  });

let made = 0;
/** Creates an administrator in a group; `principal` has the rights of that time. */
async function newUser(): Promise<{ readonly id: string; readonly username: string; readonly principal: Principal }> {
  const username = `ann${(made += 1)}`;
  const rights = { role: "administrator" } as const;
  const { id } = await http.users.create(admin, { username, password: PASSWORD, rights, groups: ["/crew"] });
  const principal = await http.users.present("matrix", username);
  if (!principal) throw new Error("the user was made");
  return { id, username, principal };
}

async function run(principal: Principal): Promise<UnderWay> {
  const [first, other] = [
    heldWork<Partial<CommandOutcome>>({ code: 0 }),
    heldWork<Partial<CommandOutcome>>({ code: 0 }),
  ];
  const asked: Principal[] = [];
  const { runId, finished } = await scene
    .controller("first", { dispatch: () => first.wait() })
    .execute(principal, "sweep", {});
  finished.catch(() => undefined);
  await first.asleep;
  const goOn = async (): Promise<unknown> => {
    const dispatch = (sent: { readonly principal: Principal }) => (asked.push(sent.principal), other.wait());
    await scene.controller("second", { dispatch }).maintain("matrix");
    await expect.poll(() => asked.length, PATIENCE).toBe(2);
    for (const one of asked) expect(one).toEqual(principal);
    other.release();
    await expect.poll(() => scene.openKeys(runId), PATIENCE).toEqual([]);
    first.release();
    return (await scene.rowsOf(runId)).map(({ status }) => status);
  };
  return { told: new RegExp(`^These job runs go on with the rights of their start: ${runId} \\(sweep\\)\\.$`), goOn };
}

/** Holds the writes of `begin` before the first object, and lets another controller finish them. */
async function written(
  begin: (first: TestTransfer, stores: StoppableStores) => Promise<unknown>,
  told: RegExp,
  goOn: () => Promise<unknown>,
) {
  present.add("first");
  const stores = new StoppableStores(scene.engine);
  const first = new TestTransfer(stores, { own: "first", present });
  await first.objects.catalog(admin);
  const arrived = stores.hold("change");
  const dying = begin(first, stores);
  dying.catch(() => undefined);
  const held = await arrived;
  return {
    told,
    async goOn() {
      await stores.stop();
      present.delete("first");
      await goOn();
      held.goOn();
      stores.goOn();
      await dying.catch(() => undefined);
      await first.close();
      return (await secondQuery.rows(admin, "select host from /matrix/box order by host")).map(({ host }) => host);
    },
  };
}

const batch = (principal: Principal): Promise<UnderWay> =>
  written(
    (first, stores) =>
      queryOf("first", first, stores).rows(
        principal,
        "begin insert into /matrix/box host='a'; insert into /matrix/box host='b' end",
      ),
    /^These batches of MQL go on with the rights of their start: \w+ \(\/matrix\/box\)\.$/,
    () => secondQuery.maintain("matrix"),
  );

const imported = (principal: Principal): Promise<UnderWay> =>
  written(
    (first) => first.take(principal, "insert into /matrix/box host='a'; insert into /matrix/box host='b'"),
    /^These imports go on with the rights of their start: \w+ \(test\.mql\)\.$/,
    async () => {
      await second.imports.maintain("matrix");
      await second.imports.settled();
    },
  );

/** Makes the change, and answers its warnings. */
async function changed(id: string, change: NodeChange): Promise<readonly string[]> {
  return (await users().directory.change(admin, id, change)).warnings;
}

const LOSSES: readonly (readonly [string, (id: string) => Promise<readonly string[]>])[] = [
  ["removed", (id) => users().directory.remove(admin, id)],
  ["no administrator any more", (id) => changed(id, { isAdmin: false })],
  ["made inactive", (id) => changed(id, { active: false })],
  ["taken out of a group", (id) => changed(id, { groups: [] })],
];
const WORKS = [
  ["a job run", run, ["ok", "ok"]],
  ["a batch of MQL", batch, ["a", "b"]],
  ["an import", imported, ["a", "b"]],
] as const;
/** All kinds of work for a removed user, and one kind for each other loss of rights. */
const CASES = LOSSES.flatMap(([loss, lose], at) =>
  WORKS.filter((_, place) => at === 0 || place === at - 1).map(([work, begin, whole]) => ({
    loss,
    lose,
    work,
    begin,
    whole,
  })),
);

test.each(CASES)("$work of a user who is $loss goes on with the rights of its start, and is told", async (of) => {
  await secondQuery.rows(admin, "delete from /matrix/box");
  const { id, username, principal } = await newUser();
  const { told, goOn } = await of.begin(principal);
  const warnings = await of.lose(id);
  expect(warnings).toEqual([expect.stringMatching(told)]);
  expect(http.trail.records.at(-1)).toMatchObject({
    ...{ user: admin.user, action: "leave going on what a user began", outcome: "ok" },
    object: expect.stringMatching(new RegExp(`^${username}, \\w+ \\(`)) as string,
  });
  const before = { active: true, rights: { role: "administrator" }, groups: ["/crew"] };
  expect((await users().find(admin, username)) ?? {}).not.toMatchObject(before);
  expect(await goOn()).toEqual(of.whole);
});

test("users of an organisation that is made inactive go on with what they began, and that is told", async () => {
  await secondQuery.rows(admin, "delete from /matrix/box");
  const { id, username, principal } = await newUser();
  const { id: plant } = await users().directory.createOrganization(admin, { username: `plant of ${username}` });
  await users().directory.move(admin, id, plant);
  const { told, goOn } = await run(principal);
  expect(await changed(plant, { details: { remark: "x" } })).toEqual([]);
  expect(await changed(plant, { active: false })).toEqual([expect.stringMatching(told)]);
  expect(http.trail.records.at(-1)).toMatchObject({
    action: "leave going on what users of an organisation began",
    object: expect.stringMatching(new RegExp(`^/plant of ${username}, \\w+ \\(`)) as string,
  });
  expect(await goOn()).toEqual(["ok", "ok"]);
});

test("what is over, what others began, and what a change does not narrow is not told", async () => {
  const { id } = await newUser();
  const { principal: other } = await newUser();
  const { goOn } = await run(other);
  const records = http.trail.records.length;
  expect(await changed(id, { groups: [] })).toEqual([]);
  expect(await users().directory.remove(admin, id)).toEqual([]);
  await goOn();
  const wider = await newUser();
  const under = await run(wider.principal);
  const change = { details: { remark: "x" }, groups: ["/crew", "/more"], active: true, isAdmin: true };
  expect(await changed(wider.id, change)).toEqual([]);
  await under.goOn();
  expect(await users().directory.remove(admin, wider.id)).toEqual([]);
  expect(http.trail.records.slice(records)).toEqual([]);
});

describe("a group that is changed", () => {
  const groups = new GroupService({
    runtime,
    stores: { system: () => scene.engine.system(), tenant: (name) => scene.engine.tenant(name) },
    left: (principal, narrowed) => users().leftByGroup(principal, narrowed),
  });
  afterAll(() => groups.close());

  const OPEN = { readonly: ["/matrix/box"], writable: ["/matrix/jobs"], readexps: [], fields: {} };
  /** Each starts with the group as it was and restores it afterwards. */
  const NARROWED: readonly (readonly [string, (crew: string, member: string) => Promise<unknown>])[] = [
    ["loses a member", (crew) => groups.update(admin, { id: crew, member: [] })],
    [
      "writes less",
      (crew) => groups.update(admin, { id: crew, writable: [], readonly: ["/matrix/box", "/matrix/jobs"] }),
    ],
    ["opens fewer rows", (crew) => groups.update(admin, { id: crew, readexps: ["/matrix/box: host = 'a'"] })],
    ["opens fewer columns", (crew) => groups.update(admin, { id: crew, fields: { "/matrix/box": "-host" } })],
  ];

  test("in a way that narrows its members has told what they go on with, and is on record; in others nothing", async () => {
    const username = `ann${(made += 1)}`;
    const rights = { grants: ["jobs:read", "jobs:run"], data: [] };
    await http.users.create(admin, { username, password: PASSWORD, rights });
    const member = [`U/${username}`];
    const { id: crew } = await groups.create(admin, { name: `crew${made}`, member, ...OPEN });
    await groups.api.create(admin, "ours", ["/opt/ours", "/opt/more"]);
    await groups.api.addGroups(admin, "ours", [`/crew${made}`]);
    await http.groups.refresh(admin);
    const principal = await http.users.present("matrix", username);
    if (!principal) throw new Error("the user was made");
    const { told, goOn } = await run(principal);
    const before = http.trail.records.length;
    const back = async () => expect((await groups.update(admin, { id: crew, member, ...OPEN })).warnings).toEqual([]);

    for (const [how, narrow] of NARROWED) {
      const answer = (await narrow(crew, username)) as { readonly warnings: readonly string[] };
      expect([how, answer.warnings]).toEqual([how, [expect.stringMatching(told)]]);
      await back();
    }
    const wider = { readonly: ["/matrix"], writable: ["/matrix/jobs", "/matrix/box"], tags: ["t"] };
    expect((await groups.update(admin, { id: crew, ...wider })).warnings).toEqual([]);
    // Another group gives the same rights.
    const { id: twin } = await groups.create(admin, { name: `twin${made}`, member, ...wider });
    expect((await groups.update(admin, { id: crew, ...OPEN })).warnings).toEqual([]);
    const others = await groups.create(admin, { name: `others${made}`, member: ["U/viewer"], ...OPEN });
    expect(await groups.remove(admin, others.id)).toEqual([]);

    expect((await groups.api.setPaths(admin, "ours", ["/opt/ours"])).warnings).toEqual([expect.stringMatching(told)]);
    expect((await groups.api.setPaths(admin, "ours", ["/opt"])).warnings).toEqual([]);
    const { warnings } = await groups.api.removeGroups(admin, "ours", [`/crew${made}`]);
    expect(warnings).toEqual([expect.stringMatching(told)]);
    expect(await groups.api.remove(admin, "ours")).toEqual([]);
    expect(await groups.remove(admin, twin)).toEqual([expect.stringMatching(told)]);
    expect(await groups.remove(admin, crew)).toEqual([expect.stringMatching(told)]);

    const records = http.trail.records.slice(before);
    const action = "leave going on what members of a group began";
    expect(records).toHaveLength(NARROWED.length + 4);
    for (const record of records) expect(record).toMatchObject({ user: admin.user, permission: "perms:write", action });
    expect(records.at(-1)?.object).toMatch(new RegExp(`^/crew${made}, \\w+ \\(sweep\\)$`));
    expect(await goOn()).toEqual(["ok", "ok"]);
    expect(await groups.remove(admin, (await groups.create(admin, { name: "idle", member, ...OPEN })).id)).toEqual([]);
  });
});

test("only what the caller may see is told, and nothing of another tenant", async () => {
  const { username, principal } = await newUser();
  const [running, importing] = [await run(principal), await imported(principal)];
  const works = [begunRuns(), second.imports];
  const theirs = (user: string) => Promise.resolve(user === username);
  const told = (by: Principal) => Promise.all(works.map(async (work) => (await work.goesOn(by, theirs)).length));
  expect(await told(admin)).toEqual([1, 1]);
  expect(await told(testPrincipal("administrator", "second"))).toEqual([0, 0]);
  expect(await told({ ...admin, grants: ["users:write"] })).toEqual([0, 0]);
  expect(await told({ ...admin, data: [] })).toEqual([0, 0]);
  const hides = (where: string): Principal => ({
    ...admin,
    data: ["/matrix/jobs/jobrun", "/matrix/system/transfer"].map((path) => ({ class: path, access: "read", where })),
  });
  expect(await told({ ...hides(""), data: hides("").data.map(({ where: _, ...rule }) => rule) })).toEqual([1, 1]);
  await expect(begunRuns().goesOn(testPrincipal("viewer"), theirs)).rejects.toMatchObject({ code: "denied" });
  await importing.goOn();
  await running.goOn();
});

test("a user is removed also when what goes on cannot be read, and the answer says so", async () => {
  const { id, username } = await newUser();
  const away = { kind: "deployments", goesOn: () => Promise.reject(new AppError("unavailable", "the store is away")) };
  expect(await users(away).directory.remove(admin, id)).toEqual([
    `Whether deployments of ${username} go on could not be read: the store is away`,
  ]);
  expect(await http.users.find(admin, username)).toBeUndefined();
});
