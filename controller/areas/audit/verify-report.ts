import { counted } from "../../../common/text/counted.ts";
/** The kind of damage to a trail, as far as the remaining entries show it. */
export type BreakKind =
  | "altered"
  | "missing"
  | "doubled"
  | "reordered"
  | "unknown_key"
  | "truncated"
  | "replaced"
  | "unkeyed"
  | "added"
  | "heads";

/** One place where a trail is invalid. */
export interface Break {
  readonly kind: BreakKind;
  /** Empty: the break concerns the sealed heads of all runs. */
  readonly run: string;
  /** The entry that shows the break. For missing entries: the first of them. For heads: their version. */
  readonly sequence: number;
  /** Time of that entry, or of the next entry that exists. */
  readonly timeMs: number;
  /** Message for people. */
  readonly text: string;
}

export interface ChainReport {
  readonly entries: number;
  readonly runs: number;
  /**
   * Number of entries of earlier versions, without a key. Any writer of the store could have made them, so they prove
   * nothing.
   */
  readonly unkeyed: number;
  /**
   * Number of entries without a sealed head: of the last minute, and of controllers that were killed or not upgraded.
   */
  readonly uncovered: number;
  /** Number of entries in runs of earlier versions, which have no heads. */
  readonly beforeHeads: number;
  /** Number of runs compared with digests outside the store. */
  readonly anchors: number;
  /** The oldest break; absent in a sound trail. */
  readonly first?: Break;
  /** Message of each break, oldest first; empty in a sound trail. */
  readonly problems: readonly string[];
  /** Messages about changes that this verification cannot detect. */
  readonly notes: readonly string[];
}

const BREAKS_SHOWN_MAX = 100;

/** Collects the oldest breaks; they may be found in any order. */
export class Breaks {
  readonly #found: Break[] = [];

  add(found: Break): void {
    this.#found.push(found);
    if (this.#found.length >= 2 * BREAKS_SHOWN_MAX) this.#sorted().length = BREAKS_SHOWN_MAX;
  }

  get first(): Break | undefined {
    return this.#sorted()[0];
  }

  get problems(): readonly string[] {
    return this.#sorted()
      .slice(0, BREAKS_SHOWN_MAX)
      .map(({ text }) => text);
  }

  #sorted(): Break[] {
    return this.#found.sort((one, other) => one.timeMs - other.timeMs || one.sequence - other.sequence);
  }
}

interface HeadTimes {
  readonly headsSinceMs: number | undefined;
  readonly adoptedMs: number | undefined;
}

/** Messages about the limits of a verification. */
export function notesOf(
  counts: Pick<ChainReport, "unkeyed" | "uncovered" | "beforeHeads" | "anchors">,
  { headsSinceMs, adoptedMs }: HeadTimes,
): readonly string[] {
  const { unkeyed, uncovered, beforeHeads, anchors } = counts;
  const notes: string[] = [];
  if (anchors === 0 && headsSinceMs !== undefined)
    notes.push(
      "Without an anchor (audit_anchor_file) it is not noticed when the trail and its sealed heads are put back together to an earlier state.",
    );
  if (anchors === 0 && headsSinceMs === undefined)
    notes.push("Without an anchor (audit_anchor_file) it is not noticed when the newest entries are cut off.");
  if (uncovered > 0)
    notes.push(
      `No sealed head covers ${counted(uncovered, "entry: it is", "entries: they are")} of the last minute, or of a controller that was killed or is of an earlier version. It is not noticed when the newest of them are cut off.`,
    );
  if (beforeHeads > 0) notes.push(earlier(beforeHeads, adoptedMs));
  if (unkeyed > 0)
    notes.push(
      `${counted(unkeyed, "entry of an earlier version proves nothing: its digest needs", "entries of earlier versions prove nothing: their digests need")} no key.`,
    );
  return notes;
}

function earlier(entries: number, adoptedMs: number | undefined): string {
  const which = `${counted(entries, "entry is", "entries are")} of runs that an earlier version made, without sealed heads`;
  if (adoptedMs === undefined)
    return `${which}: it is not noticed when such a run lost its beginning, nor, without an anchor, its end.`;
  return `${which}: their heads were sealed at ${new Date(adoptedMs).toISOString()}. It is not noticed when such a run lost its beginning or, without an anchor, its end before.`;
}
