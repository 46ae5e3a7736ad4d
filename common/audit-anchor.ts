/** A digest of the audit trail, kept outside the store. It proves that this entry existed at that time. */
export interface Anchor {
  /** Time of the entry. */
  readonly timeMs: number;
  /** Empty: the installation itself. */
  readonly tenant: string;
  /** Empty: the anchor is for the sealed heads of all runs. */
  readonly run: string;
  /** The sequence of an entry, or the version of the heads. */
  readonly sequence: number;
  /** Hash of that entry, which covers all earlier entries of its run; or the seal of the heads. */
  readonly hash: string;
}

/** `Anchor.run` of the sealed heads of a tenant's trail. */
export const ANCHOR_OF_HEADS = "";

/** One line of an anchor file, with its line break. */
export function anchorLine({ timeMs, tenant, run, sequence, hash }: Anchor): string {
  const time = new Date(timeMs).toISOString();
  const what = run === ANCHOR_OF_HEADS ? { heads: sequence } : { run, sequence };
  return `${JSON.stringify({ time, tenant, ...what, hash })}\n`;
}

/** `undefined` if the line is no anchor: it was changed, or cut off on a full disk. */
export function anchorOf(line: string): Anchor | undefined {
  try {
    const { time, tenant, hash, heads, ...entry } = JSON.parse(line) as Record<string, unknown>;
    const { run, sequence } = heads === undefined ? entry : { run: ANCHOR_OF_HEADS, sequence: heads };
    const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
    if (typeof tenant !== "string" || typeof run !== "string" || typeof hash !== "string") return undefined;
    if (!Number.isSafeInteger(sequence) || Number.isNaN(timeMs)) return undefined;
    return { timeMs, tenant, run, sequence: Number(sequence), hash };
  } catch {
    return undefined;
  }
}

/** The newest anchor of each run of a tenant, from lines in any order. It covers all earlier entries of its run. */
export class NewestAnchors {
  readonly #tenant: string;
  readonly #newest = new Map<string, Anchor>();
  #unreadable = 0;

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  add(line: string): void {
    if (line.trim() === "") return;
    const anchor = anchorOf(line);
    if (anchor === undefined) this.#unreadable++;
    else this.put(anchor);
  }

  put(anchor: Anchor): void {
    if (anchor.tenant !== this.#tenant) return;
    const known = this.#newest.get(anchor.run);
    if (known === undefined || known.sequence < anchor.sequence) this.#newest.set(anchor.run, anchor);
  }

  get all(): readonly Anchor[] {
    return [...this.#newest.values()];
  }

  /** Number of lines that are no anchors. */
  get unreadable(): number {
    return this.#unreadable;
  }
}
