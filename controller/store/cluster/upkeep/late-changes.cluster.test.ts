import { Client, type types } from "cassandra-driver";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { CHANGE_BATCH_MAX, REWRITES_PER_SWEEP_BATCH, SWEEP_SETTLES_MS } from "../../../../common/limits.ts";
import { describeCluster } from "../../../../test/helpers/cluster/cluster.ts";
import { ALWAYS_SWEEPS, useSweptObject } from "../../../../test/helpers/cluster/swept-object.ts";
import { uniqueName } from "../../contract/harness.ts";

type Call = (this: Client, ...args: readonly unknown[]) => Promise<types.ResultSet>;

const HOUR_MS = 3_600_000;
/** Factor for the numbers of the short form; `npm run soak` sets it. */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
const TIMEOUT_MS = 120_000 * AGE;
const ENDS = 5_000 * AGE;

describeCluster("a sweep that meets a late change halfway", () => {
  const object = useSweptObject();
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

  test("has read the cells without it, and keeps it all the same", async () => {
    const bornUs = await object.bornAndSwept();
    before = () => object.store.change([object.change(bornUs + 1, { "5/late": "late", "5/a": undefined })]);
    await object.sweep();
    expect(before).toBeUndefined();
    expect(await object.values()).toEqual({ "5/late": "late", "7": "first" });
  });

  test("before it tells of itself, and reads the cells with it", async () => {
    const bornUs = object.nowUs();
    await object.store.change([object.change(bornUs, { "7": "first" }, { birth: true })]);
    meeting = {
      at: / SET swept = /,
      first: () => object.store.change([object.change(bornUs + 1, { "5/late": "late" })]),
    };
    await object.sweep();
    expect(meeting).toBeUndefined();
    expect(await object.sweptUs()).toBeGreaterThan(bornUs + 1);
    expect(await object.values()).toEqual({ "5/late": "late", "7": "first" });
  });

  test("just before that is written, which looks for sweeps afterwards", async () => {
    const bornUs = object.nowUs();
    await object.store.change([object.change(bornUs, { "7": "first" }, { birth: true })]);
    meeting = { at: / SET last = \?, attrs = attrs \+ \? /, first: () => object.sweep() };
    object.passedMs += HOUR_MS;
    await object.store.change([object.change(bornUs + 1, { "5/late": "late" })]);
    expect(meeting).toBeUndefined();
    expect(await object.values()).toEqual({ "5/late": "late", "7": "first" });
  });

  test("that cannot be kept in mind, and is not made", async () => {
    await object.bornAndSwept();
    const first = (): Promise<void> => Promise.reject(new AppError("unavailable", "It came to its end."));
    meeting = { at: /^INSERT INTO \S+\.removed_cells /, first };
    await expect(object.store.change([object.change(object.nowUs(), { "5/a": undefined })])).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(await object.values()).toEqual({ "5/a": "a", "7": "first" });
  });

  test("and takes seconds: what ends meanwhile does not come back, and nothing lasts longer", async () => {
    const [soonMs, lateMs] = [8_000, 1_000_000];
    const bornUs = object.nowUs();
    await object.store.change([object.change(bornUs, { "7": "first" }, { birth: true })]);
    await object.store.change([
      object.change(bornUs + 1, { "5/soon": "" }, { expiresAtMs: object.clock.nowMs() + soonMs }),
    ]);
    await object.store.change([
      object.change(bornUs + 2, { "5/then": "" }, { expiresAtMs: object.clock.nowMs() + lateMs }),
    ]);
    await object.sweep();
    expect(await object.values()).toEqual({ "5/soon": "", "5/then": "", "7": "first" });
    const first = (): Promise<void> => Promise.resolve(void (object.stalledMs += soonMs + 1_000));
    meeting = { at: /^SELECT name, time FROM \S+\.removed_cells /, first };
    await object.store.change([object.change(bornUs + 3, { "5/late": "late" })]);
    expect(meeting).toBeUndefined();
    expect(await object.values()).toEqual({ "5/late": "late", "5/then": "", "7": "first" });
    const longest = Number((await object.stored("collection_max(TTL(attrs)) AS longest"))?.longest);
    expect(longest).toBeLessThanOrEqual((lateMs - soonMs) / 1_000);
    expect(longest).toBeGreaterThan((lateMs - 10 * soonMs) / 1_000);
  });

  test(
    "of which thousands of elements end at different times, and is read whole all the while",
    async () => {
      object.chance = () => 1;
      await object.store.change([object.change(object.nowUs(), { "1": "stays" }, { birth: true })]);
      for (let n = 0; n < ENDS; n += CHANGE_BATCH_MAX)
        await object.store.change(
          Array.from({ length: CHANGE_BATCH_MAX }, (_, at) => {
            const expiresAtMs = object.clock.nowMs() + 30 * HOUR_MS + (n + at) * 1_000;
            return object.change(object.nowUs(), { [`5/e${n + at}`]: "" }, { expiresAtMs });
          }),
        );
      object.passedMs += SWEEP_SETTLES_MS + HOUR_MS;
      object.chance = ALWAYS_SWEEPS.next;
      await object.store.change([object.change(object.nowUs(), { "5/none": undefined })]);
      const firstUs = await object.sweptUs();
      expect(firstUs).toBeGreaterThan(0);
      const seen: number[] = [];
      const noted = prototype.batch;
      prototype.batch = async function (...args) {
        seen.push(Number((await object.stored("collection_count(attrs) AS count"))?.count));
        return noted.apply(this, [...args]);
      };
      try {
        await object.store.change([object.change(firstUs - 500 * HOUR_MS * 1_000, { "5/late": "" })]);
      } finally {
        prototype.batch = noted;
      }
      expect(await object.sweptUs()).toBeGreaterThan(firstUs);
      expect(seen.length).toBeGreaterThanOrEqual(ENDS / REWRITES_PER_SWEEP_BATCH);
      expect(Math.min(...seen)).toBeGreaterThanOrEqual(ENDS + 1);
      expect(Object.keys((await object.values())!)).toHaveLength(ENDS + 2);
    },
    TIMEOUT_MS,
  );

  test("that sweeps itself, and both late changes stay", async () => {
    const bornUs = await object.bornAndSwept();
    before = () => object.store.change([object.change(bornUs + 1, { "5/one": "1", "5/a": undefined })]);
    await object.store.change([object.change(bornUs + 2, { "5/two": "2" })]);
    expect(await object.values()).toEqual({ "5/one": "1", "5/two": "2", "7": "first" });
  });

  test("of its object's removal, and nothing of it comes back", async () => {
    const bornUs = await object.bornAndSwept();
    before = () => object.store.change([{ key: object.key, timeUs: bornUs + 20_000_000, death: true }]);
    await object.sweep();
    expect(await object.values()).toBeUndefined();
    await object.store.change([object.change(object.nowUs(), { "8": "next" }, { birth: true })]);
    expect(await object.values()).toMatchObject({ "8": "next" });
    expect(await object.values()).not.toHaveProperty("7");
  });

  test("and is cut off there: by what the late change was to take away it is still found", async () => {
    const term = uniqueName("a7=first");
    const ids = async (): Promise<readonly string[]> =>
      (await object.store.find({ terms: [term] }, { limit: 10 })).items.map(({ key: { id } }) => id);
    const bornUs = object.nowUs();
    await object.store.change([object.change(bornUs, { "7": "first" }, { birth: true, addTerms: [term] })]);
    await object.sweep();
    const late = object.change(bornUs + 1, { "7": "second" }, { dropTerms: [term] });
    before = () => Promise.reject(new AppError("unavailable", "It came to its end."));
    await expect(object.store.change([late])).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await object.values()).toMatchObject({ "7": "first" });
    expect(await ids()).toEqual([object.key.id]);
    await object.store.change([late]);
    expect(await object.values()).toMatchObject({ "7": "second" });
    expect(await ids()).toEqual([]);
  });

  test("and is cut off there: nothing is lost, and the late change is made when it is repeated", async () => {
    const bornUs = await object.bornAndSwept();
    const end = (): Promise<void> => Promise.reject(new AppError("unavailable", "It came to its end."));
    before = end;
    await object.sweep();
    expect(await object.values()).toEqual({ "5/a": "a", "7": "first" });
    const late = object.change(bornUs + 1, { "5/late": "late", "5/a": undefined });
    before = end;
    await expect(object.store.change([late])).rejects.toMatchObject({ code: "unknown_outcome" });
    await object.store.change([late]);
    expect(await object.values()).toEqual({ "5/late": "late", "7": "first" });
  });
});
