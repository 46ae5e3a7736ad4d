import type { Cells, StoredCell } from "../objects.ts";

const TIME_BYTES = 8;
/**
 * Times are written as signed numbers of 64 bits, in two halves: a bigint on the way would cost more than all the rest.
 */
const LOW = 2 ** 32;

/** The time of a cell's write stands before its value: the times Cassandra keeps cannot be asked for by element. */
export function stampedCell(timeUs: number, value: Uint8Array): Buffer {
  const stamped = Buffer.allocUnsafe(TIME_BYTES + value.length);
  stamped.writeInt32BE(Math.floor(timeUs / LOW), 0);
  stamped.writeUInt32BE(timeUs % LOW, TIME_BYTES / 2);
  stamped.set(value, TIME_BYTES);
  return stamped;
}

/** The time of a cell's write. */
export function stampUs(stamped: Buffer): number {
  return stamped.readInt32BE(0) * LOW + stamped.readUInt32BE(TIME_BYTES / 2);
}

let latestKeys: readonly string[] = [];

/** The list of the entity before, when it is the same. */
function sharedKeys(keys: readonly string[]): readonly string[] {
  const same = keys.length === latestKeys.length && keys.every((key, at) => key === latestKeys[at]);
  return same ? latestKeys : (latestKeys = keys);
}

/** Cells as the driver hands them out, each by itself. */
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
    // Its own copy: the driver's buffers are windows on whole answers.
    return place < 0
      ? undefined
      : { timeUs: this.timeUs(place), value: new Uint8Array(this.#cells[place]!.subarray(TIME_BYTES)) };
  }
}
