import { setTimeout as pause } from "node:timers/promises";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";
import { withCluster } from "../driver/cluster.ts";
import { median, perSecond, short, type Bench, type Figure } from "../driver/frame.ts";
import { FREQUENT, LayoutTables, type LaidObject, type Layout } from "./layout-tables.ts";

const NODES = process.env.ODP_BENCH_NODES === "3" ? 3 : 1;
/** Number of layouts that are compared, beginning with the engine's. */
const LAYOUTS = Number(process.env.ODP_BENCH_LAYOUTS ?? 3);
/** Number of objects that take and leave a value, that are removed, and that expire; also of words of one object. */
const AGE = Number(process.env.ODP_BENCH_AGE ?? 100_000);
const ROUNDS = 5;
const PUTS_PER_ROUND = 2_000;
const READS_PER_ROUND = 1_000;
const AT_ONCE = 64;
const READS_AT_ONCE = 16;
const READS_ALONE = 25;
const FOUND = 20;
/** Number of objects that keep a value which many others take and leave. */
const STAYING = 100;
const WORDS_PER_REWRITE = 800;
const TTL_SECONDS = 30;
const HOSTS = 1_000;
const VOCABULARY = 5_000;

/**
 * Possible places for the terms of values and words on Cassandra: inserts, reads, and reads after years of change, with
 * each layout by the bare driver, on one node or on a ring of three (`ODP_BENCH_NODES=3`).
 */
export const layoutsBench: Bench = {
  name: "layouts",
  run: () => withCluster((settings) => compared(settings), { nodes: NODES }),
};

/** Measurement of a layout. Higher rates and lower times are better. A failure counts as 0 a second or Infinity ms. */
interface Measure {
  readonly name: string;
  readonly unit: "objects/s" | "queries/s" | "ms";
  readonly of: (layout: Layout) => Promise<number>;
}

async function compared(settings: ClusterSettings): Promise<readonly Figure[]> {
  const tables = await LayoutTables.open(settings, AGE);
  const layouts = tables.layouts.slice(0, LAYOUTS);
  try {
    const figures: Figure[] = [];
    for (const measure of [...freshMeasures(), ...agedMeasures()]) {
      const [chosen = Number.NaN, ...others] = await valuesOf(measure, layouts);
      console.log(`  ${measure.name}: ${[chosen, ...others].map(short).join(", ")} ${measure.unit}`);
      for (const [at, against] of others.entries())
        figures.push({
          name: measure.name,
          unit: measure.unit,
          ours: chosen,
          against,
          againstName: layouts[at + 1]?.name ?? "",
          kind: "ratio",
          goal: 0,
        });
    }
    return figures;
  } finally {
    await tables.close();
  }
}

/** Medians of rounds in turns, after one round that is not counted. */
async function valuesOf({ of }: Measure, layouts: readonly Layout[]): Promise<readonly number[]> {
  const rounds: number[][] = layouts.map(() => []);
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const [at, layout] of layouts.entries()) {
      const value = await of(layout);
      if (round > 0) rounds[at]?.push(value);
    }
  return rounds.map(median);
}

function freshMeasures(): readonly Measure[] {
  const inserted = new Map<Layout, number>();
  const next = (layout: Layout): number => {
    const n = inserted.get(layout) ?? 0;
    inserted.set(layout, n + 1);
    return n;
  };
  let asked = 0;
  const reads = (layout: Layout, read: (layout: Layout, n: number) => Promise<number>): Promise<number> =>
    perSecond(READS_PER_ROUND, READS_AT_ONCE, () => read(layout, (asked += 7)));
  return [
    {
      name: "inserts with 3 values and 8 words",
      unit: "objects/s",
      of: (layout) => perSecond(PUTS_PER_ROUND, AT_ONCE, () => layout.put(ordinary(next(layout)))),
    },
    {
      name: `${FOUND} by a value`,
      unit: "queries/s",
      of: (layout) => reads(layout, (from, n) => from.byValue(`h${n % HOSTS}`, FOUND)),
    },
    {
      name: `${FOUND} by a word`,
      unit: "queries/s",
      of: (layout) => reads(layout, (from, n) => from.byWord(`w${n % VOCABULARY}`, FOUND)),
    },
  ];
}

/** Each measurement ages its own objects before its first round. */
function agedMeasures(): readonly Measure[] {
  return [
    aged({
      name: `an object by its id after ${AGE.toLocaleString("en")} words came and went`,
      age: rewriteWords,
      read: (layout) => layout.get("aged"),
    }),
    aged({ name: "the same by its value", age: nothing, read: (layout) => layout.byValue("haged", FOUND) }),
    aged({
      name: `${FOUND} of ${STAYING} with a value that ${AGE.toLocaleString("en")} took and left`,
      age: (layout) =>
        comeAndGo("left", async (object, stays) => {
          await layout.put(object);
          if (!stays) await layout.put({ ...object, values: [`${FREQUENT}done`] }, { before: object });
        }),
      read: (layout) => layout.byValue(`${FREQUENT}left`, FOUND),
    }),
    aged({
      name: `${FOUND} of ${STAYING} with a value of which ${AGE.toLocaleString("en")} were removed`,
      age: (layout) =>
        comeAndGo("removed", async (object, stays) => {
          await layout.put(object);
          if (!stays) await layout.remove(object);
        }),
      read: (layout) => layout.byValue(`${FREQUENT}removed`, FOUND),
    }),
    aged({
      name: `${FOUND} of ${STAYING} with a value of which ${AGE.toLocaleString("en")} expired`,
      age: async (layout) => {
        await comeAndGo("expired", (object, stays) => layout.put(object, stays ? {} : { ttl: TTL_SECONDS }));
        await pause((TTL_SECONDS + 1) * 1_000);
      },
      read: (layout) => layout.byValue(`${FREQUENT}expired`, FOUND),
    }),
  ];
}

interface Aged {
  readonly name: string;
  readonly age: (layout: Layout) => Promise<void>;
  readonly read: (layout: Layout) => Promise<number>;
}

function aged({ name, age, read }: Aged): Measure {
  const old = new Set<Layout>();
  return {
    name,
    unit: "ms",
    of: async (layout) => {
      if (!old.has(layout)) {
        old.add(layout);
        await age(layout);
      }
      return medianMs(layout, read);
    },
  };
}

/** Infinity if the store refuses. */
async function medianMs(layout: Layout, read: (layout: Layout) => Promise<number>): Promise<number> {
  const times: number[] = [];
  try {
    for (let n = 0; n < READS_ALONE; n += 1) {
      const began = performance.now();
      if ((await read(layout)) === 0) throw new Error("nothing was found");
      times.push(performance.now() - began);
    }
  } catch (error) {
    console.log(`  ${layout.name}: ${error instanceof Error ? error.message : String(error)}`);
    return Infinity;
  }
  return median(times);
}

function ordinary(n: number): LaidObject {
  const words = Array.from({ length: 8 }, (_, at) => `w${(n * 31 + at * 977) % VOCABULARY}`);
  return { id: `object-${n}`, values: [`h${n % HOSTS}`, `s${n % 5}`, `t${n % 20}`], words: [...new Set(words)] };
}

async function rewriteWords(layout: Layout): Promise<void> {
  const object = (n: number): LaidObject => ({
    id: "aged",
    values: ["haged"],
    words: Array.from({ length: WORDS_PER_REWRITE }, (_, at) => `wx${n}-${at}`),
  });
  for (let n = 0; n * WORDS_PER_REWRITE <= AGE; n += 1)
    await layout.put(object(n), n === 0 ? {} : { before: object(n - 1) });
}

async function comeAndGo(value: string, each: (object: LaidObject, stays: boolean) => Promise<void>): Promise<void> {
  const every = Math.max(1, Math.floor(AGE / STAYING));
  await perSecond(AGE, AT_ONCE, (n) =>
    each({ id: `${value}-${n}`, values: [`${FREQUENT}${value}`], words: [] }, n % every === 0),
  );
}

async function nothing(): Promise<void> {
  // Aged by the measurement before.
}
