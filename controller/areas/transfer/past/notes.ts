import { UNSTORED_TOLD_MAX } from "../../../../common/limits.ts";

/** What is told of the times and earlier states of an import. */
const KINDS = {
  versions: (count: string) =>
    `${count} earlier states and removals of objects were not taken: they are for an import with times=true.`,
  times: (count: string) => `The times of ${count} rows were not taken: they are for an import with times=true.`,
  later: (count: string) =>
    `${count} objects were written or removed later than the import says: nothing of them was taken`,
  exists: (count: string) => `${count} objects exist that the import has as removed: nothing of them was taken`,
  other: (count: string) => `${count} states have another version of that time here, which stays`,
  expired: (count: string) => `${count} earlier states are older than the versionttl of their class and were not taken`,
  unversioned: (count: string) => `${count} earlier states are of classes that keep no versions and were not taken`,
  relations: (count: string) =>
    `${count} relations of earlier states were not taken, as not exactly one class has their target`,
} as const;

export type PastKind = keyof typeof KINDS;

export type PastNote = Partial<Record<PastKind, { readonly count: number; readonly told: readonly string[] }>>;

/** Counts what an import did not take of the past, and remembers the first ids of each kind. */
export class PastNotes {
  readonly #kinds = new Map<PastKind, { count: number; readonly told: string[] }>();

  constructor(note: PastNote = {}) {
    for (const [kind, { count, told }] of Object.entries(note) as [PastKind, Required<PastNote>[PastKind]][])
      this.#kinds.set(kind, { count, told: [...told] });
  }

  /** `id`: absent where the statement alone is counted. */
  add(kind: PastKind, id?: string, count = 1): void {
    const known = this.#kinds.get(kind) ?? { count: 0, told: [] };
    known.count += count;
    if (id !== undefined && known.told.length < UNSTORED_TOLD_MAX && known.told.at(-1) !== id) known.told.push(id);
    this.#kinds.set(kind, known);
  }

  note(): PastNote {
    return Object.fromEntries([...this.#kinds].map(([kind, { count, told }]) => [kind, { count, told: [...told] }]));
  }

  warnings(): readonly string[] {
    return [...this.#kinds].map(([kind, { count, told }]) => {
      const text = KINDS[kind](String(count));
      return told.length === 0 ? text : `${text}: ${told.join(", ")}${told.length < count ? ", …" : ""}.`;
    });
  }
}
