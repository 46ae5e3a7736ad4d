import { afterAll, beforeAll, expect, test } from "vitest";
import { isAppError } from "../../../common/errors.ts";
import { SCRUB_AGE_MIN_MS, SCRUB_RATE_MAX, STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { seedOfRun } from "../../store/contract/harness.ts";
import type { EntityKey } from "../../store/objects.ts";
import { ObjectService, type ObjectRow, type ReadRequest } from "../objects/index.ts";
import { ScrubService, type ScrubReport } from "./scrub.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const DISK = "/matrix/scrubbed/disk";
const COLOURS = ["red", "green", "blue", "white"];
const OBJECTS = 24;
const WRITERS = 4;
const WRITES = 30;
const AGED_MS = 20 * 60_000;

const moved = (byMs: number): Clock => ({ ...realClock, nowMs: () => realClock.nowMs() + byMs });
/** A clock by which the rows of the seed are old enough to remove, but rows being written are not. */
const DURING = moved(SCRUB_AGE_MIN_MS - STORE_CALL_DEADLINE_MS);
/** A clock by which all rows are old. */
const AFTER = moved(2 * SCRUB_AGE_MIN_MS);

let engine: TestEngine;
let services: readonly ObjectService[];
beforeAll(async () => {
  engine = await openTestEngine();
  services = [moved(-AGED_MS), realClock, realClock].map(
    (clock) => new ObjectService({ visible: visibleObjects, stores: engine, runtime: runtimeOf(clock) }),
  );
});
afterAll(async () => {
  for (const service of services ?? []) await service.close();
  await engine[Symbol.asyncDispose]();
});

function runtimeOf(clock: Clock): ReturnType<typeof testRuntime> {
  const bytes = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));
  return { ...testRuntime(clock), random: { next: () => Math.random(), bytes } };
}

async function scrubbed(clock: Clock): Promise<ScrubReport> {
  const scrubs = new ScrubService({
    stores: engine,
    objects: services[1]!,
    runtime: runtimeOf(clock),
    controllers: { own: "one", has: () => true },
    bornMs: () => Promise.resolve(0),
  });
  await scrubs.begin(admin, { rate: SCRUB_RATE_MAX });
  await scrubs.settled();
  const { last } = await scrubs.status(admin);
  await scrubs.close();
  expect(last?.state).toBe("done");
  return last as ScrubReport;
}

async function rowsOf(request: Partial<ReadRequest> = {}): Promise<readonly ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of services[2]!.unrestricted.read(admin, { class: DISK, subtree: false, ...request }))
    rows.push(...page);
  return rows;
}

/** Until a scrub, an index may name objects that do not have its value; readers therefore check each object. */
function borneBy(colour: string, rows: readonly ObjectRow[]): readonly string[] {
  const borne = rows.filter(({ values }) => values["colour"] === colour);
  return borne.map(({ id }) => id).sort();
}

async function namesOf(colour: string): Promise<readonly string[]> {
  const where = [{ kind: "equals" as const, column: "colour", values: [colour] }];
  expect((await services[2]!.unrestricted.explain(admin, { class: DISK, subtree: false, where })).used).toEqual(where);
  return borneBy(colour, await rowsOf({ where }));
}

async function edgesOf(direction: "in" | "out"): Promise<readonly string[]> {
  const found: string[] = [];
  const all = Array.from({ length: OBJECTS }, (_, at) => ({ id: `disk:d${at}` }));
  for await (const page of services[2]!.unrestricted.edges(admin, all, { direction }))
    found.push(...page.map(({ source, type, target }) => `${source} ${type} ${target}`));
  return found.sort();
}

async function rowsUnder(term: string): Promise<readonly string[]> {
  const { scrub } = await engine.tenant("matrix");
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await scrub.postings({ limit: 1_000, ...(cursor !== undefined && { cursor }) });
    found.push(...page.items.filter((row) => row.term === term).map(({ key }) => `disk:${key.id}`));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found.sort();
}

test("scrubs beside writers that change, remove and insert again take nothing away that is borne, and leave nothing that is not", async () => {
  const [early, ...writers] = services as [ObjectService, ...ObjectService[]];
  await early.createEdgeType(admin, { name: "cable", remedy: "" });
  await early.createClass(admin, {
    path: DISK,
    columns: [
      { name: "name", type: "varchar" },
      { name: "colour", type: "varchar" },
    ],
    keys: ["name"],
    indexes: ["colour"],
  });
  const names = Array.from({ length: OBJECTS }, (_, at) => `d${at}`);
  await early.unrestricted.insert(
    admin,
    DISK,
    names.map((name) => ({ name, colour: "red" })),
  );
  const view = (await early.catalog(admin)).get(DISK)!;
  const number = (view.columns.find(({ name }) => name === "colour") as unknown as { readonly number: number }).number;
  const termOf = (colour: string): string => `a${number}=${colour}`;
  // As abandoned writes leave them: every object has index rows of all colours.
  const { objects } = await engine.tenant("matrix");
  const timeUs = (realClock.nowMs() - AGED_MS + 1_000) * 1_000;
  const keys = names.map((id): EntityKey => ({ cid: view.cid, id }));
  await objects.change(keys.map((key) => ({ key, timeUs, addTerms: COLOURS.map(termOf) })));

  const random = seededRandom(seedOfRun("scrubs beside writers"));
  const dice = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
  const write = async (): Promise<void> => {
    const [by, name, colour] = [dice(writers), dice(names), dice(COLOURS)];
    const id = `disk:${name}`;
    const kind = random.next();
    const change = (): Promise<unknown> => {
      if (kind < 0.2) return by.unrestricted.remove(admin, [{ id }]);
      if (kind < 0.5) return by.unrestricted.insert(admin, DISK, [{ name, colour }]);
      if (kind < 0.8)
        return by.unrestricted.update(admin, { id }, [{ column: "colour", operation: "set", value: colour }]);
      const operation = dice(["add", "take"] as const);
      return by.unrestricted.update(admin, { id }, [{ column: "cable", operation, value: [`disk:${dice(names)}`] }]);
    };
    await change().catch((error: unknown) => {
      if (!isAppError(error, "not_found", "conflict")) throw error;
    });
  };
  let left = WRITERS;
  const writing = Array.from({ length: WRITERS }, async () => {
    for (let done = 0; done < WRITES; done += 1) await write();
    left -= 1;
  });
  const scrubbing = (async () => {
    let superfluous = 0;
    do superfluous += (await scrubbed(DURING)).superfluous;
    while (left > 0);
    return superfluous;
  })();
  await Promise.all([scrubbing, ...writing]);
  expect(await scrubbing).toBeGreaterThan(0);

  const check = async (): Promise<void> => {
    const rows = await rowsOf();
    for (const colour of COLOURS) {
      expect(await namesOf(colour), colour).toEqual(borneBy(colour, rows));
    }
    expect(await edgesOf("in")).toEqual(await edgesOf("out"));
  };
  await check();
  expect(await scrubbed(AFTER)).toMatchObject({ missing: 0, damaged: 0 });
  await check();
  for (const colour of COLOURS) expect(await rowsUnder(termOf(colour)), colour).toEqual(await namesOf(colour));
  expect(await scrubbed(AFTER)).toMatchObject({ missing: 0, superfluous: 0 });
});
