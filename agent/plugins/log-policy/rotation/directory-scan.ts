import type { FileLook } from "../folder.ts";

/** Result of a scan of the folder. */
export interface DirectoryScan {
  readonly atMs: number;
  /** Paths of all files that are not compressed. */
  readonly files: readonly string[];
  readonly packed: readonly string[];
  /** Files that match, and files that a rotation may have made of a log. */
  readonly looks: readonly FileLook[];
  /** Paths of logs: those that match, and the homes of followed files. */
  readonly homes: ReadonlySet<string>;
  /** Ids of the files that this scan has assigned to a followed life. */
  readonly taken: Set<string>;
}
