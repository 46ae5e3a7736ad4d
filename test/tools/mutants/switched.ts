import type { Mutation } from "./mutations.ts";

/** A change and the number by which it is switched on. */
export interface Numbered {
  readonly number: number;
  readonly mutation: Mutation;
}

/** Name of the global function that says whether the change of a number is on. */
export const SWITCH = "__odpMutant";

/**
 * The source with all these changes in it, each one made only while `SWITCH(number)` is true. So a process that has
 * loaded the source once tries one change after another.
 */
export function switched(source: string, changes: readonly Numbered[]): string {
  const places = new Map<string, Numbered[]>();
  for (const change of changes) {
    const { start, end } = change.mutation.around;
    const place = `${start} ${end}`;
    places.set(place, [...(places.get(place) ?? []), change]);
  }
  // Outer places come before those inside.
  const ordered = [...places.values()].sort(
    ([left], [right]) => startOf(left!) - startOf(right!) || endOf(right!) - endOf(left!),
  );
  return rendered({ source, from: 0, to: source.length, places: ordered });
}

interface Part {
  readonly source: string;
  readonly from: number;
  readonly to: number;
  readonly places: readonly (readonly Numbered[])[];
}

function rendered({ source, from, to, places }: Part): string {
  let text = "";
  let done = from;
  for (const [at, place] of places.entries()) {
    const [start, end] = [startOf(place[0]!), endOf(place[0]!)];
    if (start < done) continue;
    const inside = places.slice(at + 1).filter(([other]) => startOf(other!) >= start && endOf(other!) <= end);
    text +=
      source.slice(done, start) + choice(source, place, rendered({ source, from: start, to: end, places: inside }));
    done = end;
  }
  return text + source.slice(done, to);
}

/** `unchanged` is the text of the place, with the choices inside it. */
function choice(source: string, place: readonly Numbered[], unchanged: string): string {
  const isStatement = place[0]!.mutation.around.isStatement;
  return place.reduceRight((otherwise, { number, mutation: { start, end, text, around } }) => {
    const changed = source.slice(around.start, start) + text + source.slice(end, around.end);
    const isOn = `globalThis.${SWITCH}?.(${number})`;
    return isStatement
      ? `{ if (${isOn}) { ${changed} } else ${otherwise} }`
      : `(${isOn} ? (${changed}) : (${otherwise}))`;
  }, unchanged);
}

function startOf({ mutation }: Numbered): number {
  return mutation.around.start;
}

function endOf({ mutation }: Numbered): number {
  return mutation.around.end;
}
