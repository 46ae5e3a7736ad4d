import { Installation } from "../../e2e/installation.ts";
import { Calls, succeeding } from "../http/calls.ts";
import { quantile, type Bench } from "../driver/frame.ts";

const OBJECTS = 100_000;
const LIST_ROWS = 1_000;
const CALLS = 400;
const MOST_MS = 60_000;

/** Renames a tag of many objects over HTTP, while a query is repeated. */
export const tagsBench: Bench = {
  name: "tags",
  async run() {
    const odp = await Installation.start({});
    const calls = new Calls({ port: odp.port, atOnce: 4 });
    const session = `sessionid=${await odp.session()}`;
    const mql = (body: object) => succeeding(calls.json(`/mxobject/mql?${session}`, body));
    const asked = async (): Promise<number> => {
      const from = performance.now();
      await mql({ mql: "select n from /matrix/bench/tagged where n = 7 limit 20" });
      return performance.now() - from;
    };
    const domain = `/tagdir/bench?${session}`;
    try {
      await mql({ mql: "create class /matrix/bench/tagged (n int, host varchar, keys(host), index(n))" });
      for (let from = 0; from < OBJECTS; from += LIST_ROWS) {
        const values = Array.from({ length: LIST_ROWS }, (_, at) => [from + at, `host-${from + at}`, ["old/web"]]);
        await mql({ mql: "insert into /matrix/bench/tagged (n, host, tags) values (?, ?, ?)", values });
      }
      await succeeding(calls.json(domain, { tagpath: "old/web" }));
      const alone: number[] = [];
      for (let n = 0; n < CALLS; n++) alone.push(await asked());
      let over = false;
      const startedMs = performance.now();
      const renamed = succeeding(calls.json(domain, { tagpath: "old", topath: "new" }, "PUT")).finally(
        () => (over = true),
      );
      const beside: number[] = [];
      while (!over) beside.push(await asked());
      await renamed;
      const tookMs = performance.now() - startedMs;
      return [
        {
          name: `rename of a tag on ${OBJECTS} objects`,
          unit: "ms",
          ours: tookMs,
          against: MOST_MS,
          againstName: "the most it may take",
          kind: "most",
          goal: 1,
        },
        {
          name: "p95 of a query beside it",
          unit: "ms",
          ours: quantile(beside, 0.95),
          against: 2 * quantile(alone, 0.95),
          againstName: "twice the p95 alone",
          kind: "most",
          goal: 1,
        },
      ];
    } finally {
      calls.close();
      await odp.stop();
    }
  },
};
