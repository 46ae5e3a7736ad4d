import { createHash } from "node:crypto";
import type { Mutation } from "./mutations.ts";

export interface Mutant {
  readonly file: string;
  readonly mutation: Mutation;
}

/**
 * So many of them, in their order, so that the report reads like the code. A change is drawn by the seed and by its own
 * text: lines that are added elsewhere leave the others what they were, and figures of two versions can be compared.
 */
export function drawn(all: readonly Mutant[], { most, seed }: { most: number; seed: string }): readonly Mutant[] {
  const seen = new Map<string, number>();
  return all
    .map((mutant, at) => ({ mutant, at, place: placeOf(mutant, seed, seen) }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .slice(0, most)
    .sort((a, b) => a.at - b.at)
    .map(({ mutant }) => mutant);
}

/** Changes of one text, of which a file may have several, count one after the other. */
function placeOf({ file, mutation }: Mutant, seed: string, seen: Map<string, number>): string {
  const text = JSON.stringify([seed, file, mutation.before, mutation.after]);
  const before = seen.get(text) ?? 0;
  seen.set(text, before + 1);
  return createHash("sha256").update(`${text} ${before}`).digest("hex");
}
