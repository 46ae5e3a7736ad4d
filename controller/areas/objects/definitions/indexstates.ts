import type { IndexStatus } from "../types.ts";
import type { ClassDefinition, IndexState } from "./definition.ts";

export interface NamedIndex {
  readonly number: number;
  readonly state: IndexState;
  /** Absent for the words of the full text. */
  readonly column?: string;
}

/** Progress of one pass through all objects of a class and its subclasses, for indexes that lack these objects. */
export interface IndexPass {
  readonly cid: number;
  /** Numbers of the indexes. */
  readonly indexes: readonly number[];
  /**
   * Number of objects when the filling began; absent until they are counted. Later objects are in the indexes from
   * their first write.
   */
  readonly total?: number;
  readonly done: number;
  readonly position?: Position;
  /** Reason why the pass cannot be finished. */
  readonly problem?: string;
}

interface Position {
  readonly step: string;
  /** Absent before the first page. */
  readonly cursor?: string;
}

/** Indexes of a class that lack its older objects. */
export function pendingIndexes(definition: ClassDefinition): NamedIndex[] {
  return indexesOf(definition).filter(({ state }) => state === "write-only");
}

/** State of each index of a class; `pass` is the current one through its objects, if any. */
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
