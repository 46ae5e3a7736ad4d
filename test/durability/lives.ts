import type { Files } from "../../common/files.ts";
import type { Random } from "../../common/time.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { ForgetfulFiles } from "../helpers/engines/forgetful-files.ts";
import { TestClock } from "../helpers/time/runtime.ts";

/** One life of a program: from its start to the moment it is killed or its machine loses power. */
export interface Life {
  readonly files: Files;
  readonly clock: TestClock;
  readonly random: Random;
  readonly disk: ForgetfulFiles;
  /** True for the last life, which nothing interrupts. */
  readonly last: boolean;
  /** Call when the program ends by itself. */
  readonly end: () => void;
}

export interface LivesOptions {
  readonly seed: number;
  readonly lives: number;
  /** Maximum number of disk operations after which a life ends. */
  readonly operationsMax: number;
  /** One life. It may end before the disk ends it. A wait of more than a minute of the clock is a failure. */
  readonly live: (life: Life) => Promise<void>;
}

const STUCK_MS = 60_000;
const STEP_MS = 1_000;

/**
 * One history: several lives on the same disk, then a last one that nothing interrupts. The same seed gives the same
 * history.
 */
export async function liveThrough({ seed, lives, operationsMax, live }: LivesOptions): Promise<void> {
  const random = seededRandom(seed);
  const disk = new ForgetfulFiles(seed);
  const clock = new TestClock();
  for (let life = 0; life <= lives; life++) {
    const last = life === lives;
    disk.faults.fails = () => false;
    const end = endAfter(disk, last ? Infinity : 1 + Math.floor(random.next() * operationsMax), random.next() < 0.7);
    await untilOver(live({ files: disk.boot(), clock, random, disk, last, end: end.now }), end, clock);
    if (!last) end.now();
  }
}

interface End {
  readonly over: () => boolean;
  readonly now: () => void;
}

function endAfter(disk: ForgetfulFiles, operations: number, powerCut: boolean): End {
  let [left, over] = [operations, false];
  const now = (): void => {
    if (over) return;
    over = true;
    if (powerCut) disk.powerCut();
    else disk.kill();
  };
  disk.faults.happened = () => {
    if (--left <= 0) now();
  };
  return { over: () => over, now };
}

/** All work is promises, so one turn of the event loop runs it until it ends or waits for the clock. */
async function untilOver(work: Promise<void>, end: End, clock: TestClock): Promise<void> {
  let done = false;
  let failure: unknown;
  work.then(
    () => (done = true),
    (error: unknown) => {
      failure = error;
      done = true;
    },
  );
  for (let waitedMs = 0; ; waitedMs += STEP_MS) {
    await new Promise((resolve) => setImmediate(resolve));
    if (failure !== undefined) throw failure;
    if (done || end.over()) return;
    if (waitedMs > STUCK_MS) throw new Error("Something waits for ever.");
    clock.advance(STEP_MS);
  }
}
