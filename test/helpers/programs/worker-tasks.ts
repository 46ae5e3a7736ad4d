import { threadId } from "node:worker_threads";
import { AppError } from "../../../common/errors.ts";
import { serveTasks } from "../../../controller/workers/index.ts";

/** Tasks for the tests of the pool, built and run in threads. `mark`: shared memory that shows a test the progress. */
const TASKS = {
  add: ({ a, b }: { readonly a: number; readonly b: number }): number => a + b,
  /** Never ends. */
  loop: (mark: SharedArrayBuffer): null => {
    const state = new Int32Array(mark);
    for (Atomics.store(state, 0, 1); ; ) Atomics.add(state, 1, 1);
  },
  /** Ends when the test stores 2. */
  hold: (mark: SharedArrayBuffer): string => {
    const state = new Int32Array(mark);
    Atomics.store(state, 0, 1);
    while (Atomics.load(state, 0) !== 2) Atomics.wait(state, 0, 1);
    return "released";
  },
  exhaust: (): number => {
    const kept: string[][] = [];
    for (;;) kept.push(Array.from({ length: 10_000 }, (_, at) => `${kept.length}/${at}`));
  },
  refuse: (): null => {
    throw new AppError("invalid", "No.", { details: { line: 3 } });
  },
  refuseOddly: (): null => {
    throw new AppError("invalid", "No.", { details: { refuse: () => 1 } });
  },
  fail: (): null => {
    throw new TypeError("a bug");
  },
  exit: (): null => process.exit(7),
  /** Answers; its thread ends before it reads another message. */
  exitLater: (): string => {
    process.nextTick(() => process.exit(0));
    return "answered";
  },
  failLater: (): string => {
    process.nextTick(() => {
      throw new Error("left over");
    });
    return "answered";
  },
  thread: (): number => threadId,
  environment: (): readonly string[] => Object.keys(process.env),
  unsendable: (): { readonly text: string } => Object.assign({ text: "" }, { run: () => 1 }),
} as const;

export type TestTasks = typeof TASKS;

serveTasks(TASKS);
