import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import {
  BLOB_ROW_MAX_BYTES,
  SCRUB_DUE_MS,
  SCRUB_PAGE_ROWS,
  SCRUB_PROGRESS_MS,
  SCRUB_RATE_MAX,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { EntityKey } from "../../store/objects.ts";
import type { Clock } from "../../../common/time.ts";
import type { Stores, TenantStore } from "../../store/engine.ts";
import type { ScrubStore } from "../../store/scrub.ts";
import { faulty } from "../../store/faulty.ts";
import { ObjectService } from "../objects/index.ts";
import { ScrubService, type ScrubReport } from "./scrub.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const PART = "/matrix/ent/part";
const HOUR_MS = 3_600_000;
const FAST = { rate: SCRUB_RATE_MAX };
/** A clock by which everything written now is old. */
const later: Clock = { ...realClock, nowMs: () => realClock.nowMs() + 2 * HOUR_MS };
/** A clock for writes that are repeated late. */
const earlier: Clock = { ...realClock, nowMs: () => realClock.nowMs() - 2 * HOUR_MS };
const real: Runtime = {
  ...testRuntime(realClock),
  random: { next: () => Math.random(), bytes: (count) => crypto.getRandomValues(new Uint8Array(count)) },
};

let engine: TestEngine;
let one: Controller;
beforeAll(async () => {
  engine = await openTestEngine();
  one = controller("one");
  await one.objects.createClass(admin, {
    path: PART,
    columns: [
      { name: "name", type: "varchar" },
      { name: "colour", type: "varchar" },
    ],
    keys: ["name"],
    indexes: ["colour"],
  });
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

interface Controller extends AsyncDisposable {
  readonly scrubs: ScrubService;
  readonly objects: ObjectService;
}

function methodsOf(scrub: ScrubStore): ScrubStore {
  return {
    postings: (page) => scrub.postings(page),
    ended: (page) => scrub.ended(page),
    endingInParts: (page) => scrub.endingInParts(page),
    missing: (entities) => scrub.missing(entities),
    add: (changes) => scrub.add(changes),
    remove: (postings) => scrub.remove(postings),
    edges: (from, page) => scrub.edges(from, page),
    contents: (page) => scrub.contents(page),
    verify: (digest, paced) => scrub.verify(digest, paced),
    rows: (page) => scrub.rows(page),
    repairs: () => scrub.repairs(),
  };
}

function scrubbedThrough(wrap: (scrub: ScrubStore) => ScrubStore): Stores {
  const wrapped = (store: TenantStore): TenantStore => ({ ...store, scrub: wrap(store.scrub) });
  return {
    system: () => engine.system(),
    tenant: async (tenant) => wrapped(await engine.tenant(tenant)),
  };
}

function controller(
  own: string,
  { stores = engine as Stores, gone = [""], bornMs = Date.now(), clock = realClock, writes = realClock } = {},
): Controller {
  const runtime = { ...real, clock };
  const objects = new ObjectService({ visible: visibleObjects, stores, runtime: { ...real, clock: writes } });
  const controllers = { own, has: (id: string) => !gone.includes(id) };
  const scrubs = new ScrubService({ stores, objects, runtime, controllers, bornMs: () => Promise.resolve(bornMs) });
  return {
    scrubs,
    objects,
    async [Symbol.asyncDispose]() {
      await scrubs.close();
      await objects.close();
    },
  };
}

async function scrubbed({ scrubs }: Controller, principal = admin): Promise<ScrubReport> {
  const begun = await scrubs.begin(principal, FAST);
  await scrubs.settled();
  const { last, running } = await scrubs.status(principal);
  expect(running).toBeUndefined();
  expect(last?.id).toBe(begun.id);
  return last as ScrubReport;
}

/** The entity of a part, and the term by which its colour is found. */
async function part(name: string, colour: string): Promise<{ readonly key: EntityKey; readonly term: string }> {
  await one.objects.unrestricted.insert(admin, PART, [{ name, colour }]);
  const view = (await one.objects.catalog(admin)).get(PART);
  const column = view?.columns.find(({ name: of }) => of === "colour") as unknown as { readonly number: number };
  return {
    key: { cid: (view as unknown as { readonly cid: number }).cid, id: name },
    term: `a${column.number}=${colour}`,
  };
}

async function named(colour: string): Promise<readonly unknown[]> {
  const names: unknown[] = [];
  const where = [{ kind: "equals" as const, column: "colour", values: [colour] }];
  for await (const rows of one.objects.unrestricted.read(admin, { class: PART, subtree: false, where }))
    names.push(...rows.filter(({ values }) => values["colour"] === colour).map(({ values }) => values["name"]));
  return names.sort();
}

const rowsUnder = (term: string): Promise<readonly string[]> => rowsWhere((of) => of === term);

async function rowsWhere(isWanted: (term: string) => boolean): Promise<readonly string[]> {
  const { scrub } = await engine.tenant("matrix");
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await scrub.postings({ limit: 1_000, ...(cursor !== undefined && { cursor }) });
    found.push(...page.items.filter((row) => isWanted(row.term)).map(({ key }) => key.id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found.sort();
}

test("a sound tenant is looked through, and nothing of it is changed", async () => {
  await part("sound", "green");
  const report = await scrubbed(one);
  expect(report).toMatchObject({ state: "done", missing: 0, superfluous: 0, damaged: 0, examples: [] });
  expect(report.looked.objects).toBeGreaterThan(0);
  expect(report.looked.indexes).toBeGreaterThan(0);
  expect(await named("green")).toEqual(["sound"]);
});

test("an object that an index lacks is found again, whatever was removed before, and told", async () => {
  const { key, term } = await part("lost", "blue");
  const { objects } = await engine.tenant("matrix");
  const [entity] = await objects.get([key]);
  const timeUs = (entity?.lastUs ?? 0) + 1;
  await objects.change([{ key, timeUs, dropTerms: [term] }]);
  expect(await named("blue")).toEqual([]);
  // The rows that the scrub adds have the present time.
  await expect.poll(() => Date.now() * 1_000, { timeout: 30_000 }).toBeGreaterThan(timeUs);
  const report = await scrubbed(one);
  expect(report.missing).toBe(1);
  expect(report.examples).toEqual([expect.stringContaining(term)]);
  expect(await named("blue")).toEqual(["lost"]);
  expect(await scrubbed(one)).toMatchObject({ missing: 0, superfluous: 0 });
});

test("what an object does not bear goes when it is old, and stays while its write may be under way", async () => {
  const { key, term } = await part("borne", "red");
  const { objects } = await engine.tenant("matrix");
  const nowUs = Date.now() * 1_000;
  const [old, young] = [term.replace("red", "old"), term.replace("red", "young")];
  await objects.change([{ key, timeUs: nowUs, addTerms: [old] }]);
  await objects.change([{ key, timeUs: nowUs + 2 * HOUR_MS * 1_000, addTerms: [young] }]);
  await using scrubber = controller("scrubs later", { clock: later });
  const report = await scrubbed(scrubber);
  expect(report.superfluous).toBe(1);
  expect(report.examples).toEqual([expect.stringContaining(old)]);
  expect([await rowsUnder(old), await rowsUnder(young), await rowsUnder(term)]).toEqual([[], ["borne"], ["borne"]]);
});

test("a row that is written again while its removal is under way stays", async () => {
  const { key, term } = await part("back", "violet");
  const { objects } = await engine.tenant("matrix");
  const again = term.replace("violet", "brown");
  await objects.change([{ key, timeUs: Date.now() * 1_000, addTerms: [again] }]);
  const removed: string[] = [];
  const stores = scrubbedThrough((scrub) => ({
    ...methodsOf(scrub),
    async remove(postings) {
      removed.push(...postings.map((posting) => posting.term));
      await one.objects.unrestricted.update(admin, { id: "part:back" }, [
        { column: "colour", operation: "set", value: "brown" },
      ]);
      await scrub.remove(postings);
    },
  }));
  await using scrubber = controller("scrubs slowly", { stores, clock: later });
  await scrubbed(scrubber);
  expect(removed).toContain(again);
  expect([await rowsUnder(again), await named("brown")]).toEqual([["back"], ["back"]]);
});

test("a write that is repeated long after its rows were taken away is found all the same", async () => {
  const { key, term } = await part("late", "white");
  const { objects } = await engine.tenant("matrix");
  const lateTerm = term.replace("white", "late");
  const given = { ...key, id: "given up" };
  const timeUs = earlier.nowMs() * 1_000;
  // Its first attempt wrote only its index rows.
  await objects.change([{ key: given, timeUs, addTerms: [lateTerm] }]);
  await using scrubber = controller("scrubs what was given up", { clock: later });
  await scrubbed(scrubber);
  expect(await rowsUnder(lateTerm)).toEqual([]);
  await objects.change([{ key: given, timeUs, birth: true, cells: new Map(), addTerms: [lateTerm] }]);
  const { items } = await objects.find({ terms: [lateTerm] }, { limit: 10 });
  expect(items.map(({ key: { id } }) => id)).toEqual(["given up"]);
  await objects.change([{ key: given, timeUs: timeUs + 1, death: true, dropTerms: [lateTerm] }]);
});

test("an index that is made again after a scrub took its rows away has all its objects", async () => {
  await using scrubber = controller("scrubs the dropped", { clock: later, writes: earlier });
  const path = "/matrix/ent/remade";
  const byColour = {
    class: path,
    subtree: false,
    where: [{ kind: "equals" as const, column: "colour", values: ["x"] }],
  };
  const rows = async (): Promise<number> => (await rowsWhere((term) => term.endsWith("=x"))).length;
  await one.objects.createClass(admin, {
    path,
    columns: [{ name: "colour", type: "varchar" }],
    indexes: ["colour"],
    options: { keyMode: "manu" },
  });
  await scrubber.objects.unrestricted.insert(admin, path, [{ id: "old", colour: "x" }]);
  await one.objects.alterClass(admin, path, { kind: "drop index", name: "colour" });
  expect(await rows()).toBe(1);
  await scrubbed(scrubber);
  expect(await rows()).toBe(0);
  await one.objects.alterClass(admin, path, { kind: "add index", name: "colour" });
  await expect
    .poll(async () => (await one.objects.unrestricted.explain(admin, byColour)).used, { timeout: 30_000 })
    .toHaveLength(1);
  const found: string[] = [];
  for await (const page of one.objects.unrestricted.read(admin, byColour)) found.push(...page.map(({ id }) => id));
  expect(found).toEqual(["remade:old"]);
});

test("of two scrubs of a tenant one is refused, and one that is stopped says how far it was", async () => {
  await one.scrubs.begin(admin, { rate: 1 });
  await expect(one.scrubs.begin(admin)).rejects.toMatchObject({ code: "conflict" });
  expect((await one.scrubs.status(admin)).running).toMatchObject({ state: "running", rate: 1 });
  // Other tenants do not see it.
  expect((await one.scrubs.status(testPrincipal("administrator", "second"))).running).toBeUndefined();
  expect(await one.scrubs.stop(admin)).toMatchObject({ state: "stopped" });
  await expect(one.scrubs.stop(admin)).rejects.toMatchObject({ code: "not_found" });
  expect((await one.scrubs.status(admin)).last).toMatchObject({ state: "stopped" });
});

test("another controller goes on with the scrub of one that is gone", async () => {
  const first = controller("first");
  const { id } = await first.scrubs.begin(admin, { rate: 1 });
  await first[Symbol.asyncDispose]();
  await using second = controller("second", { gone: ["first"] });
  // At its rate the scrub would run for minutes.
  const found = await (await engine.tenant("matrix")).kv.get(`scrub/open/${id}`);
  expect(found).toBeDefined();
  await second.scrubs.maintain("matrix");
  expect((await second.scrubs.status(admin)).running).toMatchObject({ id, state: "running" });
  await second.scrubs.stop(admin);
});

test("a scrub that rests goes on where it was, and looks at the rest only", async () => {
  const names = Array.from({ length: SCRUB_PAGE_ROWS + 50 }, (_, at) => ({ name: `many${at}`, colour: "grey" }));
  await one.objects.unrestricted.insert(admin, PART, names);
  let pages = 0;
  const stores = scrubbedThrough((scrub) => ({
    ...methodsOf(scrub),
    postings: (page) => {
      pages += 1;
      // The store is unavailable for the second page.
      return page.cursor === undefined ? scrub.postings(page) : Promise.reject(new AppError("unavailable", "away"));
    },
  }));
  // Every reading of the clock is long after the previous one, so each page is recorded.
  let ticks = 0;
  const hasty = { ...realClock, monotonicMs: () => (ticks += SCRUB_PROGRESS_MS) };
  await using first = controller("resting", { stores, clock: hasty });
  const { id } = await first.scrubs.begin(admin, FAST);
  await first.scrubs.settled();
  expect(pages).toBeGreaterThan(1);
  const { running } = await one.scrubs.status(admin);
  expect(running).toMatchObject({ id, step: "indexes" });
  expect(running?.looked.indexes).toBeGreaterThan(0);
  await using second = controller("goes on", { gone: ["resting"] });
  await second.scrubs.maintain("matrix");
  await second.scrubs.settled();
  const { last } = await second.scrubs.status(admin);
  expect(last).toMatchObject({ id, state: "done" });
  const whole = await scrubbed(one);
  expect(last?.looked).toEqual(whole.looked);
});

test("a store that fails now and then holds no scrub up, and is told nothing wrong", async () => {
  const stores = faulty(engine, { random: seededRandom(11), faultRate: 0.05 });
  await using flaky = controller("flaky", { stores });
  const begun = await flaky.scrubs.begin(admin, FAST).catch(() => undefined);
  await expect
    .poll(
      async () => {
        await flaky.scrubs.maintain("matrix").catch(() => undefined);
        await flaky.scrubs.settled();
        return one.scrubs.status(admin);
      },
      { timeout: 60_000, interval: 20 },
    )
    .toMatchObject(begun ? { last: { id: begun.id, state: "done", missing: 0 } } : {});
});

test("a tenant that was not scrubbed for a week is due", async () => {
  const second = testPrincipal("administrator", "second");
  await using old = controller("old", { bornMs: Date.now() - SCRUB_DUE_MS - 1_000 });
  expect((await old.scrubs.status(second)).due).toBe(true);
  await old.scrubs.maintain("second");
  expect(old.scrubs.longestAgeMs).toBeGreaterThan(SCRUB_DUE_MS);
  await scrubbed(old, second);
  expect((await old.scrubs.status(second)).due).toBe(false);
});

test("who may only look begins none and stops none", async () => {
  const viewer = testPrincipal("viewer");
  expect((await one.scrubs.status(viewer)).due).toBe(false);
  await expect(one.scrubs.begin(viewer)).rejects.toMatchObject({ code: "denied" });
  await expect(one.scrubs.stop(viewer)).rejects.toMatchObject({ code: "denied" });
});

test.skipIf(onCluster)("a content that is not what it was is told", async () => {
  const { blobs } = await engine.tenant("matrix");
  const { digest } = await blobs.put([Buffer.alloc(BLOB_ROW_MAX_BYTES + 1, "a")], "test");
  const folder = join(engine.dir, "tenants", "matrix", "blobs", "contents", digest.slice(0, 2));
  const [file = ""] = await readdir(folder);
  expect((await scrubbed(one)).damaged).toBe(0);
  await writeFile(join(folder, file), "X", { flag: "r+" });
  expect(await scrubbed(one)).toMatchObject({ damaged: 1, examples: [`damaged: content ${digest}`] });
});
