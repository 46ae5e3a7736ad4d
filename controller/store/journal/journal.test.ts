import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, isAppError, type ErrorCode } from "../../../common/errors.ts";
import { KV_VALUE_MAX_BYTES, SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { AGED_CHANGES, TIMES } from "../../../test/helpers/time/times.ts";
import { Turns } from "../../../test/helpers/time/turns.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { uniqueName } from "../contract/harness.ts";
import type { Stores } from "../engine.ts";
import { faulty } from "../faulty.ts";
import { decodeStored } from "../format.ts";
import type { KvStore } from "../kv.ts";
import { Journal, type Versioned, type OpenWork } from "./index.ts";

/** A count that must reach `goal`; each step names its controller. Its end is recorded under `counts/<id>`. */
interface Count extends OpenWork {
  readonly tenant: string;
  readonly goal: number;
  readonly steps: readonly string[];
  readonly end?: { readonly by: string; readonly steps: readonly string[] };
}

let engine: TestEngine;
/** Key prefix of one test of this file. */
let prefix: string;

beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine[Symbol.asyncDispose]());

/** A clock whose waits end at once. */
const hasty: Clock = { ...realClock, after: (_delayMs, callback) => realClock.after(0, callback) };

interface ControllerOptions {
  readonly stores?: Stores;
  readonly clock?: Clock;
  /** The other controllers that are alive. */
  readonly sees?: () => readonly string[];
  readonly under?: string;
  readonly isRepeatable?: true;
}

function journalOf(own: string, options: ControllerOptions = {}) {
  const { stores = engine, clock = hasty, sees, under = prefix, isRepeatable } = options;
  return new Journal<Count>(
    {
      stores,
      runtime: { clock, random: seededRandom(1) },
      controllers: { own, has: (id) => id === own || (sees?.() ?? []).includes(id) },
    },
    {
      prefix: `${under}/open/`,
      ...(isRepeatable ? { isRepeatable } : {}),
      tenantOf: ({ tenant }) => tenant,
      beside: ({ id, owner }) => [{ kind: "put", key: `${under}/owner/${id}`, value: new TextEncoder().encode(owner) }],
    },
  );
}

const countOf = (id: string, more: Partial<Count> = {}) => ({ id, tenant: "matrix", goal: 3, steps: [], ...more });

function fresh(): void {
  prefix = uniqueName("journal");
}

async function openIn(journal: Journal<Count>, tenant = "matrix"): Promise<readonly Versioned<Count>[]> {
  const found: Versioned<Count>[] = [];
  for await (const one of journal.all(tenant)) found.push(one);
  return found;
}

async function abandonedIn(journal: Journal<Count>): Promise<readonly Versioned<Count>[]> {
  const found: Versioned<Count>[] = [];
  for await (const one of journal.abandoned("matrix")) found.push(one);
  return found;
}

function sure<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("lost");
  return value;
}

/** Stores with other key-value stores. */
const storesOf = (kvOf: (kv: KvStore) => KvStore, over?: Stores): Stores => ({
  system: () => engine.system(),
  tenant: async (name) => {
    const store = await (over ?? engine).tenant(name);
    return { ...store, kv: kvOf(store.kv) };
  },
});

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

/** Result of a write: an error code is thrown before it is made, `lost` loses its answer. */
type Fate = "lost" | ErrorCode;

/** Stores whose next writes have these results. */
function unlucky(over?: Stores) {
  let fates: Fate[] = [];
  const write = async <T>(make: () => Promise<T>): Promise<T> => {
    const fate = fates.shift();
    if (fate !== undefined && fate !== "lost") throw new AppError(fate, "not done");
    const answer = await make();
    if (fate === "lost") throw new AppError("unknown_outcome", "done, not told");
    return answer;
  };
  const stores = storesOf(
    (kv) =>
      wrappedKv(kv, {
        put: (...put) => write(() => kv.put(...put)),
        txn: (request) => write(() => kv.txn(request)),
        delete: (...gone) => write(() => kv.delete(...gone)),
      }),
    over,
  );
  return { stores, next: (...now: readonly Fate[]) => void (fates = [...now]) };
}

test.each<readonly Fate[]>([["lost"], ["unknown_outcome"], ["unavailable", "lost", "unavailable"], ["lost", "lost"]])(
  "every change is certain though it fares %s, %s, %s",
  async (...fates) => {
    fresh();
    const { stores, next } = unlucky();
    const [a, b] = [journalOf("a", { stores }), journalOf("b", { stores })];
    const begun = await a.begin(countOf("one"));
    next(...fates);
    const stepped = sure(await a.step(begun, { steps: ["a"] }));
    next(...fates);
    const taken = sure(await b.take(stepped));
    expect(await openIn(b)).toEqual([taken]);
    next(...fates);
    expect(await a.decide(stepped, { by: "a", steps: [] })).toBeUndefined();
    next(...fates);
    const decided = sure(await b.decide(taken, { by: "b", steps: ["a"] }));
    next(...fates);
    await b.end(decided.open);
    expect(await openIn(b)).toEqual([]);
  },
);

describe("a beginning", () => {
  const away = Array.from({ length: 20 }, (): Fate => "unavailable");

  test("whose answer is lost is looked for, also after the store was away", async () => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores });
    next("unavailable", "lost");
    const begun = await a.begin(countOf("one"));
    expect(await openIn(a)).toEqual([begun]);
  });

  test("that is not there, or not to be looked for, is not made again: it is told as unknown", async () => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores });
    next("unknown_outcome");
    await expect(a.begin(countOf("none"))).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await openIn(a)).toEqual([]);
    const blind = storesOf((kv) => wrappedKv(kv, { get: () => Promise.reject(new AppError("unavailable", "away")) }));
    const lost = unlucky(blind);
    lost.next("lost");
    await expect(journalOf("a", { stores: lost.stores }).begin(countOf("one"))).rejects.toMatchObject({
      code: "unknown_outcome",
    });
    const [found] = await abandonedIn(a);
    expect((await a.take(sure(found)))?.open).toMatchObject({ id: "one", attempt: 1 });
  });

  test.each<readonly Fate[]>([
    ["unknown_outcome"],
    ["lost"],
    ["unknown_outcome", "lost"],
    ["lost", "unavailable"],
    ["unavailable", "unknown_outcome", "unavailable"],
  ])("of work that may be done twice is certain though it fares %s, %s, %s", async (...fates) => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores, isRepeatable: true });
    next(...fates);
    const begun = await a.begin(countOf("one"));
    const repeated = fates.includes("unknown_outcome") && !fates.includes("lost");
    expect(begun.isRepeated).toBe(repeated ? true : undefined);
    expect(await openIn(a)).toEqual([{ open: begun.open, revision: begun.revision }]);
    expect((await a.step(begun, { steps: ["a"] }))?.open.steps).toEqual(["a"]);
  });

  test("of such work that another controller has meanwhile is left to it", async () => {
    fresh();
    const b = journalOf("b");
    const stores = storesOf((kv) =>
      wrappedKv(kv, {
        async txn(request) {
          const answer = await kv.txn(request);
          if (!answer.ok) return answer;
          for (const found of await abandonedIn(b)) await b.take(found);
          throw new AppError("unknown_outcome", "done, not told");
        },
      }),
    );
    const begun = journalOf("a", { stores, isRepeatable: true }).begin(countOf("one"));
    await expect(begun).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await openIn(b)).toMatchObject([{ open: { owner: "b", attempt: 1 } }]);
  });

  test("that the store is away for is not made, and told so", async () => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores });
    next(...away);
    await expect(a.begin(countOf("none"))).rejects.toMatchObject({ code: "unavailable" });
    next();
    expect(await openIn(a)).toEqual([]);
  });

  test("that another controller took and ended before this one could look is not begun again", async () => {
    fresh();
    const b = journalOf("b");
    const stores = storesOf((kv) =>
      wrappedKv(kv, {
        async txn(request) {
          await kv.txn(request);
          for (const found of await abandonedIn(b)) await b.end(sure(await b.take(found)).open);
          throw new AppError("unknown_outcome", "done, not told");
        },
      }),
    );
    await expect(journalOf("a", { stores }).begin(countOf("one"))).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await openIn(b)).toEqual([]);
  });
});

/** The work of a controller that has the count, the same on all. Ends with the count, or when the count was lost. */
async function carryOut(journal: Journal<Count>, by: string, { held, stores, told = [] }: Carried): Promise<void> {
  let now: Versioned<Count> | undefined = held;
  while (now && !now.open.end && now.open.steps.length < now.open.goal) {
    const step = `${by}${now.open.attempt}.${now.open.steps.length}`;
    now = await journal.step(now, { steps: [...now.open.steps, step] });
    if (now) told.push(step);
  }
  if (now && !now.open.end) now = await journal.decide(now, { by, steps: now.open.steps });
  if (!now?.open.end) return;
  const { kv } = await stores.tenant("matrix");
  const value = new TextEncoder().encode(JSON.stringify(now.open.end));
  // Every recorded end is kept, so that a second one would be seen.
  await kv.put(`${prefixOf(now.open)}/counts/${now.open.id}/${JSON.stringify(now.open.end)}`, value);
  await journal.end(now.open);
}

interface Carried {
  readonly held: Versioned<Count>;
  readonly stores: Stores;
  /** Steps that were reported as written. */
  readonly told?: string[];
}

const prefixOf = ({ id }: Count): string => id.slice(0, id.indexOf("!"));

async function recorded(id: string): Promise<readonly NonNullable<Count["end"]>[]> {
  const { kv } = await engine.tenant("matrix");
  const { entries } = await kv.list(`${id.slice(0, id.indexOf("!"))}/counts/${id}/`);
  return entries.map(({ value }) => JSON.parse(new TextDecoder().decode(value)) as NonNullable<Count["end"]>);
}

test.each([false, true])(
  "a controller that is killed at any of its writes (made: %s) leaves what another one brings to the one end",
  async (isWritten) => {
    let [deaths, lives] = [0, 0];
    for (let writes = 0; lives === 0; writes++) {
      fresh();
      const id = `${prefix}!one`;
      const mortality = new Mortality(writes, isWritten);
      const stores = storesOf((kv) => mortality.mortal(kv));
      const a = journalOf("a", { stores });
      const told: string[] = [];
      const work = a
        .begin(countOf(id))
        .then((held) => carryOut(a, "a", { held, stores, told }))
        .then(() => (lives += 1));
      await Promise.race([work, mortality.died]);
      deaths += 1 - lives;
      const b = journalOf("b");
      const wasBegun = writes > 0 || isWritten;
      for (const found of await abandonedIn(b))
        await carryOut(b, "b", { held: sure(await b.take(found)), stores: engine });
      const ends = await recorded(id);
      expect(ends, `write ${writes}`).toHaveLength(wasBegun ? 1 : 0);
      if (ends[0]) expect(ends[0].steps.slice(0, told.length), `write ${writes}`).toEqual(told);
      expect(await openIn(b), `write ${writes}`).toEqual([]);
    }
    // Begin, three steps, decide, record, end.
    expect(deaths).toBe(7);
  },
);

const HISTORIES = onCluster ? 20 : 100 * TIMES;

test(`any controllers that sleep, die for each other and have a failing store bring work to one end, with every step that was told (${HISTORIES} histories)`, async () => {
  const base = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
  console.log(`histories of a journal: seeds from ${base} (ODP_TEST_SEED=<seed> begins with that one)`);
  const seeds = Array.from({ length: HISTORIES }, (_, at) => base + at);
  const taken = await mapLimited(seeds, 16, history);
  expect(taken.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(HISTORIES / 4);
}, 240_000);

/** Returns the number of times the work was taken. */
async function history(seed: number): Promise<number> {
  const random = seededRandom(seed);
  const turns = new Turns(random);
  const under = `${uniqueName("history")}-${seed}`;
  const id = `${under}!one`;
  const bad = faulty(engine, { random, faultRate: 0.1 });
  const stores: Stores = {
    system: () => bad.system(),
    tenant: async (name) => {
      const store = await bad.tenant(name);
      const { kv } = store;
      const turn = <T>(call: () => Promise<T>) => turns.turn(call);
      return {
        ...store,
        kv: wrappedKv(kv, {
          get: (key) => turn(() => kv.get(key)),
          put: (...put) => turn(() => kv.put(...put)),
          txn: (request) => turn(() => kv.txn(request)),
          delete: (...gone) => turn(() => kv.delete(...gone)),
          list: (...list) => turn(() => kv.list(...list)),
        }),
      };
    },
  };
  const told: string[] = [];
  let takes = 0;
  const passing = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!isAppError(error, "unavailable", "unknown_outcome")) throw error;
    }
  };
  // Each controller sees the others only sometimes, as if leases came and went.
  const journals = ["a", "b", "c"].map((own) => ({
    own,
    journal: journalOf(own, { stores, under, sees: () => ["a", "b", "c"].filter(() => random.next() < 0.5) }),
  }));
  const maintain = async ({ own, journal }: (typeof journals)[number]): Promise<void> => {
    for await (const found of journal.abandoned("matrix")) {
      const mine = await journal.take(found);
      if (!mine) continue;
      takes += 1;
      await journal.inFlight.carry([mine.open.id], () => carryOut(journal, own, { held: mine, stores, told }));
    }
  };
  const failures: unknown[] = [];
  for (const [at, each] of journals.entries()) {
    turns.begin(async () => {
      try {
        if (at === 0) {
          await passing(async () => {
            const held = await each.journal.begin(countOf(id, { goal: 5 }));
            await each.journal.inFlight.carry([id], () => carryOut(each.journal, each.own, { held, stores, told }));
          });
        }
        for (let round = 0; round < 12; round++) await passing(() => maintain(each));
      } catch (error) {
        failures.push(error);
      }
    });
  }
  await turns.finished();
  expect(failures, `seed ${seed}`).toEqual([]);
  // The rest of the work, on a healthy store.
  const last = journalOf("last", { under });
  for (const found of await abandonedIn(last))
    await carryOut(last, "last", { held: sure(await last.take(found)), stores: engine });
  const ends = await recorded(id);
  expect(ends.length, `seed ${seed}`).toBeLessThanOrEqual(1);
  expect(await openIn(last), `seed ${seed}`).toEqual([]);
  if (ends.length === 0) expect(told, `seed ${seed}`).toEqual([]);
  else
    expect(
      ends[0]?.steps.filter((step) => told.includes(step)),
      `seed ${seed}`,
    ).toEqual(told);
  return takes;
}

const AGED = onCluster ? 1_000 : AGED_CHANGES;
const STEPS = 500;

test(`among ${AGED} entries and after many steps work is found, taken and ended as among few`, async () => {
  fresh();
  const [a, b] = [journalOf("a"), journalOf("b")];
  const ids = Array.from({ length: AGED }, (_, at) => `id-${String(at).padStart(6, "0")}`);
  await a.beginAll(ids.map((id) => countOf(id)));
  let held: Versioned<Count> | undefined = await a.begin(countOf("old", { goal: STEPS }));
  for (let step = 0; step < STEPS && held; step++) held = await a.step(held, { steps: [`a${step}`] });
  expect(held?.open.steps).toEqual([`a${STEPS - 1}`]);
  const found = await abandonedIn(b);
  expect(found.map(({ open }) => open.id)).toEqual([...ids, "old"]);
  await mapLimited(found.slice(0, -1), 64, async (each) => {
    const mine = sure(await b.take(each));
    await b.inFlight.carry([mine.open.id], () => b.end(mine.open));
  });
  expect(await openIn(b)).toEqual([held]);
  const { kv } = await engine.tenant("matrix");
  const entry = await kv.get(`${prefix}/open/old`);
  expect(decodeStored<Count>(sure(entry).value)).toEqual(held?.open);
  expect((await b.take(sure(held)))?.open.steps).toEqual([`a${STEPS - 1}`]);
}, 240_000);
