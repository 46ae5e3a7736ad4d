import type { types } from "cassandra-driver";
import { CELLS_CHOSEN_MAX } from "../../../../common/limits.ts";
import type { CellChoice, Cells } from "../../objects.ts";
import type { CqlValue } from "../cassandra/cassandra.ts";
import { StampedCells } from "./cells.ts";

/** The part of a statement that selects the cells of an entity. */
export interface Selection {
  /** The end of a select list. */
  readonly text: string;
  /** The values of its `?`. */
  readonly params: readonly CqlValue[];
  readonly isWhole: boolean;
  cells(row: types.Row): Cells;
}

export const WHOLE: Selection = {
  text: ", attrs",
  params: [],
  isWhole: true,
  cells: (row) => new StampedCells((row.attrs as ReadonlyMap<string, Buffer> | null) ?? new Map()),
};

/** Only the chosen cells are read from disk; with more than `CELLS_CHOSEN_MAX` keys and prefixes all are. */
export function selectionOf(choice: CellChoice | undefined): Selection {
  if (choice === undefined || choice.keys.length + choice.prefixes.length > CELLS_CHOSEN_MAX) return WHOLE;
  const { keys, prefixes } = choice;
  const singles = keys.map((key, at) => ({ key, column: `k${at}` }));
  const slices = prefixes.map((prefix, at) => ({ prefix, column: `p${at}` }));
  return {
    text: [
      ...singles.map(({ column }) => `, attrs[?] AS ${column}`),
      ...slices.map(({ column }) => `, attrs[?..?] AS ${column}`),
    ].join(""),
    params: [...keys, ...prefixes.flatMap((prefix) => [prefix, behind(prefix)])],
    isWhole: false,
    cells(row) {
      const cells = new Map<string, Buffer>();
      for (const { key, column } of singles) {
        const cell = row[column] as Buffer | null;
        if (cell !== null) cells.set(key, cell);
      }
      for (const { prefix, column } of slices)
        for (const [key, cell] of (row[column] as ReadonlyMap<string, Buffer> | null) ?? [])
          if (key.startsWith(prefix)) cells.set(key, cell);
      return new StampedCells(cells);
    },
  };
}

/**
 * The first text after all texts with this prefix. The prefix ends in a slash, which `0` follows in ASCII. The slice of
 * Cassandra includes this end.
 */
function behind(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}
