import type { CellChoice, Cells, StoredCell } from "./objects.ts";

/** Cells of a store that keeps each cell separately. */
export class SingleCells implements Cells {
  readonly keys: readonly string[];
  readonly #cells: ReadonlyMap<string, StoredCell>;

  constructor(cells: ReadonlyMap<string, StoredCell>) {
    this.keys = [...cells.keys()];
    this.#cells = cells;
  }

  bytes(place: number): Buffer {
    const { value } = this.#at(place);
    return Buffer.from(value.buffer, value.byteOffset, value.length);
  }

  start(): number {
    return 0;
  }

  end(place: number): number {
    return this.#at(place).value.length;
  }

  timeUs(place: number): number {
    return this.#at(place).timeUs;
  }

  get(key: string): StoredCell | undefined {
    return this.#cells.get(key);
  }

  #at(place: number): StoredCell {
    const cell = this.#cells.get(this.keys[place] ?? "");
    if (cell === undefined) throw new RangeError(`There is no cell ${place}.`);
    return cell;
  }
}

/** No cells: for reads that only check whether an object exists. */
export const PRESENCE: CellChoice = { keys: [], prefixes: [] };

export const NO_CELLS: Cells = new SingleCells(new Map());

/** True if the choice includes the cell. */
export function isChosen(key: string, { keys, prefixes }: CellChoice): boolean {
  return keys.includes(key) || prefixes.some((prefix) => key.startsWith(prefix));
}

/** The cells by their keys. */
export function cellMap(cells: Cells): Map<string, StoredCell> {
  return new Map(
    cells.keys.map((key, place) => {
      const value = new Uint8Array(cells.bytes(place).subarray(cells.start(place), cells.end(place)));
      return [key, { value, timeUs: cells.timeUs(place) }];
    }),
  );
}
