import type { ErrorCode } from "../../../common/errors.ts";
import { Journal, type JournalDependencies, type Noted, type OpenWork } from "../../store/journal/index.ts";

/**
 * A tag that is moved or removed in its trees and still to be changed on what bears it. KvStore: `tags/open/<id>`. It
 * counts when the trees name its id among `moves`.
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
  /** When this was noted; the object of the move never shows an older state for a newer one. */
  readonly notedMs: number;
  /** Objects that were changed so far. */
  readonly done: number;
  readonly end?: MoveEnd;
}

export interface MoveEnd {
  readonly state: "done" | "failed";
  /** Objects that refused the change. */
  readonly refused: number;
  readonly code?: ErrorCode;
  readonly message: string;
  readonly endedMs: number;
}

export type NotedMove = Noted<OpenMove>;
export type MoveJournal = Journal<OpenMove>;

export function moveJournal(dependencies: JournalDependencies): MoveJournal {
  return new Journal(dependencies, { prefix: "tags/open/", tenantOf: ({ tenant }) => tenant });
}
