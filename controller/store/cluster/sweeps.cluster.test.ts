import { Client, type types } from "cassandra-driver";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { CHANGE_BATCH_MAX, SWEEP_SETTLES_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { keepWarnings } from "../../../test/helpers/cassandra-warnings.ts";
import { realClock, shiftedClock } from "../../../test/helpers/clock.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openClusterSubject,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../test/helpers/cluster.ts";
import { bytes, text, uniqueName, type ContractSubject } from "../contract/harness.ts";
import { objectsModelTest } from "../contract/objects-model.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../objects.ts";
import { Cassandra } from "./cassandra.ts";
import { keyspaceOf } from "./schema.ts";

type Call = (this: Client, ...args: readonly unknown[]) => Promise<types.ResultSet>;

const HOUR_MS = 3_600_000;
const MODEL_CHANGES_AT_ONCE = 8;
/** How many times the numbers of the short form; `npm run soak` sets it. */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
/** More than Cassandra warns of by far; fifty times as many are more than it reads. */
const ELEMENTS = 4_000 * AGE;
const TIMEOUT_MS = 120_000 * AGE;
const STEP_MS = 400;
const BATCH = 50;

/** Chance that always strikes, for sweeps with every cell that is removed. */
const always = { next: () => 0, bytes: (count: number) => clusterRuntime.random.bytes(count) };

describeCluster("sweeps of removed cells", () => {
  describe("with every one, of changes that are late and at once", () => {
    let subject: ContractSubject;
    beforeAll(async () => {
      const opened = await openClusterSubject({ random: always });
      subject = { ...opened, clock: shiftedClock(realClock, -HOUR_MS) };
    });
    afterAll(() => subject?.close());
    objectsModelTest("cluster, swept", () => subject, MODEL_CHANGES_AT_ONCE);
  });

  describe("of one object", () => {
    let engine: TestClusterEngine;
    let objects: ObjectStore;
    let cassandra: Cassandra;
    let passedMs = 0;
    let strikes = true;
    let key: EntityKey;
    const clock: Clock = {
      ...realClock,
      nowMs: () => realClock.nowMs() + passedMs,
    };
    let turn = 0;
    const random = { ...always, next: () => (strikes ? 0 : (turn = (turn + 1) % 256) / 256) };

    beforeAll(async () => {
      engine = await openTestClusterEngine({ tenants: ["matrix"], clock, random });
      ({ objects } = await engine.tenant("matrix"));
      const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
      cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
    });
    afterAll(async () => {
      await cassandra?.close();
      await engine?.[Symbol.asyncDispose]();
    });
    beforeEach(() => {
      key = { cid: 1, id: uniqueName("swept") };
      strikes = true;
    });

    const nowUs = (): number => clock.nowMs() * 1_000;
    const change = (timeUs: number, cells: Record<string, string | undefined>, more: object = {}): EntityChange => ({
      key,
      timeUs,
      cells: new Map(
        Object.entries(cells).map(([name, value]) => [name, value === undefined ? undefined : bytes(value)]),
      ),
      ...more,
    });
    const valuesOf = async (): Promise<Readonly<Record<string, string>> | undefined> => {
      const [entity] = await objects.get([key]);
      if (entity === undefined) return undefined;
      const { cells } = entity;
      return Object.fromEntries(cells.keys.map((name) => [name, text(cells.get(name)!.value)]));
    };
    const stored = async (columns: string): Promise<types.Row | undefined> => {
      const query = `SELECT ${columns} FROM ${keyspaceOf(engine.prefix, "matrix")}.present WHERE cid = ? AND id = ?`;
      const [row] = await cassandra.read({ query, params: [key.cid, key.id] }, cassandra.deadline());
      return row;
    };
    const sweptUs = async (): Promise<number> => Number((await stored("swept"))?.swept ?? 0);

    /** Born at the time that is told, with `5/a`, `5/b` and `7`; `5/b` left ten seconds later; all of it is swept. */
    const swept = async (): Promise<number> => {
      const bornUs = nowUs();
      await objects.change([change(bornUs, { "5/a": "a", "5/b": "b", "7": "first" }, { birth: true })]);
      passedMs += 10_000;
      await objects.change([change(bornUs + 10_000_000, { "5/b": undefined })]);
      passedMs += SWEEP_SETTLES_MS + HOUR_MS;
      await objects.change([change(nowUs(), { "5/none": undefined })]);
      expect(await sweptUs()).toBeGreaterThan(bornUs + 10_000_000);
      return bornUs;
    };

    test(
      "a set whose elements come and go for hours is read without passing what left it",
      async () => {
        strikes = false;
        const warnings = keepWarnings();
        try {
          for (let n = 0; n < ELEMENTS; n += BATCH) {
            const changes = Array.from({ length: BATCH }, (_, at) => {
              passedMs += STEP_MS;
              const cells = { [`5/e${n + at}`]: "", ...(n + at < 3 ? {} : { [`5/e${n + at - 3}`]: undefined }) };
              return change(nowUs(), cells, n + at === 0 ? { birth: true } : {});
            });
            await objects.change(changes);
            expect(Object.keys((await valuesOf())!)).toHaveLength(3);
          }
          expect(Object.keys((await valuesOf())!).sort()).toEqual([3, 2, 1].map((back) => `5/e${ELEMENTS - back}`));
          expect(warnings.take()).toEqual([]);
        } finally {
          warnings.stop();
        }
      },
      TIMEOUT_MS,
    );

    test("what is written prompt is never swept, and what left long ago is", async () => {
      const bornUs = await swept();
      expect(await valuesOf()).toEqual({ "5/a": "a", "7": "first" });
      expect(await sweptUs()).toBeLessThanOrEqual(nowUs() - SWEEP_SETTLES_MS * 1_000);
      const row = await stored("WRITETIME(attrs) AS times");
      const times = (row?.times as readonly bigint[]).map(Number);
      expect(times).toEqual([await sweptUs(), await sweptUs()]);
      expect((await objects.get([key]))[0]!.cells.get("7")!.timeUs).toBe(bornUs);
    });

    test("an addition that is repeated late brings nothing back, and one that was never made is made", async () => {
      const bornUs = await swept();
      await objects.change([change(bornUs + 1, { "5/b": "b", "5/c": "c", "5/none": "d", "7": "second" })]);
      await objects.change([change(bornUs, { "5/a": "a", "5/b": "b", "7": "first" }, { birth: true })]);
      expect(await valuesOf()).toEqual({ "5/a": "a", "5/c": "c", "7": "second" });
      await objects.change([change(bornUs + 11_000_000, { "5/b": "again" })]);
      expect(await valuesOf()).toEqual({ "5/a": "a", "5/b": "again", "5/c": "c", "7": "second" });
    });

    test("a thousand late changes of one call are made together, whatever their order", async () => {
      const bornUs = await swept();
      const changes = Array.from({ length: CHANGE_BATCH_MAX }, (_, at) =>
        change(bornUs + 1 + ((at * 7) % CHANGE_BATCH_MAX), {
          [`6/e${(at * 7) % CHANGE_BATCH_MAX}`]: "",
          ["7"]: String((at * 7) % CHANGE_BATCH_MAX),
          [`6/e${((at * 7) % CHANGE_BATCH_MAX) - 1}`]: undefined,
        }),
      );
      await objects.change(changes);
      const last = CHANGE_BATCH_MAX - 1;
      expect(await valuesOf()).toEqual({ "5/a": "a", [`6/e${last}`]: "", "7": String(last) });
    });

    test("a removal that is late removes what is older than it alone", async () => {
      const bornUs = await swept();
      await objects.change([change(bornUs - 1, { "5/a": undefined, "7": undefined })]);
      expect(await valuesOf()).toEqual({ "5/a": "a", "7": "first" });
      await objects.change([change(bornUs + 1, { "5/a": undefined })]);
      expect(await valuesOf()).toEqual({ "7": "first" });
      await objects.change([change(bornUs, { "5/a": "a" })]);
      expect(await valuesOf()).toEqual({ "7": "first" });
    });

    test("the removal of an object that is late leaves nothing of the life it ended to the next one", async () => {
      const bornUs = await swept();
      const diedUs = bornUs + 20_000_000;
      await objects.change([change(diedUs + 1, { "8": "of the next" }, { birth: true })]);
      await objects.change([{ key, timeUs: diedUs, death: true }]);
      expect(await valuesOf()).toEqual({ "8": "of the next" });
      expect([...((await stored("attrs"))?.attrs as ReadonlyMap<string, Buffer>).keys()]).toEqual(["8"]);
      await objects.change([change(bornUs, { "5/a": "a", "7": "first" }, { birth: true })]);
      expect(await valuesOf()).toEqual({ "8": "of the next" });
    });

    test("a late change by a controller whose clock is behind is above the sweep that it meets", async () => {
      const bornUs = await swept();
      await using other = await openTestClusterEngine({
        prefix: engine.prefix,
        tenants: [],
        clock: shiftedClock(clock, -30_000),
      });
      const { objects: behind } = await other.tenant("matrix");
      await behind.change([change(bornUs + 1, { "5/a": undefined, "5/late": "late" })]);
      expect(await valuesOf()).toEqual({ "5/late": "late", "7": "first" });
    });

    test("what was to end ends when it would have", async () => {
      const expiresAtMs = clock.nowMs() + 30 * HOUR_MS;
      await objects.change([change(nowUs(), { "5/a": "ends" }, { birth: true, expiresAtMs })]);
      await objects.change([change(nowUs() + 1, { "7": "stays" })]);
      const secondsBefore = (await stored("TTL(attrs) AS ttls"))?.ttls as readonly (number | null)[];
      passedMs += SWEEP_SETTLES_MS + 1;
      await objects.change([change(nowUs(), { "5/none": undefined })]);
      expect(await sweptUs()).toBeGreaterThan(0);
      const [ending, staying] = (await stored("TTL(attrs) AS ttls"))?.ttls as readonly (number | null)[];
      expect(staying).toBeNull();
      expect(Math.abs(ending! - secondsBefore[0]!)).toBeLessThanOrEqual(60);
    });

    describe("that meets a late change halfway", () => {
      const prototype = Client.prototype as unknown as { batch: Call; execute: Call };
      const { batch, execute } = prototype;
      /** What happens before a sweep rewrites the cells, or tells that it will. */
      let before: (() => Promise<void>) | undefined;
      let beforeAnnouncement: (() => Promise<void>) | undefined;
      beforeAll(() => {
        prototype.batch = async function (...args) {
          const [statements] = args as [readonly { readonly query: string }[]];
          if (statements[0]!.query.startsWith("DELETE attrs ")) {
            const meeting = before;
            before = undefined;
            await meeting?.();
          }
          return batch.apply(this, [...args]);
        };
        prototype.execute = async function (...args) {
          if (/ SET swept = /.test(String(args[0]))) {
            const meeting = beforeAnnouncement;
            beforeAnnouncement = undefined;
            await meeting?.();
          }
          return execute.apply(this, [...args]);
        };
      });
      afterAll(() => void Object.assign(prototype, { batch, execute }));
      afterEach(() => void (before = beforeAnnouncement = undefined));

      const sweep = async (): Promise<void> => {
        passedMs += SWEEP_SETTLES_MS + HOUR_MS;
        await objects.change([change(nowUs(), { "5/none": undefined })]);
      };

      test("has read the cells without it, and keeps it all the same", async () => {
        const bornUs = await swept();
        before = () => objects.change([change(bornUs + 1, { "5/late": "late", "5/a": undefined })]);
        await sweep();
        expect(before).toBeUndefined();
        expect(await valuesOf()).toEqual({ "5/late": "late", "7": "first" });
      });

      test("before it tells of itself, and reads the cells with it", async () => {
        const bornUs = nowUs();
        await objects.change([change(bornUs, { "7": "first" }, { birth: true })]);
        beforeAnnouncement = () => objects.change([change(bornUs + 1, { "5/late": "late" })]);
        await sweep();
        expect(beforeAnnouncement).toBeUndefined();
        expect(await sweptUs()).toBeGreaterThan(bornUs + 1);
        expect(await valuesOf()).toEqual({ "5/late": "late", "7": "first" });
      });

      test("that sweeps itself, and both late changes stay", async () => {
        const bornUs = await swept();
        before = () => objects.change([change(bornUs + 1, { "5/one": "1", "5/a": undefined })]);
        await objects.change([change(bornUs + 2, { "5/two": "2" })]);
        expect(await valuesOf()).toEqual({ "5/one": "1", "5/two": "2", "7": "first" });
      });

      test("of its object's removal, and nothing of it comes back", async () => {
        const bornUs = await swept();
        before = () => objects.change([{ key, timeUs: bornUs + 20_000_000, death: true }]);
        await sweep();
        expect(await valuesOf()).toBeUndefined();
        await objects.change([change(nowUs(), { "8": "next" }, { birth: true })]);
        expect(await valuesOf()).toMatchObject({ "8": "next" });
        expect(await valuesOf()).not.toHaveProperty("7");
      });

      test("and is cut off there: by what the late change was to take away it is still found", async () => {
        const term = uniqueName("a7=first");
        const ids = async (): Promise<readonly string[]> =>
          (await objects.find({ terms: [term] }, { limit: 10 })).items.map(({ key: { id } }) => id);
        const bornUs = nowUs();
        await objects.change([change(bornUs, { "7": "first" }, { birth: true, addTerms: [term] })]);
        await sweep();
        const late = change(bornUs + 1, { "7": "second" }, { dropTerms: [term] });
        before = () => Promise.reject(new AppError("unavailable", "It came to its end."));
        await expect(objects.change([late])).rejects.toMatchObject({ code: "unknown_outcome" });
        expect(await valuesOf()).toMatchObject({ "7": "first" });
        expect(await ids()).toEqual([key.id]);
        await objects.change([late]);
        expect(await valuesOf()).toMatchObject({ "7": "second" });
        expect(await ids()).toEqual([]);
      });

      test("and is cut off there: nothing is lost, and the late change is made when it is repeated", async () => {
        const bornUs = await swept();
        const end = (): Promise<void> => Promise.reject(new AppError("unavailable", "It came to its end."));
        before = end;
        await sweep();
        expect(await valuesOf()).toEqual({ "5/a": "a", "7": "first" });
        const late = change(bornUs + 1, { "5/late": "late", "5/a": undefined });
        before = end;
        await expect(objects.change([late])).rejects.toMatchObject({ code: "unknown_outcome" });
        await objects.change([late]);
        expect(await valuesOf()).toEqual({ "5/late": "late", "7": "first" });
      });
    });
  });
});
