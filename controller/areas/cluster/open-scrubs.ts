import { Journal, type JournalDependencies, type Noted, type OpenWork } from "../../store/journal/index.ts";

/** In their order. */
export const SCRUB_STEPS = ["objects", "indexes", "sources", "targets", "contents"] as const;
export type ScrubStep = (typeof SCRUB_STEPS)[number];

/** What a scrub did so far. */
export interface ScrubCounts {
  /** Objects, rows of indexes, edges at their sources and at their targets, contents. */
  readonly looked: Readonly<Record<ScrubStep, number>>;
  /** Of contents. */
  readonly bytes: number;
  /** Rows of indexes, and edges at their targets, that were missing and are added. */
  readonly missing: number;
  /** Rows of indexes and of edges that are removed. */
  readonly superfluous: number;
  /** Contents that are not what their digest says. Nothing mends them. */
  readonly damaged: number;
  /** The first of what was wrong, for people. */
  readonly examples: readonly string[];
}

/** KvStore: `scrub/open/<id>`. */
export interface OpenScrub extends OpenWork, ScrubCounts {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly startedMs: number;
  /** Comparisons a second. */
  readonly rate: number;
  readonly step: ScrubStep;
  /** Absent: at the beginning of the step. */
  readonly cursor?: string | undefined;
  readonly end?: ScrubEnd;
}

export interface ScrubEnd {
  readonly state: "done" | "stopped" | "failed";
  readonly message: string;
  readonly endedMs: number;
}

export type NotedScrub = Noted<OpenScrub>;
export type ScrubJournal = Journal<OpenScrub>;

export function scrubJournal(dependencies: JournalDependencies): ScrubJournal {
  return new Journal(dependencies, { prefix: "scrub/open/", tenantOf: ({ tenant }) => tenant });
}
