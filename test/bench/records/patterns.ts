import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { realClock, seededRandom } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { type Bench, type Figure, quantile } from "../driver/frame.ts";

/** Number of objects; a trial takes fewer. */
const OBJECTS = Number(process.env["ODP_BENCH_OBJECTS"] ?? 1_000_000);
const OBJECTS_PER_BATCH = 1_000;
/** Most objects share the words of a language. Each also has a unique word, such as a name or a case number. */
const VOCABULARY = 10_000;
const LOOKUPS = 100;
const LOOKUPS_OF_ENDS = 10;
const LOOKUP_MAX_MS = 50;
const CLASS = "/matrix/note";
const principal = testPrincipal();
const random = seededRandom(17);

/** Words by their beginning and by their end among a million objects on embedded, whose index is the list of words. */
export const patternsBench: Bench = {
  name: "patterns",
  async run() {
    const engine = await openTestEngine();
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    try {
      await query.run(principal, `create class ${CLASS} (n int, text text, keys(n)) with autosearch=true`);
      for (let from = 0; from < OBJECTS; from += OBJECTS_PER_BATCH)
        await objects.unrestricted.insert(principal, CLASS, rowsFrom(from));
      const own = (): string => ownWord(Math.floor(random.next() * OBJECTS));
      const beginnings = await lookupMs(query, LOOKUPS, () => `text match '${own().slice(0, -1)}*'`);
      const ends = await lookupMs(query, LOOKUPS_OF_ENDS, () => `text match '*${own().slice(2)}'`);
      // Computed values are in no index.
      const read = await lookupMs(query, 1, () => `lower(text) like '*${own().slice(2)}'`);
      return [most("word*", beginnings, LOOKUP_MAX_MS, "the limit"), most("*word", ends, read, "reading every object")];
    } finally {
      await objects.close();
      await engine[Symbol.asyncDispose]();
    }
  },
};

function rowsFrom(from: number): { readonly n: number; readonly text: string }[] {
  return Array.from({ length: OBJECTS_PER_BATCH }, (_, at) => {
    const n = from + at;
    const words = Array.from({ length: 4 }, () => `common${Math.floor(VOCABULARY ** random.next())}`);
    return { n, text: `${words.join(" ")} ${ownWord(n)}` };
  });
}

function ownWord(n: number): string {
  return `case${((n * 7_919) % 1_000_003).toString(36)}x${n.toString(36)}`;
}

/** The 95th percentile. */
async function lookupMs(query: QueryService, count: number, conditionOf: () => string): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const began = performance.now();
    const rows = await query.rows(principal, `select n from ${CLASS} where ${conditionOf()} limit -1`);
    times.push(performance.now() - began);
    if (rows.length === 0) throw new Error("the pattern finds nothing");
  }
  return quantile(times, 0.95);
}

function most(name: string, ours: number, against: number, againstName: string): Figure {
  return {
    name: `p95 of ${name} among ${OBJECTS} objects`,
    unit: "ms",
    ours,
    against,
    againstName,
    kind: "most",
    goal: 1,
  };
}
