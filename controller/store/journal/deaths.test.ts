import { expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { isAppError } from "../../../common/errors.ts";
import { KV_PAGE_MAX_ENTRIES } from "../../../common/limits.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { AGED_CHANGES, TIMES } from "../../../test/helpers/time/times.ts";
import { Turns } from "../../../test/helpers/time/turns.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { uniqueName } from "../contract/harness.ts";
import type { Stores } from "../engine.ts";
import { faulty } from "../faulty.ts";
import { decodeStored } from "../format.ts";
import type { Journal, Versioned } from "./index.ts";
import {
  type Count,
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

const HISTORIES = onCluster ? 20 : 50 * TIMES;

/** More than one page of keys. */
const AGED = TIMES > 1 && !onCluster ? AGED_CHANGES : KV_PAGE_MAX_ENTRIES + 1;
const STEPS = 50 * Math.min(TIMES, 10);

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
