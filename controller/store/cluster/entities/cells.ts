import type { Cells, StoredCell } from "../../objects.ts";

const TIME_BYTES = 8;
/** Times are written as signed 64-bit numbers in two halves, because a bigint would cost more than everything else. */
const LOW = 2 ** 32;

/**
 * A cell's value with its write time in front, because Cassandra cannot return the write time of a single map element.
 */
export function stampedCell(timeUs: number, value: Uint8Array): Buffer {
  const stamped = Buffer.allocUnsafe(TIME_BYTES + value.length);
  stamped.writeInt32BE(Math.floor(timeUs / LOW), 0);
  stamped.writeUInt32BE(timeUs % LOW, TIME_BYTES / 2);
  stamped.set(value, TIME_BYTES);
  return stamped;
}

/** The write time of a cell. */
export function stampUs(stamped: Buffer): number {
  return stamped.readInt32BE(0) * LOW + stamped.readUInt32BE(TIME_BYTES / 2);
}

let latestKeys: readonly string[] = [];

/** The list of the previous entity, if it has the same keys. */
function sharedKeys(keys: readonly string[]): readonly string[] {
  const same = keys.length === latestKeys.length && keys.every((key, at) => key === latestKeys[at]);
  return same ? latestKeys : (latestKeys = keys);
}

/** Cells as the driver returns them, each in its own buffer. */
export class StampedCells implements Cells {
  readonly keys: readonly string[];
  readonly #cells: readonly Buffer[];

  constructor(cells: ReadonlyMap<string, Buffer>) {
    this.keys = sharedKeys([...cells.keys()]);
    this.#cells = [...cells.values()];
  }

  bytes(place: number): Buffer {
    return this.#cells[place]!;
  }

  start(): number {
    return TIME_BYTES;
  }

  end(place: number): number {
    return this.#cells[place]!.length;
  }

  timeUs(place: number): number {
    return stampUs(this.#cells[place]!);
  }

  get(key: string): StoredCell | undefined {
    const place = this.keys.indexOf(key);
    // A copy, because the driver's buffers are windows on whole answers.
    return place < 0
      ? undefined
      : { timeUs: this.timeUs(place), value: new Uint8Array(this.#cells[place]!.subarray(TIME_BYTES)) };
  }
}
