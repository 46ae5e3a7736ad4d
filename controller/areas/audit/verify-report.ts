import { counted } from "../../../common/text/counted.ts";
/** How a trail is broken: what was done to it, as far as it can be told from what is left. */
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

/** One place where a trail does not hold. */
export interface Break {
  readonly kind: BreakKind;
  /** Empty: the sealed heads of all runs. */
  readonly run: string;
  /** The entry it is seen at; of entries that are gone the first of them; of heads their version. */
  readonly sequence: number;
  /** The time of that entry, or of the next that is there. */
  readonly timeMs: number;
  /** In words. */
  readonly text: string;
}

export interface ChainReport {
  readonly entries: number;
  readonly runs: number;
  /** Entries of earlier versions, which any writer of the store could have made: they prove nothing. */
  readonly unkeyed: number;
  /** Entries that no sealed head names: of the last minute, and of controllers that were killed or not upgraded. */
  readonly uncovered: number;
  /** Entries of runs that earlier versions made, without heads. */
  readonly beforeHeads: number;
  /** Runs that were compared with digests outside the store. */
  readonly anchors: number;
  /** The oldest place where the trail does not hold; absent of a sound one. */
  readonly first?: Break;
  /** Each fault in words, the oldest first; empty for a sound trail. */
  readonly problems: readonly string[];
  /** The changes that this verification cannot notice, in words. */
  readonly notes: readonly string[];
}

const BREAKS_SHOWN_MAX = 100;

/** The oldest breaks, whatever is found first. */
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

/** Limits of a verification, in words. */
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
