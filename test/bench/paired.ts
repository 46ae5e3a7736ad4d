import { Installation } from "../e2e/installation.ts";
import { median } from "./frame.ts";
import { threadSeconds } from "./process.ts";
import { WORKS, type Work } from "./works.ts";

/** Odd, so that a median is a pair that was measured. */
const ROUNDS = 151;
/** The 95 % interval of a median lies so many ranks beside the middle of the sorted ratios (binomial distribution). */
const RANKS_BESIDE_MEDIAN = Math.ceil(0.98 * Math.sqrt(ROUNDS));
/** Processor time of a round: short, so that both of a pair meet the same machine. */
const ROUND_MIN_S = 0.2;
const WARM_UP_ROUNDS = 8;

/** One version's installation and the work that it does again and again. */
interface Side {
  readonly odp: Installation;
  readonly round: (count: number) => Promise<void>;
}

/**
 * The same works by the programs of this checkout and of another one, in turns; who is first alternates. Prints the
 * processor time that controller and agent take for an operation, both medians, the median of the ratios pair by pair
 * and its 95 % interval: a machine that gets slower or is busy does so for both.
 */
export async function runPaired(other: string, names: readonly string[]): Promise<void> {
  const wanted = WORKS.filter(({ bench, name }) => names.length === 0 || names.includes(bench) || names.includes(name));
  if (wanted.length === 0) throw new RangeError(`no work of ${names.join(", ")} can be done by two versions in turns`);
  for (const work of wanted) console.log(`  ${await compared(work, other)}`);
}

async function compared(work: Work, other: string): Promise<string> {
  const sides: Side[] = [];
  try {
    for (const root of [".", other]) {
      const odp = await Installation.start({}, root);
      sides.push({ odp, round: await work.prepare(odp) });
    }
    const [ours, theirs] = sides as [Side, Side];
    const count = await countOf(work, theirs);
    const pairs: { readonly ours: number; readonly theirs: number }[] = [];
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
      const first = round % 2 === 0 ? await taken(work, ours, count) : undefined;
      const beside = await taken(work, theirs, count);
      const pair = { ours: first ?? (await taken(work, ours, count)), theirs: beside };
      if (round >= 0) pairs.push(pair);
    }
    const each = (side: keyof (typeof pairs)[number]): string =>
      ((median(pairs.map((pair) => pair[side])) / count) * 1e6).toFixed(0);
    const ratios = pairs.map((pair) => pair.ours / pair.theirs).sort((a, b) => a - b);
    const middle = (ROUNDS - 1) / 2;
    const [low, high] = [ratios[middle - RANKS_BESIDE_MEDIAN], ratios[middle + RANKS_BESIDE_MEDIAN]];
    return `${work.bench}, ${work.name}: ${each("ours")} beside ${each("theirs")} µs of processor, ratio ${median(ratios).toFixed(3)} (${low?.toFixed(3)} to ${high?.toFixed(3)} in 95 % of such runs)`;
  } finally {
    for (const { odp } of sides) await odp.stop();
  }
}

/** Operations of a round, by the side whose speed is known; also its first warm-up. */
async function countOf(work: Work, side: Side): Promise<number> {
  for (let count = work.atLeast; ; count *= 2) {
    const seconds = await taken(work, side, count);
    if (seconds >= ROUND_MIN_S) return count;
  }
}

/** Processor seconds of the controller and, where the work has one, of the agent. */
async function taken(work: Work, { odp, round }: Side, count: number): Promise<number> {
  const pids = [odp.controller.pid, ...(work.agent === undefined ? [] : [odp.agent(work.agent).pid])];
  const now = (): number => pids.reduce((sum, pid) => sum + threadSeconds(pid), 0);
  const before = now();
  await round(count);
  return now() - before;
}
