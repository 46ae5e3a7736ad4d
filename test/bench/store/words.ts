import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import { Cassandra } from "../../../controller/store/cluster/cassandra/cassandra.ts";
import { CassandraObjectStore } from "../../../controller/store/cluster/objects.ts";
import { keyspaceOf } from "../../../controller/store/cluster/schema.ts";
import type { ObjectStore } from "../../../controller/store/objects.ts";
import { realClock, seededRandom } from "../../helpers/time/clock.ts";
import { testRuntime } from "../../helpers/time/runtime.ts";
import { withCluster } from "../driver/cluster.ts";
import { inTurns, perSecond, quantile, type Bench, type Figure } from "../driver/frame.ts";

const ROWS_PER_ROUND = Number(process.env["ODP_BENCH_OBJECTS"] ?? 3_000);
const AT_ONCE = 64;
const VOCABULARY = 10_000;
const WORDS_PER_OBJECT = 8;
const WORDS_PER_BATCH = 500;
const LOOKUPS = 200;
const LOOKUP_MAX_MS = 50;
const CID = 7;
const random = seededRandom(17);

/** The list of words on Cassandra: inserts with it beside inserts without, and lookups of words. */
export const wordsBench: Bench = {
  name: "words",
  run: () =>
    withCluster(async ({ etcdEndpoints, cassandraContactPoints, cassandraDatacenter }) => {
      const prefix = `bench${process.pid}`;
      const runtime = testRuntime(realClock);
      const cluster = { etcdEndpoints, cassandraContactPoints, cassandraDatacenter };
      const engine = await openClusterEngine({ ...cluster, prefix, runtime });
      const nodes = { contactPoints: cassandraContactPoints, datacenter: cassandraDatacenter };
      const cassandra = await Cassandra.connect({ ...nodes, runtime });
      try {
        await engine.createTenant("matrix");
        const { objects } = await engine.tenant("matrix");
        const without = new CassandraObjectStore({ cassandra, keyspace: keyspaceOf(prefix, "matrix") });
        await vocabulary(objects);
        return [
          await putFigure("no new words", { objects, without }, () => []),
          await putFigure("one new word each", { objects, without }, (n) => [`wfresh${n.toString(36)}`]),
          await lookupFigure(objects, "word*", () => `w${word().slice(0, 4)}`),
        ];
      } finally {
        await engine.dropTenant("matrix");
        await cassandra.close();
        await engine.close();
      }
    }),
};

/** Stores all known words, so that the only new words are those that a round adds. */
async function vocabulary(objects: ObjectStore): Promise<void> {
  for (let from = 1; from <= VOCABULARY; from += WORDS_PER_BATCH) {
    const addTerms = Array.from({ length: WORDS_PER_BATCH }, (_, at) => `w${wordOf(from + at)}`);
    await objects.change([
      { key: { cid: CID, id: `words-${from}` }, timeUs: Date.now() * 1_000, birth: true, addTerms },
    ]);
  }
}

/** A random word. Few words are frequent, most are rare. */
function word(): string {
  return wordOf(Math.floor(VOCABULARY ** random.next()));
}

function wordOf(rank: number): string {
  return `${((rank * 7_919) % 46_656).toString(36).padStart(3, "x")}${rank}`;
}

async function putFigure(
  name: string,
  { objects, without }: { readonly objects: ObjectStore; readonly without: ObjectStore },
  more: (n: number) => readonly string[],
): Promise<Figure> {
  let n = 0;
  const put = (store: ObjectStore) => () =>
    perSecond(ROWS_PER_ROUND, AT_ONCE, () => {
      n += 1;
      const words = Array.from({ length: WORDS_PER_OBJECT }, () => `w${word()}`);
      const addTerms = ["c7", "s7", `a1=host-${n % 1_000}`, ...new Set(words), ...more(n)];
      const cells = new Map([["1", Buffer.from(`host-${n % 1_000}`)]]);
      return store.change([
        { key: { cid: CID, id: `${name}-${n}` }, timeUs: Date.now() * 1_000, birth: true, cells, addTerms },
      ]);
    });
  const measured = await inTurns(put(objects), put(without));
  return {
    name: `put with ${WORDS_PER_OBJECT} words of ${VOCABULARY}, ${name}`,
    unit: "objects/s",
    ...measured,
    againstName: "the same without a list of words",
    kind: "ratio",
    goal: 1 / 1.15,
  };
}

async function lookupFigure(objects: ObjectStore, name: string, beginning: () => string): Promise<Figure> {
  const times: number[] = [];
  for (let at = 0; at < LOOKUPS; at += 1) {
    const began = performance.now();
    await objects.terms({ beginning: beginning() }, { limit: 1_000 });
    times.push(performance.now() - began);
  }
  return {
    name: `p95 of the words for ${name}`,
    unit: "ms",
    ours: quantile(times, 0.95),
    against: LOOKUP_MAX_MS,
    againstName: "the limit",
    kind: "most",
    goal: 1,
  };
}
