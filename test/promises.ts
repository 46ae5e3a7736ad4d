/** What odp promises under failure, by what it is proved, and what the proof has brought to light. The page of promises is made of this. */
export interface FailurePromise {
  readonly promise: string;
  /** Test files, from the root of the project. */
  readonly tests: readonly string[];
  /** What was found on the way, and how it was mended. */
  readonly found: readonly string[];
}

export const PROMISES = {
  "store-crash-rounds": {
    promise: "What was answered as stored is there after a kill -9, whole and once, whatever the moment.",
    tests: ["controller/store/embedded/crash.test.ts"],
    found: [],
  },
} as const satisfies Readonly<Record<string, FailurePromise>>;

export type PromiseId = keyof typeof PROMISES;
