import { Installation } from "../../e2e/installation.ts";
import { Calls, type Reply } from "./calls.ts";
import { quantile, type Bench, type Figure } from "../driver/frame.ts";

const CALLS = 400;
const FLOODERS = 300;
const ROWS = 2_000;

/** Time of one tenant's calls while another one does its worst, beside the same calls alone. */
export const neighboursBench: Bench = {
  name: "neighbours",
  async run() {
    const odp = await Installation.start({});
    try {
      await odp.controller.kill("SIGTERM");
      await odp.startController({ ODP_TENANT: "other" });
      const [mine, other] = [await odp.session(), await odp.signIn("other")];
      await fill(odp, mine, "/matrix/bench/row");
      await fill(odp, other, "/other/bench/row");
      const call = selecting(mine, "select n from /matrix/bench/row where n = 7 limit 20");
      await p95(odp, call);
      return [
        await beside(odp, "cheap calls", {
          mine: call,
          theirs: selecting(other, "select n from /other/bench/row where n = 7 limit 20"),
        }),
        await beside(odp, "scans", {
          mine: call,
          theirs: selecting(other, "select count(*) from /other/bench/row where text like '%x%'"),
        }),
      ];
    } finally {
      await odp.stop();
    }
  },
};

type Call = (calls: Calls) => Promise<Reply>;

async function beside(
  odp: Installation,
  what: string,
  { mine, theirs }: { readonly mine: Call; readonly theirs: Call },
): Promise<Figure> {
  const alone = await p95(odp, mine);
  const flood = new Calls({ port: odp.port, atOnce: FLOODERS });
  let over = false;
  const flooding = Array.from({ length: FLOODERS }, async () => {
    while (!over) await theirs(flood);
  });
  const flooded = await p95(odp, mine).finally(() => (over = true));
  await Promise.all(flooding);
  flood.close();
  return {
    name: `p95 of a call while another tenant has ${FLOODERS} ${what} in flight`,
    unit: "ms",
    ours: flooded,
    against: 2 * alone,
    againstName: "twice the p95 alone",
    kind: "most",
    goal: 1,
  };
}

async function p95(odp: Installation, call: Call): Promise<number> {
  const calls = new Calls({ port: odp.port, atOnce: 1 });
  const times: number[] = [];
  for (let index = 0; index < CALLS; index += 1) {
    const began = performance.now();
    await call(calls);
    times.push(performance.now() - began);
  }
  calls.close();
  return quantile(times, 0.95);
}

function selecting(session: string, mql: string): Call {
  return (calls) => calls.form(`/mxobject/mql?sessionid=${session}`, { mql });
}

async function fill(odp: Installation, session: string, path: string): Promise<void> {
  const calls = new Calls({ port: odp.port, atOnce: 1 });
  await selecting(session, `create class ${path} (n int, text varchar, index(n))`)(calls);
  for (let from = 0; from < ROWS; from += 200) {
    const inserts = Array.from(
      { length: 200 },
      (_, index) => `insert into ${path} n=${from + index}, text='row ${from + index} x';`,
    );
    await selecting(session, `begin ${inserts.join(" ")} end`)(calls);
  }
  calls.close();
}
