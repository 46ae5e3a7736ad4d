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
  "ingest-one-holder": {
    promise: "Whatever paused or doubled controller holds a batch: each line of an agent is stored once, as a record or as an error, and a keyed object ends as its last line says.",
    tests: ["controller/areas/ingest/holders.test.ts"],
    found: [
      "The mark of a stream was written unconditionally: a controller that woke set it back, or stored the same lines by another rule text. Now every session claims the stream and every write of the mark is conditional on the one before.",
      "That a rule could not be used was not pinned: a repetition after the rule was mended stored an error and a record of one line. Now the mark pins the error too.",
      "A line of a keyed class that was written late overwrote what a newer line had made. Now the mark gives each batch the times of its writes.",
      "A hole inside a batch was refused, so that one damaged frame in an outbox would have held its stream up for ever. Now it is a gap record and the stream goes on.",
    ],
  },
} as const satisfies Readonly<Record<string, FailurePromise>>;

export type PromiseId = keyof typeof PROMISES;
