import { Client, type types } from "cassandra-driver";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import {
  CELL_MARKS_PER_SWEEP,
  CELL_MAX_BYTES,
  CHANGE_BATCH_MAX,
  REWRITES_PER_SWEEP_BATCH,
  SWEEP_SETTLES_MS,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { keepWarnings } from "../../../../test/helpers/cluster/cassandra-warnings.ts";
import { realClock, shiftedClock } from "../../../../test/helpers/time/clock.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openClusterSubject,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { bytes, text, uniqueName, type ContractSubject } from "../../contract/harness.ts";
import { objectsModelTest } from "../../contract/objects/model.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { keyspaceOf } from "../schema.ts";

type Call = (this: Client, ...args: readonly unknown[]) => Promise<types.ResultSet>;

const HOUR_MS = 3_600_000;
const MODEL_CHANGES_AT_ONCE = 8;
/** Factor for the numbers of the short form; `npm run soak` sets it. */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
/** Far more than Cassandra warns of; fifty times as many are more than it reads. */
const ELEMENTS = 4_000 * AGE;
const TIMEOUT_MS = 120_000 * AGE;
const ENDS = 5_000 * AGE;
const STEP_MS = 400;
const BATCH = 50;

/** A random source that always chooses a sweep, so that every removed cell causes one. */
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
    let stalledMs = 0;
    let chance = always.next;
    let key: EntityKey;
    const clock: Clock = {
      ...realClock,
      nowMs: () => realClock.nowMs() + passedMs,
      monotonicMs: () => realClock.monotonicMs() + stalledMs,
    };
    const random = { ...always, next: () => chance() };

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
      chance = always.next;
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

    /** Born at the returned time with `5/a`, `5/b` and `7`; `5/b` is removed ten seconds later; everything is swept. */
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
        let turn = 0;
        chance = () => (turn = (turn + 1) % CELL_MARKS_PER_SWEEP) / CELL_MARKS_PER_SWEEP;
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

    test("what was swept half a minute ago at most is left, however much leaves it", async () => {
      await swept();
      const atUs = await sweptUs();
      passedMs += SWEEP_SETTLES_MS / 2 - 5_000;
      await objects.change([change(nowUs(), { "5/none": undefined })]);
      expect(await sweptUs()).toBe(atUs);
      passedMs += 10_000;
      await objects.change([change(nowUs(), { "5/none": undefined })]);
      expect(await sweptUs()).toBeGreaterThan(atUs);
    });

    test.each([
      ["few cells is swept", 500, true],
      ["many cells is not, by the same chance", 4_000, false],
    ] as const)("an object with %s", async (_, count, isSwept) => {
      const cells = Object.fromEntries(Array.from({ length: count }, (_, at) => [`5/e${at}`, ""]));
      await objects.change([change(nowUs(), cells, { birth: true })]);
      passedMs += SWEEP_SETTLES_MS + 1;
      chance = () => 1 / 500;
      await objects.change([change(nowUs(), { "5/e1": undefined })]);
      expect((await sweptUs()) > 0).toBe(isSwept);
    });

    test("an object of three megabytes is swept, which thousands of elements left at once", async () => {
      const large = "x".repeat(CELL_MAX_BYTES - 100);
      const elements = Array.from({ length: 20_000 }, (_, at) => `5/e${at}`);
      const born = Object.fromEntries(elements.map((name) => [name, ""]));
      await objects.change([change(nowUs(), { "7": large, "8": large, "9": large, ...born }, { birth: true })]);
      passedMs += 1_000;
      await objects.change([change(nowUs(), Object.fromEntries(elements.map((name) => [name, undefined])))]);
      passedMs += SWEEP_SETTLES_MS + 1_000;
      await objects.change([change(nowUs(), { "5/none": undefined })]);
      const warnings = keepWarnings();
      try {
        expect(await valuesOf()).toEqual({ "7": large, "8": large, "9": large });
        expect(warnings.take()).toEqual([]);
      } finally {
        warnings.stop();
      }
    });

    test("what was to end ends when it would have", async () => {
      const expiresAtMs = clock.nowMs() + 30 * HOUR_MS;
      await objects.change([change(nowUs(), { "5/a": "ends" }, { birth: true, expiresAtMs })]);
      await objects.change([change(nowUs() + 1, { "7": "stays" })]);
      const longest = async (): Promise<number> =>
        Number((await stored("collection_max(TTL(attrs)) AS longest"))?.longest);
      const secondsBefore = await longest();
      passedMs += SWEEP_SETTLES_MS + 1;
      await objects.change([change(nowUs(), { "5/none": undefined })]);
      expect(await sweptUs()).toBeGreaterThan(0);
      expect(Math.abs((await longest()) - secondsBefore)).toBeLessThanOrEqual(60);
      expect((await stored("TTL(attrs['7']) AS staying"))?.staying).toBeNull();
    });

    describe("that meets a late change halfway", () => {
      const prototype = Client.prototype as unknown as { batch: Call; execute: Call };
      const { batch, execute } = prototype;
      /** Runs before a sweep rewrites the cells. */
      let before: (() => Promise<void>) | undefined;
      /** Runs before the next statement that matches. */
      let meeting: { readonly at: RegExp; readonly first: () => Promise<void> } | undefined;
      beforeAll(() => {
        prototype.batch = async function (...args) {
          const [statements] = args as [readonly { readonly query: string }[]];
          if (statements[0]!.query.startsWith("DELETE attrs ")) {
            const first = before;
            before = undefined;
            await first?.();
          }
          return batch.apply(this, [...args]);
        };
        prototype.execute = async function (...args) {
          if (meeting?.at.test(String(args[0]))) {
            const { first } = meeting;
            meeting = undefined;
            await first();
          }
          return execute.apply(this, [...args]);
        };
      });
      afterAll(() => void Object.assign(prototype, { batch, execute }));
      afterEach(() => void (before = meeting = undefined));

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
        meeting = { at: / SET swept = /, first: () => objects.change([change(bornUs + 1, { "5/late": "late" })]) };
        await sweep();
        expect(meeting).toBeUndefined();
        expect(await sweptUs()).toBeGreaterThan(bornUs + 1);
        expect(await valuesOf()).toEqual({ "5/late": "late", "7": "first" });
      });

      test("just before that is written, which looks for sweeps afterwards", async () => {
        const bornUs = nowUs();
        await objects.change([change(bornUs, { "7": "first" }, { birth: true })]);
        meeting = { at: / SET last = \?, attrs = attrs \+ \? /, first: sweep };
        passedMs += HOUR_MS;
        await objects.change([change(bornUs + 1, { "5/late": "late" })]);
        expect(meeting).toBeUndefined();
        expect(await valuesOf()).toEqual({ "5/late": "late", "7": "first" });
      });

      test("that cannot be kept in mind, and is not made", async () => {
        await swept();
        const first = (): Promise<void> => Promise.reject(new AppError("unavailable", "It came to its end."));
        meeting = { at: /^INSERT INTO \S+\.removed_cells /, first };
        await expect(objects.change([change(nowUs(), { "5/a": undefined })])).rejects.toMatchObject({
          code: "unavailable",
        });
        expect(await valuesOf()).toEqual({ "5/a": "a", "7": "first" });
      });

      test("and takes seconds: what ends meanwhile does not come back, and nothing lasts longer", async () => {
        const [soonMs, lateMs] = [8_000, 1_000_000];
        const bornUs = nowUs();
        await objects.change([change(bornUs, { "7": "first" }, { birth: true })]);
        await objects.change([change(bornUs + 1, { "5/soon": "" }, { expiresAtMs: clock.nowMs() + soonMs })]);
        await objects.change([change(bornUs + 2, { "5/then": "" }, { expiresAtMs: clock.nowMs() + lateMs })]);
        await sweep();
        expect(await valuesOf()).toEqual({ "5/soon": "", "5/then": "", "7": "first" });
        const first = (): Promise<void> => Promise.resolve(void (stalledMs += soonMs + 1_000));
        meeting = { at: /^SELECT name, time FROM \S+\.removed_cells /, first };
        await objects.change([change(bornUs + 3, { "5/late": "late" })]);
        expect(meeting).toBeUndefined();
        expect(await valuesOf()).toEqual({ "5/late": "late", "5/then": "", "7": "first" });
        const longest = Number((await stored("collection_max(TTL(attrs)) AS longest"))?.longest);
        expect(longest).toBeLessThanOrEqual((lateMs - soonMs) / 1_000);
        expect(longest).toBeGreaterThan((lateMs - 10 * soonMs) / 1_000);
      });

      test(
        "of which thousands of elements end at different times, and is read whole all the while",
        async () => {
          chance = () => 1;
          await objects.change([change(nowUs(), { "1": "stays" }, { birth: true })]);
          for (let n = 0; n < ENDS; n += CHANGE_BATCH_MAX)
            await objects.change(
              Array.from({ length: CHANGE_BATCH_MAX }, (_, at) => {
                const expiresAtMs = clock.nowMs() + 30 * HOUR_MS + (n + at) * 1_000;
                return change(nowUs(), { [`5/e${n + at}`]: "" }, { expiresAtMs });
              }),
            );
          passedMs += SWEEP_SETTLES_MS + HOUR_MS;
          chance = always.next;
          await objects.change([change(nowUs(), { "5/none": undefined })]);
          const firstUs = await sweptUs();
          expect(firstUs).toBeGreaterThan(0);
          const seen: number[] = [];
          const noted = prototype.batch;
          prototype.batch = async function (...args) {
            seen.push(Number((await stored("collection_count(attrs) AS count"))?.count));
            return noted.apply(this, [...args]);
          };
          try {
            await objects.change([change(firstUs - 500 * HOUR_MS * 1_000, { "5/late": "" })]);
          } finally {
            prototype.batch = noted;
          }
          expect(await sweptUs()).toBeGreaterThan(firstUs);
          expect(seen.length).toBeGreaterThanOrEqual(ENDS / REWRITES_PER_SWEEP_BATCH);
          expect(Math.min(...seen)).toBeGreaterThanOrEqual(ENDS + 1);
          expect(Object.keys((await valuesOf())!)).toHaveLength(ENDS + 2);
        },
        TIMEOUT_MS,
      );

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
