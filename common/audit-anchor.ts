/** A digest of the audit trail as it is kept outside the store: this entry was there at that time. */
export interface Anchor {
  /** When its entry was made. */
  readonly timeMs: number;
  /** Empty: the installation itself. */
  readonly tenant: string;
  /** Empty: the sealed heads of all runs. */
  readonly run: string;
  /** The sequence of an entry, or the version of the heads. */
  readonly sequence: number;
  /** The digest of that entry, which covers all before it in its run, or the seal of the heads. */
  readonly hash: string;
}

/** `Anchor.run` of the sealed heads of a tenant's trail. */
export const ANCHOR_OF_HEADS = "";

/** One line of an anchor file, with its end. */
export function anchorLine({ timeMs, tenant, run, sequence, hash }: Anchor): string {
  const time = new Date(timeMs).toISOString();
  const what = run === ANCHOR_OF_HEADS ? { heads: sequence } : { run, sequence };
  return `${JSON.stringify({ time, tenant, ...what, hash })}\n`;
}

/** Undefined of what is no such line: one that was cut off when a disk was full, or changed. */
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

/** The newest of each run of a tenant, from lines in any order: it vouches for all before it. */
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

  /** Lines that are none. */
  get unreadable(): number {
    return this.#unreadable;
  }
}
