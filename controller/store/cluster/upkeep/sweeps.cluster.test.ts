import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CELL_MARKS_PER_SWEEP, CELL_MAX_BYTES, CHANGE_BATCH_MAX, SWEEP_SETTLES_MS } from "../../../../common/limits.ts";
import { keepWarnings } from "../../../../test/helpers/cluster/cassandra-warnings.ts";
import {
  describeCluster,
  openClusterSubject,
  openTestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { ALWAYS_SWEEPS, useSweptObject } from "../../../../test/helpers/cluster/swept-object.ts";
import { realClock, shiftedClock } from "../../../../test/helpers/time/clock.ts";
import type { ContractSubject } from "../../contract/harness.ts";
import { objectsModelTest } from "../../contract/objects/model.ts";

const HOUR_MS = 3_600_000;
const MODEL_CHANGES_AT_ONCE = 8;
/** Factor for the numbers of the short form; `npm run soak` sets it. */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
/** Far more than Cassandra warns of; fifty times as many are more than it reads. */
const ELEMENTS = 4_000 * AGE;
const TIMEOUT_MS = 120_000 * AGE;
const STEP_MS = 400;
const BATCH = 50;

describeCluster("sweeps of removed cells", () => {
  describe("with every one, of changes that are late and at once", () => {
    let subject: ContractSubject;
    beforeAll(async () => {
      const opened = await openClusterSubject({ random: ALWAYS_SWEEPS });
      subject = { ...opened, clock: shiftedClock(realClock, -HOUR_MS) };
    });
    afterAll(() => subject?.close());
    objectsModelTest("cluster, swept", () => subject, MODEL_CHANGES_AT_ONCE);
  });

  describe("of one object", () => {
    const object = useSweptObject();

    test(
      "a set whose elements come and go for hours is read without passing what left it",
      async () => {
        let turn = 0;
        object.chance = () => (turn = (turn + 1) % CELL_MARKS_PER_SWEEP) / CELL_MARKS_PER_SWEEP;
        const warnings = keepWarnings();
        try {
          for (let n = 0; n < ELEMENTS; n += BATCH) {
            const changes = Array.from({ length: BATCH }, (_, at) => {
              object.passedMs += STEP_MS;
              const cells = { [`5/e${n + at}`]: "", ...(n + at < 3 ? {} : { [`5/e${n + at - 3}`]: undefined }) };
              return object.change(object.nowUs(), cells, n + at === 0 ? { birth: true } : {});
            });
            await object.store.change(changes);
            expect(Object.keys((await object.values())!)).toHaveLength(3);
          }
          expect(Object.keys((await object.values())!).sort()).toEqual(
            [3, 2, 1].map((back) => `5/e${ELEMENTS - back}`),
          );
          expect(warnings.take()).toEqual([]);
        } finally {
          warnings.stop();
        }
      },
      TIMEOUT_MS,
    );

    test("what is written prompt is never swept, and what left long ago is", async () => {
      const bornUs = await object.bornAndSwept();
      expect(await object.values()).toEqual({ "5/a": "a", "7": "first" });
      expect(await object.sweptUs()).toBeLessThanOrEqual(object.nowUs() - SWEEP_SETTLES_MS * 1_000);
      const row = await object.stored("WRITETIME(attrs) AS times");
      const times = (row?.times as readonly bigint[]).map(Number);
      expect(times).toEqual([await object.sweptUs(), await object.sweptUs()]);
      expect((await object.store.get([object.key]))[0]!.cells.get("7")!.timeUs).toBe(bornUs);
    });

    test("an addition that is repeated late brings nothing back, and one that was never made is made", async () => {
      const bornUs = await object.bornAndSwept();
      await object.store.change([object.change(bornUs + 1, { "5/b": "b", "5/c": "c", "5/none": "d", "7": "second" })]);
      await object.store.change([object.change(bornUs, { "5/a": "a", "5/b": "b", "7": "first" }, { birth: true })]);
      expect(await object.values()).toEqual({ "5/a": "a", "5/c": "c", "7": "second" });
      await object.store.change([object.change(bornUs + 11_000_000, { "5/b": "again" })]);
      expect(await object.values()).toEqual({ "5/a": "a", "5/b": "again", "5/c": "c", "7": "second" });
    });

    test("a thousand late changes of one call are made together, whatever their order", async () => {
      const bornUs = await object.bornAndSwept();
      const changes = Array.from({ length: CHANGE_BATCH_MAX }, (_, at) =>
        object.change(bornUs + 1 + ((at * 7) % CHANGE_BATCH_MAX), {
          [`6/e${(at * 7) % CHANGE_BATCH_MAX}`]: "",
          ["7"]: String((at * 7) % CHANGE_BATCH_MAX),
          [`6/e${((at * 7) % CHANGE_BATCH_MAX) - 1}`]: undefined,
        }),
      );
      await object.store.change(changes);
      const last = CHANGE_BATCH_MAX - 1;
      expect(await object.values()).toEqual({ "5/a": "a", [`6/e${last}`]: "", "7": String(last) });
    });

    test("a removal that is late removes what is older than it alone", async () => {
      const bornUs = await object.bornAndSwept();
      await object.store.change([object.change(bornUs - 1, { "5/a": undefined, "7": undefined })]);
      expect(await object.values()).toEqual({ "5/a": "a", "7": "first" });
      await object.store.change([object.change(bornUs + 1, { "5/a": undefined })]);
      expect(await object.values()).toEqual({ "7": "first" });
      await object.store.change([object.change(bornUs, { "5/a": "a" })]);
      expect(await object.values()).toEqual({ "7": "first" });
    });

    test("the removal of an object that is late leaves nothing of the life it ended to the next one", async () => {
      const bornUs = await object.bornAndSwept();
      const diedUs = bornUs + 20_000_000;
      await object.store.change([object.change(diedUs + 1, { "8": "of the next" }, { birth: true })]);
      await object.store.change([{ key: object.key, timeUs: diedUs, death: true }]);
      expect(await object.values()).toEqual({ "8": "of the next" });
      expect([...((await object.stored("attrs"))?.attrs as ReadonlyMap<string, Buffer>).keys()]).toEqual(["8"]);
      await object.store.change([object.change(bornUs, { "5/a": "a", "7": "first" }, { birth: true })]);
      expect(await object.values()).toEqual({ "8": "of the next" });
    });

    test("a late change by a controller whose clock is behind is above the sweep that it meets", async () => {
      const bornUs = await object.bornAndSwept();
      await using other = await openTestClusterEngine({
        prefix: object.engine.prefix,
        tenants: [],
        clock: shiftedClock(object.clock, -30_000),
      });
      const { objects: behind } = await other.tenant("matrix");
      await behind.change([object.change(bornUs + 1, { "5/a": undefined, "5/late": "late" })]);
      expect(await object.values()).toEqual({ "5/late": "late", "7": "first" });
    });

    test("what was swept half a minute ago at most is left, however much leaves it", async () => {
      await object.bornAndSwept();
      const atUs = await object.sweptUs();
      object.passedMs += SWEEP_SETTLES_MS / 2 - 5_000;
      await object.store.change([object.change(object.nowUs(), { "5/none": undefined })]);
      expect(await object.sweptUs()).toBe(atUs);
      object.passedMs += 10_000;
      await object.store.change([object.change(object.nowUs(), { "5/none": undefined })]);
      expect(await object.sweptUs()).toBeGreaterThan(atUs);
    });

    test.each([
      ["few cells is swept", 500, true],
      ["many cells is not, by the same object.chance", 4_000, false],
    ] as const)("an object with %s", async (_, count, isSwept) => {
      const cells = Object.fromEntries(Array.from({ length: count }, (_, at) => [`5/e${at}`, ""]));
      await object.store.change([object.change(object.nowUs(), cells, { birth: true })]);
      object.passedMs += SWEEP_SETTLES_MS + 1;
      object.chance = () => 1 / 500;
      await object.store.change([object.change(object.nowUs(), { "5/e1": undefined })]);
      expect((await object.sweptUs()) > 0).toBe(isSwept);
    });

    test("an object of three megabytes is swept, which thousands of elements left at once", async () => {
      const large = "x".repeat(CELL_MAX_BYTES - 100);
      const elements = Array.from({ length: 20_000 }, (_, at) => `5/e${at}`);
      const born = Object.fromEntries(elements.map((name) => [name, ""]));
      await object.store.change([
        object.change(object.nowUs(), { "7": large, "8": large, "9": large, ...born }, { birth: true }),
      ]);
      object.passedMs += 1_000;
      await object.store.change([
        object.change(object.nowUs(), Object.fromEntries(elements.map((name) => [name, undefined]))),
      ]);
      object.passedMs += SWEEP_SETTLES_MS + 1_000;
      await object.store.change([object.change(object.nowUs(), { "5/none": undefined })]);
      const warnings = keepWarnings();
      try {
        expect(await object.values()).toEqual({ "7": large, "8": large, "9": large });
        expect(warnings.take()).toEqual([]);
      } finally {
        warnings.stop();
      }
    });

    test("what was to end ends when it would have", async () => {
      const expiresAtMs = object.clock.nowMs() + 30 * HOUR_MS;
      await object.store.change([object.change(object.nowUs(), { "5/a": "ends" }, { birth: true, expiresAtMs })]);
      await object.store.change([object.change(object.nowUs() + 1, { "7": "stays" })]);
      const longest = async (): Promise<number> =>
        Number((await object.stored("collection_max(TTL(attrs)) AS longest"))?.longest);
      const secondsBefore = await longest();
      object.passedMs += SWEEP_SETTLES_MS + 1;
      await object.store.change([object.change(object.nowUs(), { "5/none": undefined })]);
      expect(await object.sweptUs()).toBeGreaterThan(0);
      expect(Math.abs((await longest()) - secondsBefore)).toBeLessThanOrEqual(60);
      expect((await object.stored("TTL(attrs['7']) AS staying"))?.staying).toBeNull();
    });
  });
});
