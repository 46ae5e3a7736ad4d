import { policyMarks } from "../../../policies/host.ts";
import type { Checkpoint } from "./chain.ts";
import type { Print, Same, Tail } from "./content.ts";
import type { FileLook } from "../folder.ts";
import type { Heading } from "../records/headings.ts";

/** The stored state of one life of a file, with the position up to which it is in the outbox. */
export interface FileState extends Print {
  /** Increases with each life that the policy follows. */
  readonly serial: number;
  /** Identifies this life in its records. It does not change when the file is renamed. */
  readonly generation: string;
  /** The path of its log. Usually this is the path at which the life was first seen. */
  readonly home: string;
  path: string;
  id: string;
  /** Identity of the symbolic link at `path`; absent when there is none. */
  link?: string;
  head: string;
  /** Position of the first byte whose record is not in the outbox. */
  offset: number;
  tail: Tail;
  chain?: readonly Checkpoint[];
  /** `offset` is in the middle of a record whose beginning was sent, cut. */
  skipping: boolean;
  /** Size and modification time of the file when it was last looked at, and the time of that look. */
  size: number;
  mtimeMs: number;
  seenMs: number;
  readonly log: string;
  readonly place: readonly (string | number)[];
  readonly groups: Readonly<Record<string, string>>;
  /** Absent in marks of older versions. */
  heading?: Heading;
}

/** The file in which a life continues after its own file was truncated. */
export interface Copy {
  readonly at: FileLook;
  readonly same: Same;
  /** Bytes that count as read, although they are not proven to be equal to the original. A gap counts them as lost. */
  readonly unprovenBytes?: number;
}

export function fileMarks(policy: string): string {
  return `${policyMarks(policy)}file-`;
}
