import type { FileLook } from "../folder.ts";

/** Result of a look into the folder. */
export interface DirectoryScan {
  readonly atMs: number;
  /** Every file, by its path. */
  readonly files: readonly string[];
  readonly packed: readonly string[];
  /** Files that match, and those that a rotation may have made of one. */
  readonly looks: readonly FileLook[];
  /** Paths of logs: what matches, and where a followed file was first seen. */
  readonly rotations: ReadonlySet<string>;
  /** Files that are followed, by inode. */
  readonly taken: Set<string>;
}
