import { parseArgs } from "node:util";
import { SOAK_PARTS, type SoakPart } from "./soak/parts.ts";
import { SoakReport } from "./soak/report.ts";

/**
 * `npm run soak -- [--minutes N] [--seed N] [--<part> N …]`: runs tests that CI runs in small numbers, in numbers too
 * large for every day. The parts and their numbers are in `soak/parts.ts`; 0 leaves one out. If numbers are given for
 * some parts, only these run. With `--minutes` all parts take turns, each with a small portion and a new seed, until
 * the time is over; a started portion is completed. A failure does not end the soak. The report is in `.reports/soak`;
 * the exit code is 1 if a portion failed.
 */
const OUTPUT_KEPT_CHARACTERS = 8_000;

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    minutes: { type: "string" },
    ...Object.fromEntries(SOAK_PARTS.map(({ name }) => [name, { type: "string" as const }])),
  },
});
const numbers = new Map(Object.entries(values).map(([name, text]) => [name, whole(name, text)]));
const seed = numbers.get("seed") ?? 1;
const minutes = numbers.get("minutes");
const named = minutes === undefined ? SOAK_PARTS.filter(({ name }) => (numbers.get(name) ?? 0) > 0) : [];
const wanted = named.length > 0 ? named : SOAK_PARTS.filter(({ name }) => numbers.get(name) !== 0);
const report = new SoakReport(Object.fromEntries(numbers), new Date());
console.log(`The report is ${report.file}.`);

if (minutes === undefined) for (const part of wanted) await portion(part, numbers.get(part.name) ?? part.count, seed);
else await takeTurns(performance.now() + minutes * 60_000);

console.log(`${report.summary()}\n${report.failures.length} portions failed; the report is ${report.file}.`);
process.exitCode = report.failures.length > 0 ? 1 : 0;

async function takeTurns(endMs: number): Promise<void> {
  for (let turn = 0; performance.now() < endMs; turn += 1)
    for (const part of wanted) {
      if (performance.now() >= endMs) return;
      const count = numbers.get(part.name) ?? part.portion;
      // A portion uses `count` seeds, so the next one begins after them and no seed runs twice.
      await portion(part, count, seed + turn * count);
    }
}

async function portion(part: SoakPart, count: number, from: number): Promise<void> {
  const started = performance.now();
  let output = "";
  const keep = (text: string): void => void (output = (output + text).slice(-OUTPUT_KEPT_CHARACTERS));
  const failure = await part.run(count, from, keep).then(
    () => undefined,
    (error: unknown) => `${error instanceof Error ? error.message : String(error)}\n${output}`,
  );
  const seconds = Math.round((performance.now() - started) / 1_000);
  report.add({ part: part.name, count, seed: from, seconds, ...(failure !== undefined && { failure }) });
  console.log(`${failure === undefined ? "ok  " : "FAIL"} ${count} ${part.unit} from seed ${from} in ${seconds} s`);
  if (failure !== undefined) console.log(failure);
}

function whole(name: string, text: string | undefined): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${name} is a whole number, not ${String(text)}.`);
}
