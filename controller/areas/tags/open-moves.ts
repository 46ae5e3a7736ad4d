import type { ErrorCode } from "../../../common/errors.ts";
import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../store/journal/index.ts";

/**
 * A tag that was moved or removed in its trees and must still be changed on objects. KvStore: `tags/open/<id>`. It
 * takes effect when the trees name its id in `moves`.
 */
export interface OpenMove extends OpenWork {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly domain: string;
  readonly from: string;
  /** Absent: the tag is removed. */
  readonly to?: string;
  readonly startedMs: number;
  /** Time of this record, so that the object of the move never replaces a newer state with an older one. */
  readonly notedMs: number;
  /** Number of objects changed so far. */
  readonly done: number;
  readonly end?: MoveEnd;
}

export interface MoveEnd {
  readonly state: "done" | "failed";
  /** Number of objects that refused the change. */
  readonly refused: number;
  readonly code?: ErrorCode;
  readonly message: string;
  readonly endedMs: number;
}

export type NotedMove = Versioned<OpenMove>;
export type MoveJournal = Journal<OpenMove>;

export function moveJournal(dependencies: JournalDependencies): MoveJournal {
  return new Journal(dependencies, { prefix: "tags/open/", tenantOf: ({ tenant }) => tenant });
}
