import { parseArgs } from "node:util";
import { crashRounds } from "./crash/rounds.ts";

/** `npm run soak -- --seed N [--rounds N]`: the seeded crash rounds in numbers too large for every day. */
const { values } = parseArgs({
  options: { seed: { type: "string", default: "1" }, rounds: { type: "string", default: "1000" } },
});

const started = performance.now();
await crashRounds({
  rounds: Number(values.rounds),
  seed: Number(values.seed),
  log: (line: string) => console.log(line),
});
console.log(
  `${values.rounds} rounds from seed ${values.seed} in ${((performance.now() - started) / 1_000).toFixed(0)} s: nothing lost, nothing torn`,
);
