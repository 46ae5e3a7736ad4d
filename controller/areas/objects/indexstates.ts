import type { ClassDefinition, IndexState } from "./definition.ts";
import type { IndexStatus } from "./types.ts";

export interface NamedIndex {
  readonly number: number;
  readonly state: IndexState;
  /** Absent for the words of the full text. */
  readonly column?: string;
}

/** Where one way through all objects of a class and its subclasses has got to, for indexes that they are not in yet. */
export interface IndexPass {
  readonly cid: number;
  /** Numbers of the indexes. */
  readonly indexes: readonly number[];
  /** Absent until they are counted. Of the moment when it began: what came later is in the indexes by itself. */
  readonly total?: number;
  readonly done: number;
  readonly position?: Position;
  /** Why it cannot be finished. */
  readonly problem?: string;
}

interface Position {
  readonly step: string;
  /** Absent at its beginning. */
  readonly cursor?: string;
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
    return {
      ...index,
      state: "backfill",
      done,
      ...(total === undefined ? {} : { total }),
      ...(problem === undefined ? {} : { problem }),
    };
  });
}

function indexesOf({ indexes, options }: ClassDefinition): NamedIndex[] {
  const columns = indexes.map(({ column, state, number = 0 }) => ({ column, state, number }));
  if (!options.autosearch) return columns;
  const { state = "write-only", number = 0 } = options.words ?? {};
  return [...columns, { state, number }];
}
