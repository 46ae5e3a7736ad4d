import { parseArgs } from "node:util";
import { runHistories } from "./histories.ts";
import { runHistory } from "./run.ts";

/** `npm run sim -- --seed N --trace` replays one history; `-- --from N --count N` runs many. */
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    trace: { type: "boolean" },
    from: { type: "string", default: "1" },
    count: { type: "string", default: "1000" },
    workers: { type: "string", default: "2" },
  },
});

if (values.seed !== undefined) await one(Number(values.seed), values.trace ?? false);
else await many({ from: Number(values.from), count: Number(values.count), workers: Number(values.workers) });

async function one(seed: number, tracing: boolean): Promise<void> {
  const { trace, wrong, fingerprint, events } = await runHistory({ seed, tracing });
  for (const line of trace) console.log(line);
  console.log(`seed ${seed}: ${events} events, fingerprint ${fingerprint}`);
  report(seed, wrong);
}

async function many(wish: { readonly from: number; readonly count: number; readonly workers: number }): Promise<void> {
  const startMs = performance.now();
  const { wrong, ...total } = await runHistories({
    ...wish,
    onOutcome: (outcome) => report(outcome.seed, outcome.wrong),
  });
  const seconds = (performance.now() - startMs) / 1_000;
  console.log(
    `${total.histories} histories in ${seconds.toFixed(0)} s, ${wrong.size} of them wrong; ${JSON.stringify(total)}`,
  );
}

function report(seed: number, wrong: readonly string[]): void {
  if (wrong.length === 0) return;
  process.exitCode = 1;
  console.log(`seed ${seed} (npm run sim -- --seed ${seed} --trace):`);
  for (const line of wrong) console.log(`  ${line}`);
}
