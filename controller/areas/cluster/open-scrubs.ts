import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../store/journal/index.ts";

/** Steps of a scrub, in the order of execution. */
export const SCRUB_STEPS = ["objects", "indexes", "sources", "targets", "contents"] as const;
export type ScrubStep = (typeof SCRUB_STEPS)[number];

/** Progress of a scrub. */
export interface ScrubCounts {
  /** Number of checked objects, index rows, edges at their sources, edges at their targets, and contents. */
  readonly looked: Readonly<Record<ScrubStep, number>>;
  /** Bytes of checked contents. */
  readonly bytes: number;
  /** Number of index rows, and of edges at their targets, that were missing and were added. */
  readonly missing: number;
  /** Number of superfluous rows of indexes and edges that were removed. */
  readonly superfluous: number;
  /** Number of contents that do not match their digest. They cannot be repaired. */
  readonly damaged: number;
  /** Messages about the first faults. */
  readonly examples: readonly string[];
}

/** KvStore: `scrub/open/<id>`. */
export interface OpenScrub extends OpenWork, ScrubCounts {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly startedMs: number;
  /** Comparisons per second. */
  readonly rate: number;
  readonly step: ScrubStep;
  /** Absent: the step has just begun. */
  readonly cursor?: string | undefined;
  readonly end?: ScrubEnd;
}

export interface ScrubEnd {
  readonly state: "done" | "stopped" | "failed";
  readonly message: string;
  readonly endedMs: number;
}

export type VersionedScrub = Versioned<OpenScrub>;
export type ScrubJournal = Journal<OpenScrub>;

export function scrubJournal(dependencies: JournalDependencies): ScrubJournal {
  return new Journal(dependencies, { prefix: "scrub/open/", tenantOf: ({ tenant }) => tenant });
}
