import { wait } from "../../../common/time.ts";
import { Installation } from "../../e2e/installation.ts";
import { realClock } from "../../helpers/time/clock.ts";
import type { Bench } from "../driver/frame.ts";
import { cpuSeconds } from "../driver/process.ts";

const CHANGES = Number(process.env.ODP_BENCH_CHANGES ?? 3_000);
const ROWS_AT_ONCE = 500;
const LOOKED_EVERY_MS = 50;
const LIMIT_S = 5;
const CORES = 2;

const TRIGGERS = {
  lua: "odb.mql('insert into /matrix/bench/told n=?', OBJECT.n)",
  javascript: "odb.mql('insert into /matrix/bench/told n=?', OBJECT.n)",
} as const;

/** Changes of different objects through a trigger after the write that inserts a row for each, on embedded. */
export const triggersBench: Bench = {
  name: "triggers",
  async run() {
    const figures = [];
    for (const language of ["lua", "javascript"] as const) {
      const { seconds, processorSeconds } = await taken(language);
      const name = `${CHANGES} changes through a trigger after them, in ${language}`;
      const limit = { unit: "s", against: LIMIT_S, againstName: "the limit", kind: "most", goal: 1 } as const;
      figures.push({ ...limit, name, ours: seconds });
      figures.push({ ...limit, name: `${name}, by processor time on ${CORES} cores`, ours: processorSeconds / CORES });
    }
    return figures;
  },
};

/** Time from the first insert until the trigger has run for the last one. */
async function taken(
  language: keyof typeof TRIGGERS,
): Promise<{ readonly seconds: number; readonly processorSeconds: number }> {
  const odp = await Installation.start({});
  try {
    await odp.session();
    await odp.mql("create class /matrix/bench/line (n int); create class /matrix/bench/told (n int)");
    const attr = { before: "false", language };
    const trigger = { class: "/matrix/bench/line", name: "tell", script: TRIGGERS[language], attr };
    await odp.ok("PUT", "/mxobject/trigger", JSON.stringify(trigger));
    const started = performance.now();
    const before = cpuSeconds(odp.controller.pid);
    for (let from = 0; from < CHANGES; from += ROWS_AT_ONCE) {
      const rows = Array.from({ length: Math.min(ROWS_AT_ONCE, CHANGES - from) }, (_, at) => `(${from + at})`);
      await odp.mql(`insert into /matrix/bench/line (n) values ${rows.join(", ")}`);
    }
    while ((await told(odp)) < CHANGES) await wait(realClock, LOOKED_EVERY_MS);
    const processorSeconds = cpuSeconds(odp.controller.pid) - before;
    return { seconds: (performance.now() - started) / 1_000, processorSeconds };
  } finally {
    await odp.stop();
  }
}

async function told(odp: Installation): Promise<number> {
  const [row] = (await odp.mql("select count(*) as n from /matrix/bench/told")) as { n: number }[];
  return Number(row?.n ?? 0);
}
