import { Installation } from "../../e2e/installation.ts";
import { median } from "./frame.ts";
import { threadSeconds } from "./process.ts";
import { WORKS, type Work } from "./works.ts";

/**
 * Number of starts of each version. Two processes of one version differ by up to a tenth for their whole life, because
 * of how code was compiled and where memory is. So the starts are compared, not the rounds. Odd, for a median.
 */
const STARTS = 9;
const ROUNDS = 15;
/** The 95 % interval of the median of nine is between the second and the eighth (binomial distribution). */
const RANKS_OUTSIDE = 1;
/** Least processor time of a round. It is short, so that the machine is in the same state for both of a pair. */
const ROUND_MIN_S = 0.2;
const WARM_UP_ROUNDS = 8;

/** Installation of one version, and the work that it repeats. */
interface Side {
  readonly odp: Installation;
  readonly round: (count: number) => Promise<void>;
}

/**
 * Runs the same works by the programs of this checkout and of another one, in turns, each first in every other turn.
 * Prints the processor time of controller and agent per operation: both medians, the median of the ratios and its 95 %
 * interval. A slower or busy machine affects both versions.
 */
export async function runPaired(other: string, names: readonly string[]): Promise<void> {
  const wanted = WORKS.filter(({ bench, name }) => names.length === 0 || names.includes(bench) || names.includes(name));
  if (wanted.length === 0) throw new RangeError(`no work of ${names.join(", ")} can be done by two versions in turns`);
  for (const work of wanted) console.log(`  ${await compared(work, other)}`);
}

async function compared(work: Work, other: string): Promise<string> {
  const starts: Start[] = [];
  for (let start = 0; start < STARTS; start += 1) starts.push(await started(work, other, start % 2 === 0));
  const each = (side: keyof Start): string => (median(starts.map((one) => one[side])) * 1e6).toFixed(0);
  const ratios = starts.map(({ ours, theirs }) => ours / theirs).sort((a, b) => a - b);
  const [low, high] = [ratios[RANKS_OUTSIDE], ratios[STARTS - 1 - RANKS_OUTSIDE]];
  return `${work.bench}, ${work.name}: ${each("ours")} beside ${each("theirs")} µs of processor, ratio ${median(ratios).toFixed(3)} (${low?.toFixed(3)} to ${high?.toFixed(3)} in 95 % of such runs)`;
}

/** Processor seconds per operation of two processes that were started for it: the medians of their rounds. */
interface Start {
  readonly ours: number;
  readonly theirs: number;
}

async function started(work: Work, other: string, isOursFirst: boolean): Promise<Start> {
  const sides: Side[] = [];
  try {
    for (const root of isOursFirst ? [".", other] : [other, "."]) {
      const odp = await Installation.start({}, root);
      sides.push({ odp, round: await work.prepare(odp) });
    }
    const [ours, theirs] = (isOursFirst ? sides : sides.toReversed()) as [Side, Side];
    const count = Math.min(await countOf(work, theirs), await countOf(work, ours));
    const seconds: Start[] = [];
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
      const first = round % 2 === 0 ? await taken(work, ours, count) : undefined;
      const beside = await taken(work, theirs, count);
      const pair = { ours: first ?? (await taken(work, ours, count)), theirs: beside };
      if (round >= 0) seconds.push(pair);
    }
    const of = (side: keyof Start): number => median(seconds.map((pair) => pair[side])) / count;
    return { ours: of("ours"), theirs: of("theirs") };
  } finally {
    for (const { odp } of sides) await odp.stop();
  }
}

/** Finds the number of operations of a round, and so warms up that side. */
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
