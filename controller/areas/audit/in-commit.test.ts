import { join } from "node:path";
import { expect, test } from "vitest";
import { isAppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import { STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { StoppableStores } from "../../../test/helpers/engines/stoppable-stores.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { PageFile } from "../../store/embedded/lmdb/page-file.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService } from "../query/index.ts";
import { AuditService } from "./service.ts";
import { AUDIT_CLASS, StoredTrail } from "./store.ts";

const CLASS = "/matrix/kept";
const NAMED = "/matrix/named";
const AT_ONCE = 40;

/** The trail and the queries of one controller on its own engine. */
class World implements AsyncDisposable {
  readonly audit: AuditService;
  readonly stores: StoppableStores;
  readonly #engine: TestEngine;
  readonly #objects: ObjectService;
  readonly #query: QueryService;

  private constructor(engine: TestEngine, clock: Clock) {
    const runtime = testRuntime(clock);
    const stores = (this.stores = new StoppableStores(engine));
    this.#engine = engine;
    this.#objects = new ObjectService({ stores, runtime });
    this.#objects.registerSystemClass(AUDIT_CLASS);
    const ospaceOf = (tenant: string) => Promise.resolve(`/${tenant}`);
    const trail = new StoredTrail({ clock, stores, objects: this.#objects, ospaceOf });
    this.audit = new AuditService({ runtime, trail, keys: TEST_SECRETS });
    this.#query = new QueryService({ objects: this.#objects, runtime, audit: this.audit });
  }

  static async open(faultySeed?: number, clock: Clock = realClock): Promise<World> {
    const world = new World(await openTestEngine({ clock, ...(faultySeed !== undefined && { faultySeed }) }), clock);
    for (let attempt = 0; !(await world.isDone(`create class if not exists ${CLASS} (n int, index(n))`)); attempt += 1)
      if (attempt > AT_ONCE) throw new Error("The class could not be created.");
    return world;
  }

  /** False if the stores did not make it, or did not answer. */
  async isDone(mql: string): Promise<boolean> {
    try {
      await this.#query.run(testPrincipal(), mql);
      return true;
    } catch (error) {
      if (isAppError(error, "unavailable", "unknown_outcome")) return false;
      throw error;
    }
  }

  /** Creates a class of three objects: `named:a`, `named:b` and `named:c`. */
  async fillNamed(): Promise<void> {
    await this.isDone(`create class ${NAMED} (code varchar, n int, keys(code), index(n))`);
    await this.isDone(`insert into ${NAMED} (code, n) values ('a', 1), ('b', 2), ('c', 3)`);
  }

  /** Values of `n` of these objects. */
  async named(): Promise<readonly unknown[]> {
    const rows = await this.#query.rows(testPrincipal(), `select code, n from ${NAMED} order by code`);
    return rows.map(({ code, n }) => `${String(code)}${String(n)}`);
  }

  /** Outcomes of the entries about these changes of a class; absent: about inserts. */
  async outcomes(kinds: readonly string[] = ["insert"], path = CLASS): Promise<readonly unknown[]> {
    const mql = "select action, outcome from /matrix/system/audit";
    const rows = await this.again(() => this.#query.rows(testPrincipal(), mql));
    const actions = new Set<unknown>(kinds.map((kind) => `MQL ${kind} ${path}`));
    return rows.filter(({ action }) => actions.has(action)).map(({ outcome }) => outcome);
  }

  /** Number of commits of the embedded store so far. */
  commits(): number {
    const file = new PageFile(join(this.#engine.dir, "tenants", "matrix", "lmdb", "data.mdb"));
    try {
      return Number(file.meta.transaction);
    } finally {
      file.close();
    }
  }

  async again<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await read();
      } catch (error) {
        if (!isAppError(error, "unavailable") || attempt > AT_ONCE) throw error;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#objects.close();
    await this.#engine.close();
  }
}

function insert(n: number): string {
  return `insert into ${CLASS} n=${n}`;
}

/** An insert, an update or a removal. */
function changed(n: number): string {
  if (n % 3 === 0) return insert(n);
  return n % 3 === 1 ? `update ${CLASS} set n=${n} where n=${n - 1}` : `delete from ${CLASS} where n=${n - 1} limit 1`;
}

test("inserts at once and alone have one entry each, in one sound chain, among entries of other changes", async () => {
  await using world = await World.open();
  for (let n = 0; n < 3; n += 1) expect(await world.isDone(insert(n))).toBe(true);
  const mql = (n: number): string => (n % 4 === 0 ? `update ${CLASS} set n=${n} where n=1` : insert(n));
  const done = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => world.isDone(mql(n))));
  expect(done).not.toContain(false);
  const report = await world.audit.verifyChain(testPrincipal());
  expect(report).toMatchObject({ problems: [], runs: 1, entries: 1 + 1 + 3 + AT_ONCE });
  expect(await world.outcomes()).toEqual(Array.from({ length: 3 + (AT_ONCE * 3) / 4 }, () => "ok"));
});

test.skipIf(onCluster)("an insert and its entry are one commit; more inserts at once share one", async () => {
  await using world = await World.open();
  await world.isDone(insert(0));
  const before = world.commits();
  for (let n = 0; n < 10; n += 1) await world.isDone(insert(n));
  const alone = world.commits();
  expect(alone - before).toBe(10);
  await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => world.isDone(insert(n))));
  expect(world.commits() - alone).toBeLessThan(AT_ONCE / 2);
  expect((await world.audit.verifyChain(testPrincipal())).problems).toEqual([]);
});

test.skipIf(onCluster).each([
  [
    "an insert of several rows",
    "insert",
    `into ${NAMED} (code, n) values ('d', 4), ('a', 5)`,
    ["a5", "b2", "c3", "d4"],
  ],
  ["an update of one object", "update", `${NAMED} set n=6 where n=2`, ["a1", "b6", "c3"]],
  ["a removal by id", "delete", `from ${NAMED} where id='named:b'`, ["a1", "c3"]],
  ["a removal of few objects", "delete", `from ${NAMED} where id in ('named:a', 'named:c')`, ["b2"]],
  ["a removal of at most one object", "delete", `from ${NAMED} where n>2 limit 1`, ["a1", "b2"]],
])("%s and its entry are one commit", async (_, kind, rest, left) => {
  await using world = await World.open();
  await world.fillNamed();
  const [before, entries] = [world.commits(), await world.outcomes([kind], NAMED)];
  expect(await world.isDone(`${kind} ${rest}`)).toBe(true);
  expect(world.commits() - before).toBe(1);
  expect(await world.outcomes([kind], NAMED)).toEqual([...entries, "ok"]);
  expect(await world.named()).toEqual(left);
  expect((await world.audit.verifyChain(testPrincipal())).problems).toEqual([]);
});

test.each([
  ["finds nothing", "update", `${NAMED} set n=9 where n=7`],
  ["writes several objects, each by itself", "update", `${NAMED} set n=9 where n>1`],
  ["writes one object twice", "insert", `into ${NAMED} (code, n) values ('a', 1), ('a', 2)`],
  ["removes nothing", "delete", `from ${NAMED} where id='named:z'`],
])("a change that %s has one entry", async (_, kind, rest) => {
  await using world = await World.open();
  await world.fillNamed();
  const entries = await world.outcomes([kind], NAMED);
  expect(await world.isDone(`${kind} ${rest}`)).toBe(true);
  expect(await world.outcomes([kind], NAMED)).toEqual([...entries, "ok"]);
  expect((await world.audit.verifyChain(testPrincipal())).problems).toEqual([]);
});

test("while one of several updates of a change waits, no entry tells that the change is made", async () => {
  await using world = await World.open();
  await world.fillNamed();
  const held = world.stores.hold("change");
  const change = world.isDone(`update ${NAMED} set n=9 where n>1`);
  const call = await held;
  while (!(await world.named()).some((object) => String(object).endsWith("9"))) await Promise.resolve();
  expect(await world.outcomes(["update"], NAMED)).toEqual([]);
  call.goOn();
  expect(await change).toBe(true);
  expect(await world.outcomes(["update"], NAMED)).toEqual(["ok"]);
});

test("while the last of several batches of an insert waits, no entry tells that the change is made", async () => {
  await using world = await World.open();
  await world.fillNamed();
  const entries = await world.outcomes(["insert"], NAMED);
  const first = world.stores.hold("change");
  const change = world.isDone(`insert into ${NAMED} (code, n) values ('d', 1), ('d', 2)`);
  const call = await first;
  const second = world.stores.hold("change");
  call.goOn();
  const last = await second;
  expect(await world.named()).toContain("d1");
  expect(await world.outcomes(["insert"], NAMED)).toEqual(entries);
  last.goOn();
  expect(await change).toBe(true);
  expect(await world.outcomes(["insert"], NAMED)).toEqual([...entries, "ok"]);
});

test.each([1, 2, 3])(
  "with stores that fail, every answer has its entry and the chain is sound: seed %i",
  async (seed) => {
    await using world = await World.open(seed);
    const done: boolean[] = [];
    for (let round = 0; round < 3; round += 1)
      done.push(...(await Promise.all(Array.from({ length: 12 }, (_, n) => world.isDone(changed(n))))));
    const report = await world.again(() => world.audit.verifyChain(testPrincipal()));
    expect(report.problems).toEqual([]);
    const outcomes = await world.outcomes(["insert", "update", "delete"]);
    const ok = done.filter(Boolean).length;
    expect(ok).toBeGreaterThan(0);
    // A commit without an answer may have stored an entry that is then written again.
    expect(outcomes.filter((outcome) => outcome === "ok").length).toBeGreaterThanOrEqual(ok);
  },
);

test.skipIf(onCluster).each([
  ["alone", 0],
  ["while others insert", 3],
])("an insert whose commit runs after its deadline leaves a sound chain that goes on: %s", async (_, others) => {
  const clock = new TestClock();
  await using world = await World.open(undefined, clock);
  await world.isDone(insert(0));
  const held = world.stores.hold("change");
  const late = world.isDone(insert(1));
  const call = await held;
  const meanwhile = Array.from({ length: others }, (_, n) => world.isDone(insert(2 + n)));
  call.goOn();
  // The write is in the queue, and its commit runs in a later turn of the event loop.
  for (let step = 0; step < 10; step += 1) await Promise.resolve();
  clock.advance(STORE_CALL_DEADLINE_MS + 1);
  expect(await late).toBe(false);
  await Promise.all(meanwhile);
  expect(await world.isDone(`update ${CLASS} set n=9 where n=1`)).toBe(true);
  expect(await world.isDone(insert(8))).toBe(true);
  expect((await world.audit.verifyChain(testPrincipal())).problems).toEqual([]);
  expect((await world.outcomes()).filter((outcome) => outcome === "failed")).not.toEqual([]);
});
