/** A digest of the audit trail as it is kept outside the store: this entry was there at that time. */
export interface Anchor {
  /** When its entry was made. */
  readonly timeMs: number;
  /** Empty: the installation itself. */
  readonly tenant: string;
  readonly run: string;
  readonly sequence: number;
  /** Of that entry, and so of all before it in its run. */
  readonly hash: string;
}

/** One line of an anchor file, with its end. */
export function anchorLine({ timeMs, ...rest }: Anchor): string {
  return `${JSON.stringify({ time: new Date(timeMs).toISOString(), ...rest })}\n`;
}

/** Undefined of what is no such line: one that was cut off when a disk was full, or changed. */
export function anchorOf(line: string): Anchor | undefined {
  try {
    const { time, tenant, run, sequence, hash } = JSON.parse(line) as Record<string, unknown>;
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
