import { policyMarks } from "../../../policies/host.ts";
import type { Checkpoint } from "./chain.ts";
import type { Print, Same, Tail } from "./content.ts";
import type { FileLook } from "../folder.ts";
import type { Heading } from "../records/headings.ts";

/** One life of a file and how far it is in the outbox, as marked. */
export interface FileState extends Print {
  /** Rises with every life seen by the policy. */
  readonly serial: number;
  /** Names this life in its records, wherever it lies. */
  readonly generation: string;
  /** Where it was first seen. */
  readonly home: string;
  path: string;
  id: string;
  /** The link at its home that led to it. */
  link?: string;
  head: string;
  /** First byte whose record is not in the outbox. */
  offset: number;
  tail: Tail;
  chain?: readonly Checkpoint[];
  /** `offset` is in the middle of a record whose beginning was sent, cut. */
  skipping: boolean;
  /** Last size and time seen, and when. */
  size: number;
  mtimeMs: number;
  seenMs: number;
  readonly log: string;
  readonly place: readonly (string | number)[];
  readonly groups: Readonly<Record<string, string>>;
  /** Absent in marks of former versions. */
  heading?: Heading;
}

/** Where a life goes on after its file was cut off. */
export interface Copy {
  readonly at: FileLook;
  readonly same: Same;
  /** Bytes that count as read although they may differ from what was. */
  readonly unprovenBytes?: number;
}

export function fileMarks(policy: string): string {
  return `${policyMarks(policy)}file-`;
}
