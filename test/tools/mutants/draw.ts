import { createHash } from "node:crypto";
import type { Mutation } from "./mutations.ts";

export interface Mutant {
  readonly file: string;
  readonly mutation: Mutation;
}

/**
 * Draws up to `most` changes and returns them in their order, so that the report follows the code. The draw depends on
 * the seed and the text of a change only. Lines added elsewhere do not change it, so figures of two versions can be
 * compared.
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

/** Place of a change in the draw. A file may have several changes of the same text; their number makes them differ. */
function placeOf({ file, mutation }: Mutant, seed: string, seen: Map<string, number>): string {
  const text = JSON.stringify([seed, file, mutation.before, mutation.after]);
  const before = seen.get(text) ?? 0;
  seen.set(text, before + 1);
  return createHash("sha256").update(`${text} ${before}`).digest("hex");
}
