import { expect, test } from "vitest";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import { ObjectService } from "../index.ts";
import { LANES, type Lane, engine, useRaces } from "../../../../test/helpers/objects/race-world.ts";
import { LINKED } from "../../../../test/helpers/objects/race-plans.ts";
import { type HistoryOptions, history } from "../../../../test/helpers/objects/race-histories.ts";

useRaces();

const HISTORIES = Number(process.env.ODP_RACE_HISTORIES ?? (onCluster ? 50 : (TIMES > 1 ? 150 : 60) * TIMES));
const SEED = Number(process.env.ODP_TEST_SEED ?? 1);
/**
 * They find something as soon as a write is not put above what was read (2, once 31), an edge of the same write not
 * replaced (5006).
 */
const KEPT_SEEDS: readonly number[] = [2, 31, 5006];

test.each(KEPT_SEEDS)("an interleaving that found something once (seed %i)", async (seed) => {
  const { complaints, text } = await history(seed, LANES[0]!, { name: "kept" });
  expect(complaints, text).toEqual([]);
});

/**
 * Something as soon as a removal is not put above the edges that it ends (35), a birth ends edges made since (82), an
 * edge is not put above the removal of its target (232).
 */
test.each([35, 82, 232])("one of edges to an object that found something once (seed %i)", async (seed) => {
  const { complaints, text } = await history(seed, LANES[0]!, { name: "keptlink", plans: [LINKED] });
  expect(complaints, text).toEqual([]);
});

/** The store calls of all histories. */
async function runAll(count: number, options: HistoryOptions): Promise<number> {
  const seeds = Array.from({ length: count }, (_, at) => SEED + at);
  let storeCalls = 0;
  const run = async (lane: Lane): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const judgement = await history(seed, lane, options);
      expect(judgement.complaints, judgement.text).toEqual([]);
      storeCalls += judgement.storeCalls;
    }
  };
  await Promise.all(LANES.map(run));
  return storeCalls;
}

test("of two or three controllers that write one object in any interleaving, none loses what was answered with ok", {
  timeout: 300_000 * TIMES,
}, async () => {
  console.log(
    `interleavings: seeds ${SEED} to ${SEED + HISTORIES - 1} (ODP_TEST_SEED=… ODP_RACE_HISTORIES=1 replays one)`,
  );
  const storeCalls = await runAll(HISTORIES, {});
  const last = SEED + HISTORIES - 1;
  prove("controllers-lose-nothing", {
    engine: engine.kind,
    histories: HISTORIES,
    "store calls in seeded order": storeCalls,
    seeds: `${SEED}–${last}`,
  });
});

test("nor are edges to an object lost, or there again when it is made again, in any interleaving with its removal", {
  timeout: 300_000,
}, async () => {
  expect(await runAll(Math.ceil(HISTORIES / 20), { name: "linked", plans: [LINKED] })).toBeGreaterThan(0);
});

test("nor does one controller that is alone", { timeout: 300_000 }, async () => {
  expect(await runAll(Math.ceil(HISTORIES / 10), { name: "alone", alone: true })).toBeGreaterThan(0);
});

test("of many that add to one list in one controller each is kept, in their order", async () => {
  const { admin, path } = LANES[0]!;
  const service = new ObjectService({
    stores: engine,
    runtime: { ...testRuntime(realClock), random: seededRandom(SEED) },
  });
  await service.createClass(admin, { path: `${path}/listed`, columns: [{ name: "l", type: "list" }] });
  await service.unrestricted.insert(admin, `${path}/listed`, [{ id: "one" }]);
  const values = Array.from({ length: 30 }, (_, at) => at);
  await Promise.all(
    values.map((value) =>
      service.unrestricted.update(admin, { id: "listed:one" }, [{ column: "l", operation: "add", value: [value] }]),
    ),
  );
  expect((await service.unrestricted.get(admin, [{ id: "listed:one" }]))[0]?.values.l).toEqual(values);
  await service.close();
});
