import { Agent, request } from "node:http";
import { Installation } from "../e2e/installation.ts";
import { quantile, type Bench, type Figure } from "./frame.ts";

const CALLS = 400;
const FLOODERS = 300;
const ROWS = 2_000;

/** What one tenant's calls take while another one does its worst, beside the same calls alone. */
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
      const call = selecting(odp, mine, "select n from /matrix/bench/row where n = 7 limit 20");
      await p95(call);
      return [
        await beside("cheap calls", call, selecting(odp, other, "select n from /other/bench/row where n = 7 limit 20")),
        await beside("scans", call, selecting(odp, other, "select count(*) from /other/bench/row where text like '%x%'")),
      ];
    } finally {
      await odp.stop();
    }
  },
};

type Call = (agent: Agent) => Promise<number>;

async function beside(what: string, mine: Call, theirs: Call): Promise<Figure> {
  const alone = await p95(mine);
  const flood = new Agent({ keepAlive: true, maxSockets: FLOODERS });
  let over = false;
  const flooding = Array.from({ length: FLOODERS }, async () => {
    while (!over) await theirs(flood);
  });
  const flooded = await p95(mine).finally(() => (over = true));
  await Promise.all(flooding);
  flood.destroy();
  return { name: `p95 of a call while another tenant has ${FLOODERS} ${what} in flight`, unit: "ms", ours: flooded, against: 2 * alone, againstName: "twice the p95 alone", kind: "most", goal: 1 };
}

async function p95(call: Call): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  for (let index = 0; index < CALLS; index += 1) {
    const began = performance.now();
    await call(agent);
    times.push(performance.now() - began);
  }
  agent.destroy();
  return quantile(times, 0.95);
}

function selecting(odp: Installation, session: string, mql: string): Call {
  const body = new URLSearchParams({ mql }).toString();
  return (agent) => post(agent, { port: odp.port, path: `/mxobject/mql?sessionid=${session}`, body });
}

async function fill(odp: Installation, session: string, path: string): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  await selecting(odp, session, `create class ${path} (n int, text varchar, index(n))`)(agent);
  for (let from = 0; from < ROWS; from += 200) {
    const inserts = Array.from({ length: 200 }, (_, index) => `insert into ${path} n=${from + index}, text='row ${from + index} x';`);
    await selecting(odp, session, `begin ${inserts.join(" ")} end`)(agent);
  }
  agent.destroy();
}

function post(agent: Agent, { port, path, body }: { readonly port: number; readonly path: string; readonly body: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/x-www-form-urlencoded", "content-length": Buffer.byteLength(body) };
    const call = request({ agent, port, path, method: "POST", host: "127.0.0.1", headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    call.on("error", reject);
    call.end(body);
  });
}
