import type { Stamp } from "../../../../common/revisions.ts";
import type { Row } from "../../../../common/value.ts";
import type { KvStore } from "../../../store/kv.ts";
import type { InCommit } from "../../objects/index.ts";
import type { FileEntry, HeldContent } from "../entries.ts";
import type { Place } from "../names.ts";
import type { KeptContent } from "./kept-content.ts";

/** A change that a caller makes of the entry at one place. */
export type FileChange =
  /**
   * Sets these columns; other columns of an existing entry stay. With `isWhole` they make an entry: it is made again if
   * a move takes the existing one away.
   */
  | {
      readonly place: Place;
      readonly row: Row;
      readonly isWhole: boolean;
      readonly replaced?: HeldContent | undefined;
    }
  | { readonly place: Place; readonly removed: FileEntry; readonly isMoved?: true };

/** Returns the changes that a caller makes of the entries as they are. */
export type Plan = (entries: readonly (FileEntry | undefined)[]) => Promise<readonly FileChange[]>;

export interface Condition {
  readonly key: string;
  readonly revision: number;
}

export type UsableContent = Pick<KeptContent, "bytes" | "condition" | "held" | "store" | "use">;

export interface ChangeRequest {
  readonly places: readonly Place[];
  /** Runs again if another change came first. Its errors are thrown. */
  readonly plan: Plan;
  /** Called before the entries are read. Returns a further condition of the decision. */
  readonly condition?: (() => Promise<Condition>) | undefined;
  /** Content that the change names. It is used from the decision on, and when that is unknown. */
  readonly kept?: UsableContent | undefined;
  /** Records for the commit of the change, if it is one commit. */
  readonly inCommit?: InCommit | undefined;
}

export interface Now {
  readonly kv: KvStore;
  /** Revisions of the sequences of the places, by their keys; 0: absent. */
  readonly sequences: ReadonlyMap<string, number>;
}

export interface Timing {
  readonly places: readonly Place[];
  readonly entries: readonly (FileEntry | undefined)[];
  readonly changes: readonly FileChange[];
  readonly stamp: Stamp;
}
