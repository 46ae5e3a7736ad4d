import type { ClassDefinition } from "./definition.ts";
import type { IndexPass } from "./indexpass.ts";
import type { IndexStatus } from "./types.ts";

export interface NamedIndex {
  readonly number: number;
  readonly state: "write-only" | "ready" | "retiring";
  /** Absent for the words of the full text. */
  readonly column?: string;
}

/** Indexes of a class that its older objects are not in yet. */
export function pendingIndexes(definition: ClassDefinition): NamedIndex[] {
  return indexesOf(definition).filter(({ state }) => state === "write-only");
}

/** How far each index of a class is; `pass` is the one that goes through its objects at the moment, if there is one. */
export function indexStatuses(definition: ClassDefinition, pass: IndexPass | undefined): IndexStatus[] {
  return indexesOf(definition).map(({ number, state, column }) => {
    const index = { class: definition.path, ...(column === undefined ? {} : { column }) };
    if (state !== "write-only" || pass === undefined || !pass.indexes.includes(number)) return { ...index, state };
    const { done, total, problem } = pass;
    return { ...index, state: "backfill", done, ...(total === undefined ? {} : { total }), ...(problem === undefined ? {} : { problem }) };
  });
}

function indexesOf({ indexes, options }: ClassDefinition): NamedIndex[] {
  const columns = indexes.map(({ column, state, number = 0 }) => ({ column, state, number }));
  if (!options.autosearch) return columns;
  const { state = "write-only", number = 0 } = options.words ?? {};
  return [...columns, { state, number }];
}
