import { decodeStored, FORMAT_ENTITY } from "../../format.ts";
import { ByteReader } from "../bytes/reader.ts";
import { ByteWriter } from "../bytes/writer.ts";
import { EntityState, type Mark } from "./state.ts";
import { asBuffer } from "../bytes/keys.ts";

/**
 * The form of an entity in `objects`. The data that readers need comes first, in one piece and without removals:
 *
 *     0  format
 *     1  birth, last write, time of the next visit (doubles)
 *    25  start of the rest; length of the keys in bytes (whole numbers of four bytes)
 *    33  keys of the cells; lengths of their values; the values
 *     …  the rest: ends, times of the cells, terms, numbers, removed cells
 *
 * Times are stored per run of neighbours that were written together: length and kind of the run, write time, expiry. A
 * zero ends the runs.
 */
export const ENTITY_PLACES = { birth: 1, last: 9, due: 17, rest: 25, keysLength: 29, keys: 33 } as const;

/** The names in the order of their flags, each with its default value, which is not written. */
const ENDS = {
  birthExpiresMs: 0,
  deathUs: 0,
  deathUntilMs: 0,
  forgottenUs: 0,
  endNamedUs: 0,
  endsAtMs: Infinity,
  endedUs: 0,
} as const;
type Ends = Record<keyof typeof ENDS, number>;
const END_NAMES = Object.keys(ENDS) as readonly (keyof typeof ENDS)[];

const REMOVED = 1;
const WITH_MOMENT = 2;
const KIND_BITS = 2;

/**
 * The form up to format 2 of an environment: times first, then flat lists of marks, each with key, time, value or null,
 * and expiry.
 */
type PackedEntity = readonly [
  ...times: [number, number, number, number, number, number],
  cells: readonly unknown[],
  terms: Uint8Array,
  numbers: readonly unknown[],
];
const PACKED_FIELDS = 4;

type Marks<K, T> = ReadonlyMap<K, Mark<T>>;

const writer = new ByteWriter();

export function encodeEntity(state: EntityState): Buffer {
  const cells = partedCells(state);
  writer.begin();
  writer.byte(FORMAT_ENTITY);
  writer.double(state.birthUs);
  writer.double(state.lastUs());
  writer.double(state.dueMs);
  // Placeholder for the two lengths, which are known later.
  writer.double(0);
  writeCells(cells.living);
  writer.setUint32(writer.length, ENTITY_PLACES.rest);
  writeEnds(state);
  writeRuns(cells.living, () => {});
  writeRuns(state.terms, (term) => writer.text(term));
  writeRuns(state.numbers, writeNumber);
  writeRuns(cells.removed, (key) => writer.text(key));
  return writer.copy();
}

const NO_CELLS: Marks<string, Uint8Array> = new Map();

/** Separates living and removed cells. Usually no cell is removed, and nothing must be copied. */
function partedCells({ cells }: EntityState): {
  readonly living: Marks<string, Uint8Array>;
  readonly removed: Marks<string, Uint8Array>;
} {
  let count = 0;
  cells.forEach(({ value }) => (count += value === undefined ? 1 : 0));
  if (count === 0) return { living: cells, removed: NO_CELLS };
  const removed = new Map<string, Mark<Uint8Array>>();
  cells.forEach((mark, key) => mark.value === undefined && removed.set(key, mark));
  const living = new Map(cells);
  for (const key of removed.keys()) living.delete(key);
  return { living, removed };
}

export function decodeEntity(stored: Uint8Array): EntityState {
  if (stored[0] !== FORMAT_ENTITY) return decodePacked(stored);
  const state = new EntityState();
  const bytes = asBuffer(stored);
  state.birthUs = bytes.readDoubleBE(ENTITY_PLACES.birth);
  state.dueMs = bytes.readDoubleBE(ENTITY_PLACES.due);
  const cells = readCells(bytes);
  const rest = restOf(bytes);
  Object.assign(state, readEnds(rest));
  let cell = 0;
  readRuns(rest, (mark) => {
    const [key, value] = cells[cell++]!;
    state.cells.set(key, { ...mark, value });
  });
  readRuns(rest, (mark, removed) => state.terms.set(rest.text(), { ...mark, value: removed ? undefined : true }));
  readRuns(rest, (mark, removed) =>
    state.numbers.set(rest.byte(), { ...mark, value: removed ? undefined : rest.double() }),
  );
  readRuns(rest, (mark) => state.cells.set(rest.text(), { ...mark, value: undefined }));
  return state;
}

/** Reads one run of times; `undefined` after the last run. */
export function readRun(reader: ByteReader): Run | undefined {
  const tag = reader.count();
  if (tag === 0) return undefined;
  const timeUs = reader.double();
  return {
    count: tag >>> KIND_BITS,
    removed: (tag & REMOVED) > 0,
    timeUs,
    atMs: (tag & WITH_MOMENT) > 0 ? reader.double() : 0,
  };
}

export interface Run {
  readonly count: number;
  readonly removed: boolean;
  readonly timeUs: number;
  readonly atMs: number;
}

/** The data after the ends: runs of the cells, of the terms, of the numbers, and of removed cells. */
export function behindEnds(bytes: Buffer): ByteReader {
  const reader = restOf(bytes);
  for (let flags = reader.byte(); flags > 0; flags >>= 1) if (flags & 1) reader.double();
  return reader;
}

export function endsOf(bytes: Buffer): Ends {
  return readEnds(restOf(bytes));
}

function restOf(bytes: Buffer): ByteReader {
  return new ByteReader(bytes, bytes.readUInt32BE(ENTITY_PLACES.rest));
}

function writeCells(cells: Marks<string, Uint8Array>): void {
  cells.forEach((_, key) => writer.text(key));
  writer.setUint32(writer.length - ENTITY_PLACES.keys, ENTITY_PLACES.keysLength);
  cells.forEach(({ value }) => writer.count(value!.length));
  cells.forEach(({ value }) => writer.put(value!));
}

function readCells(bytes: Buffer): readonly (readonly [key: string, value: Uint8Array])[] {
  const reader = new ByteReader(bytes, ENTITY_PLACES.keys);
  const end = ENTITY_PLACES.keys + bytes.readUInt32BE(ENTITY_PLACES.keysLength);
  const keys: string[] = [];
  while (reader.at < end) keys.push(reader.text());
  const lengths = keys.map(() => reader.count());
  return keys.map((key, at) => [key, reader.take(lengths[at]!)]);
}

/** Writes a byte of flags for the times that are present, then those times. */
function writeEnds(state: EntityState): void {
  const flagsAt = writer.length;
  let flags = 0;
  writer.byte(flags);
  for (let at = 0; at < END_NAMES.length; at += 1) {
    const name = END_NAMES[at]!;
    if (state[name] === ENDS[name]) continue;
    flags |= 1 << at;
    writer.double(state[name]);
  }
  writer.setByte(flags, flagsAt);
}

function readEnds(reader: ByteReader): Ends {
  const flags = reader.byte();
  const ends: Ends = { ...ENDS };
  for (const [at, name] of END_NAMES.entries()) if ((flags >> at) & 1) ends[name] = reader.double();
  return ends;
}

function writeRuns<K, T>(marks: Marks<K, T>, write: (key: K, value: T | undefined) => void): void {
  const lengths = runsOf(marks);
  let run = 0;
  let left = 0;
  marks.forEach((mark, key) => {
    if (left === 0) {
      left = lengths[run++]!;
      writer.count((left << KIND_BITS) | (mark.value === undefined ? REMOVED : 0) | (mark.atMs > 0 ? WITH_MOMENT : 0));
      writer.double(mark.timeUs);
      if (mark.atMs > 0) writer.double(mark.atMs);
    }
    left -= 1;
    write(key, mark.value);
  });
  writer.count(0);
}

/** Number of neighbours in each run. */
function runsOf<K, T>(marks: Marks<K, T>): readonly number[] {
  const lengths: number[] = [];
  let first: Mark<T> | undefined;
  marks.forEach((mark) => {
    if (first !== undefined && areOfOneWrite(first, mark)) lengths[lengths.length - 1]! += 1;
    else {
      first = mark;
      lengths.push(1);
    }
  });
  return lengths;
}

function areOfOneWrite<T>(one: Mark<T>, other: Mark<T>): boolean {
  return (
    one.timeUs === other.timeUs && one.atMs === other.atMs && (one.value === undefined) === (other.value === undefined)
  );
}

function readRuns(
  reader: ByteReader,
  read: (mark: { readonly timeUs: number; readonly atMs: number }, removed: boolean) => void,
): void {
  for (let run = readRun(reader); run !== undefined; run = readRun(reader)) {
    const { timeUs, atMs, removed } = run;
    for (let left = run.count; left > 0; left -= 1) read({ timeUs, atMs }, removed);
  }
}

function writeNumber(slot: number, value: number | undefined): void {
  writer.byte(slot);
  if (value !== undefined) writer.double(value);
}

function decodePacked(stored: Uint8Array): EntityState {
  const packed = decodeStored<PackedEntity>(stored);
  const state = new EntityState();
  [state.birthUs, state.birthExpiresMs, state.deathUs, state.deathUntilMs, state.forgottenUs, state.dueMs] = packed;
  unpackMarks(state.cells, packed[6]);
  unpackMarks(state.terms, decodeStored<readonly unknown[]>(packed[7]));
  unpackMarks(state.numbers, packed[8]);
  return state;
}

function unpackMarks<K, T>(marks: Map<K, Mark<T>>, flat: readonly unknown[]): void {
  for (let at = 0; at < flat.length; at += PACKED_FIELDS) {
    marks.set(flat[at] as K, {
      timeUs: flat[at + 1] as number,
      value: (flat[at + 2] as T | null) ?? undefined,
      atMs: flat[at + 3] as number,
    });
  }
}
