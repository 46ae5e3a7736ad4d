import { UNSTORED_TOLD_MAX } from "../../../../common/limits.ts";

const WITHOUT_TIMES = "not taken, as the import has no times=true";

const TEXTS = {
  times: `Times of rows ${WITHOUT_TIMES}`,
  versions: `Earlier states and removals of objects ${WITHOUT_TIMES}`,
  later: "Objects not taken, as they were written or removed later",
  exists: "Objects not taken, as they exist and the import has them as removed",
  other: "Earlier states not taken, as the object has another version of that time",
  expired: "Earlier states not taken, as their versionttl is over",
  unversioned: "Earlier states not taken, as their class keeps no versions",
  relations: "Relations of earlier states not taken, as not exactly one class can have their target",
} as const;

/** Reason why an import did not store times or states. */
export type PastKind = keyof typeof TEXTS;

export type PastNote = Partial<Record<PastKind, { readonly count: number; readonly told: readonly string[] }>>;

/** Counts the times and states that an import did not store, and keeps the first ids for each reason. */
export class PastNotes {
  readonly #kinds = new Map<PastKind, { count: number; readonly told: string[] }>();

  constructor(note: PastNote = {}) {
    for (const [kind, { count, told }] of Object.entries(note) as [PastKind, Required<PastNote>[PastKind]][])
      this.#kinds.set(kind, { count, told: [...told] });
  }

  /** Counts one case. `id` is absent if no single object is meant. */
  add(kind: PastKind, id?: string, count = 1): void {
    const known = this.#kinds.get(kind) ?? { count: 0, told: [] };
    known.count += count;
    if (id !== undefined && known.told.length < UNSTORED_TOLD_MAX && !known.told.includes(id)) known.told.push(id);
    this.#kinds.set(kind, known);
  }

  note(): PastNote {
    return Object.fromEntries([...this.#kinds].map(([kind, { count, told }]) => [kind, { count, told: [...told] }]));
  }

  warnings(): readonly string[] {
    return [...this.#kinds].map(([kind, { count, told }]) => {
      const ids = told.length === 0 ? "" : `: ${told.join(", ")}${told.length < UNSTORED_TOLD_MAX ? "" : ", …"}`;
      return `${TEXTS[kind]} (${count})${ids}.`;
    });
  }
}
