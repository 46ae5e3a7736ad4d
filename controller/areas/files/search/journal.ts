import type { DataRule } from "../../permissions/index.ts";
import {
  Journal,
  type JournalDependencies,
  type OpenWork,
  type Versioned,
  type WorkEnd,
} from "../../../store/journal/index.ts";
import type { Space } from "../names.ts";

/**
 * Indexing that a request or a change of files needs. KvStore: `files/index/<id>`. All of it is idempotent, so another
 * controller begins it again; contents that are indexed by then are skipped.
 */
export interface OpenIndexing extends OpenWork {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly space: Space;
  /** A file or folder that a request includes in the search, with all below it. Absent: a change of files. */
  readonly from?: string;
  /** Files whose content changed. Those that are not searched are skipped. */
  readonly paths: readonly string[];
  /** Digests of contents that files lost. Their passages are removed if no searched file has them. */
  readonly lost: readonly string[];
  /** Rules on files that the caller of a request had at its start. */
  readonly rules?: readonly DataRule[];
  readonly startedMs: number;
  readonly progress?: IndexProgress;
  readonly end?: WorkEnd;
}

export interface IndexProgress {
  /** Files whose content is found. */
  readonly indexed: number;
  /** Files whose content, or a part of it, is not found. */
  readonly unindexed: number;
  /** The first `FILE_INDEX_NAMED_MAX` of them, each with its reason. */
  readonly named: readonly string[];
}

export type VersionedIndexing = Versioned<OpenIndexing>;
export type IndexJournal = Journal<OpenIndexing>;

export const NO_PROGRESS: IndexProgress = { indexed: 0, unindexed: 0, named: [] };

export function indexJournal(dependencies: JournalDependencies): IndexJournal {
  return new Journal(dependencies, { prefix: "files/index/", tenantOf: ({ tenant }) => tenant, isRepeatable: true });
}
