import { describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { KV_VALUE_MAX_BYTES, SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import {
  engine,
  prefix,
  useJournal,
  journalOf,
  countOf,
  fresh,
  openIn,
  abandonedIn,
  sure,
  storesOf,
} from "../../../test/helpers/engines/journal-world.ts";

useJournal();

describe("an entry", () => {
  test("is there from the beginning of the work to its end, with what is written beside it, which stays", async () => {
    fresh();
    const a = journalOf("a");
    const begun = await a.begin(countOf("one"));
    expect(begun.open).toEqual({ ...countOf("one"), owner: "a", attempt: 0 });
    expect(await openIn(a)).toEqual([begun]);
    const stepped = sure(await a.step(begun, { steps: ["a"] }));
    const decided = sure(await a.decide(stepped, { by: "a", steps: ["a"] }));
    expect(await a.find("matrix", "one")).toEqual(decided);
    expect(decided.open).toMatchObject({ steps: ["a"], end: { by: "a" } });
    await a.end(decided.open);
    await a.end(decided.open);
    expect([await a.find("matrix", "one"), await openIn(a)]).toEqual([undefined, []]);
    const { kv } = await engine.tenant("matrix");
    expect(Buffer.from((await kv.get(`${prefix}/owner/one`))?.value ?? []).toString()).toBe("a");
  });

  test("belongs to its tenant", async () => {
    fresh();
    const a = journalOf("a");
    const mine = await a.begin(countOf("one"));
    const theirs = await a.begin(countOf("one", { tenant: "second" }));
    await a.end(theirs.open);
    expect([await openIn(a), await openIn(a, "second")]).toEqual([[mine], []]);
    await expect(a.begin(countOf("one", { tenant: "unknown" }))).rejects.toMatchObject({ code: "not_found" });
  });

  test("that was there before, or is too large, is not begun", async () => {
    fresh();
    const a = journalOf("a");
    const begun = await a.begin(countOf("one"));
    await expect(journalOf("b").begin(countOf("one"))).rejects.toMatchObject({ code: "internal" });
    const large = countOf("large", { steps: ["x".repeat(KV_VALUE_MAX_BYTES)] });
    await expect(a.beginAll([countOf("two"), large])).rejects.toMatchObject({ code: "too_large" });
    expect(await openIn(a)).toEqual([begun]);
  });

  test("of many that begin at once is there for each, and all can be gone on with", async () => {
    fresh();
    const a = journalOf("a");
    const ids = Array.from({ length: 250 }, (_, at) => `id-${String(at).padStart(4, "0")}`);
    const begun = await a.beginAll(ids.map((id) => countOf(id)));
    expect(begun.map(({ open }) => open.id)).toEqual(ids);
    const stepped = await mapLimited(begun, 8, (held) => a.step(held, { steps: ["a"] }));
    expect(await openIn(a)).toEqual(stepped);
  });
});

describe("of several controllers", () => {
  test("one has the work: it is abandoned when its owner's lease is over, and of all that take it one gets it", async () => {
    fresh();
    const held = await journalOf("a").begin(countOf("one"));
    expect(await abandonedIn(journalOf("b", { sees: () => ["a"] }))).toEqual([]);
    const others = ["b", "c", "d"].map((own) => journalOf(own));
    const found = await Promise.all(others.map(async (journal) => sure((await abandonedIn(journal))[0])));
    const taken = await Promise.all(others.map((journal, at) => journal.take(sure(found[at]))));
    const winners = taken.filter((one) => one !== undefined);
    expect(winners).toHaveLength(1);
    expect(winners[0]?.open).toMatchObject({ attempt: 1, steps: held.open.steps });
    expect(await openIn(sure(others[0]))).toEqual(winners);
  });

  test("the one that slept and was overtaken changes nothing any more", async () => {
    fresh();
    const [a, b] = [journalOf("a"), journalOf("b")];
    const slept = sure(await a.step(await a.begin(countOf("one")), { steps: ["a"] }));
    const taken = sure(await b.take(slept));
    expect(taken.open.steps).toEqual(["a"]);
    expect([await a.step(slept, { steps: [] }), await a.decide(slept, { by: "a", steps: [] })]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await openIn(a)).toEqual([taken]);
    await b.end(sure(await b.decide(taken, { by: "b", steps: ["a"] })).open);
    expect([await a.step(slept, { steps: [] }), await a.take(slept), await openIn(a)]).toEqual([
      undefined,
      undefined,
      [],
    ]);
  });

  test("one decides; what was decided stays for who takes it then", async () => {
    fresh();
    const [a, b] = [journalOf("a"), journalOf("b")];
    const held = await a.begin(countOf("one"));
    const [mine, theirs] = await Promise.all([
      a.decide(held, { by: "a", steps: [] }),
      b.decide(held, { by: "b", steps: [] }),
    ]);
    expect([mine, theirs].filter(Boolean)).toHaveLength(1);
    const decided = sure(mine ?? theirs);
    for (const journal of [a, b]) {
      expect(await journal.decide(decided, { by: "late", steps: [] })).toBeUndefined();
      expect(await journal.step(decided, { steps: ["late"] })).toBeUndefined();
    }
    const taken = sure(await b.take(decided));
    expect(taken.open.end).toEqual(decided.open.end);
    expect(await b.decide(taken, { by: "late", steps: [] })).toBeUndefined();
  });
});

describe("in one process", () => {
  test("work is taken once, also by two callers at the same time, and again when it is let go of undone", async () => {
    fresh();
    const b = journalOf("b");
    const found = await journalOf("a").begin(countOf("one"));
    const [first, second] = await Promise.all([b.take(found), b.take(found)]);
    expect([first, second].filter(Boolean)).toHaveLength(1);
    const mine = sure(first ?? second);
    expect(await abandonedIn(b)).toEqual([]);
    await expect(b.inFlight.carry(["one"], () => Promise.reject(new Error("broke off")))).rejects.toThrow("broke off");
    expect(await abandonedIn(b)).toEqual([mine]);
    expect((await b.take(mine))?.open.attempt).toBe(2);
  });

  test("a take that fails or loses holds nothing", async () => {
    fresh();
    const found = await journalOf("a").begin(countOf("one"));
    let isAway = true;
    const stores = storesOf((kv) =>
      wrappedKv(kv, {
        txn: (request) => (isAway ? Promise.reject(new AppError("unavailable", "away")) : kv.txn(request)),
      }),
    );
    const b = journalOf("b", { stores });
    await expect(b.take(found)).rejects.toMatchObject({ code: "unavailable" });
    isAway = false;
    const now = sure(await journalOf("c").take(found));
    expect(await b.take(found)).toBeUndefined();
    expect((await b.take(now))?.open.owner).toBe("b");
  });

  test("an orderly stop takes nothing more, has what is carried come to rest, and leaves it to the next", async () => {
    fresh();
    const a = journalOf("a");
    const [one, two] = await a.beginAll([countOf("one"), countOf("two")]);
    const carried = a.inFlight.carry(["one"], async () => {
      await new Promise<void>((resolve) => a.inFlight.stopping.addEventListener("abort", () => resolve()));
      return a.step(sure(one), { steps: ["resting"] });
    });
    await a.inFlight.close();
    const rested = sure(await carried);
    expect([await a.take(sure(two)), await abandonedIn(a)]).toEqual([undefined, []]);
    const next = journalOf("next");
    expect(await abandonedIn(next)).toEqual([rested, two]);
    expect((await next.take(rested))?.open.steps).toEqual(["resting"]);
  });

  test("an orderly stop waits for work that does not rest no longer than its deadline", async () => {
    fresh();
    const clock = new TestClock();
    const { inFlight } = journalOf("a", { clock });
    void inFlight.carry(["one"], () => new Promise(() => undefined));
    const closed = inFlight.close();
    clock.advance(SHUTDOWN_WORK_MS);
    await closed;
    expect(inFlight.has("one")).toBe(true);
  });
});
