import type { BlobStore } from "../../../store/blobs.ts";
import type { KvOperation } from "../../../store/kv.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Place } from "../names.ts";
import type { FileVisibility } from "../visible.ts";
import type { KeptTreeProgress, OpenFileWork } from "../work-journal.ts";
import type { EntryLists } from "./lists.ts";

/** Journaled work that this controller holds. */
export interface HeldWork {
  /** The entry as it was last written. */
  readonly open: OpenFileWork;
  /** The platform, in the name of the user who began the work. */
  readonly platform: Principal;
  /** The view of the user by the rules that applied at the beginning. */
  readonly visibility: FileVisibility;
  /** Fires at an orderly stop: the work pauses. */
  readonly signal: AbortSignal;
  /** Stores the progress, and writes `beside` in the same transaction. Throws if another controller took the work. */
  step(kept: KeptTreeProgress, beside?: readonly KvOperation[]): Promise<void>;
}

/** One run of work with a kept tree. */
export interface KeptTreeRun extends Omit<HeldWork, "open"> {
  readonly open: () => OpenFileWork;
  readonly progress: () => KeptTreeProgress;
  readonly root: Place;
  readonly lists: EntryLists;
  readonly blobs: BlobStore;
}

/** Name of the list that an attempt of the work writes. No other attempt writes it. */
export function listOf({ id, attempt }: Pick<OpenFileWork, "id" | "attempt">): string {
  return `files/tree/${id}-${attempt}`;
}
