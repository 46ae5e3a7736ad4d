import { NUMBER_SLOTS } from "../../../../common/limits.ts";
import { NO_CELLS } from "../../cells.ts";
import { FORMAT_ENTITY } from "../../format.ts";
import type { Cells, Entity, EntityKey, EntityTrace, StoredCell } from "../../objects.ts";
import { ByteReader } from "../bytes/reader.ts";
import { behindEnds, decodeEntity, encodeEntity, endsOf, ENTITY_PLACES, readRun } from "./form.ts";
import type { KeyLists } from "./key-lists.ts";
import { asBuffer } from "../bytes/keys.ts";

/** With more cells than this, a map is used to find a cell by its key. */
const FEW_CELLS = 32;

export interface ViewContext {
  readonly lists: KeyLists;
  readonly nowMs: number;
}

/** An entity for readers as of one moment, read in place. */
export class EntityView implements Entity {
  readonly key: EntityKey;
  /** 0: the entity is not alive. */
  readonly birthUs: number;
  /** True if a part has expired since it was written, so that the indexes may contain more than the entity has. */
  readonly changed: boolean;
  readonly #bytes: Buffer;
  readonly #lists: KeyLists;
  #cells: Cells | undefined;

  private constructor(
    key: EntityKey,
    bytes: Buffer,
    { lists, changed }: { readonly lists: KeyLists; readonly changed: boolean },
  ) {
    this.key = key;
    this.changed = changed;
    this.birthUs = bytes.readDoubleBE(ENTITY_PLACES.birth);
    this.#bytes = bytes;
    this.#lists = lists;
  }

  static of(key: EntityKey, stored: Uint8Array, { lists, nowMs }: ViewContext): EntityView {
    const bytes = asBuffer(stored);
    const dueMs = bytes[0] === FORMAT_ENTITY ? bytes.readDoubleBE(ENTITY_PLACES.due) : nowMs;
    const changed = dueMs > 0 && dueMs <= nowMs;
    return new EntityView(key, changed ? settled(stored, nowMs) : bytes, { lists, changed });
  }

  get alive(): boolean {
    return this.birthUs > 0;
  }

  get lastUs(): number {
    return this.#bytes.readDoubleBE(ENTITY_PLACES.last);
  }

  get diedUs(): number {
    return endsOf(this.#bytes).deathUs;
  }

  get endsAtMs(): number | undefined {
    const { endNamedUs, endsAtMs } = endsOf(this.#bytes);
    return endNamedUs === 0 ? undefined : endsAtMs;
  }

  get cells(): Cells {
    return (this.#cells ??= new StoredCells(this.#bytes, this.#lists));
  }

  get numbers(): readonly (number | undefined)[] {
    const reader = behindEnds(this.#bytes);
    eachMark(reader, () => {});
    eachMark(reader, () => passText(reader));
    const numbers = new Array<number | undefined>(NUMBER_SLOTS).fill(undefined);
    eachMark(reader, (removed) => {
      numbers[reader.byte()] = removed ? undefined : reader.double();
    });
    return numbers;
  }

  /** True if the entity has all of these terms, given in UTF-8, each once. */
  bears(terms: readonly Uint8Array[]): boolean {
    const reader = behindEnds(this.#bytes);
    eachMark(reader, () => {});
    let borne = 0;
    eachMark(reader, (removed) => {
      const length = reader.count();
      if (!removed && terms.some((term) => this.#lies(term, reader.at, length))) borne += 1;
      reader.at += length;
    });
    return borne === terms.length;
  }

  toTrace(): EntityTrace {
    if (this.alive) return { entity: this, lastUs: this.lastUs, leftover: NO_CELLS };
    const { deathUs, endedUs } = endsOf(this.#bytes);
    const trace = { entity: undefined, lastUs: Math.max(this.lastUs, deathUs), leftover: this.cells };
    return endedUs === 0 ? trace : { ...trace, endedUs };
  }

  #lies(term: Uint8Array, start: number, length: number): boolean {
    if (term.length !== length) return false;
    for (let at = 0; at < length; at += 1) if (term[at] !== this.#bytes[start + at]) return false;
    return true;
  }
}

/** The stored entity in the current form, without the parts that have expired since it was written. */
function settled(stored: Uint8Array, nowMs: number): Buffer {
  const state = decodeEntity(stored);
  state.settle(nowMs);
  return encodeEntity(state);
}

function eachMark(reader: ByteReader, visit: (removed: boolean) => void): void {
  for (let run = readRun(reader); run !== undefined; run = readRun(reader)) {
    for (let left = run.count; left > 0; left -= 1) visit(run.removed);
  }
}

function passText(reader: ByteReader): void {
  const length = reader.count();
  reader.at += length;
}

class StoredCells implements Cells {
  readonly keys: readonly string[];
  readonly #bytes: Buffer;
  /** Start of each value, and the end of the last one. */
  readonly #bounds: readonly number[];
  #times: readonly number[] | undefined;
  #places: ReadonlyMap<string, number> | undefined;

  constructor(bytes: Buffer, lists: KeyLists) {
    const keysEnd = ENTITY_PLACES.keys + bytes.readUInt32BE(ENTITY_PLACES.keysLength);
    this.keys = lists.at(bytes, ENTITY_PLACES.keys, keysEnd);
    this.#bytes = bytes;
    this.#bounds = boundsOf(new ByteReader(bytes, keysEnd), this.keys.length);
  }

  bytes(): Buffer {
    return this.#bytes;
  }

  start(place: number): number {
    return this.#bounds[place]!;
  }

  end(place: number): number {
    return this.#bounds[place + 1]!;
  }

  timeUs(place: number): number {
    this.#times ??= timesOf(this.#bytes);
    return this.#times[place]!;
  }

  get(key: string): StoredCell | undefined {
    const place = this.#placeOf(key);
    if (place < 0) return undefined;
    const start = this.start(place);
    return {
      value: new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + start, this.end(place) - start),
      timeUs: this.timeUs(place),
    };
  }

  #placeOf(key: string): number {
    if (this.keys.length <= FEW_CELLS) return this.keys.indexOf(key);
    this.#places ??= new Map(this.keys.map((each, place) => [each, place]));
    return this.#places.get(key) ?? -1;
  }
}

function timesOf(bytes: Buffer): readonly number[] {
  const reader = behindEnds(bytes);
  const times: number[] = [];
  for (let run = readRun(reader); run !== undefined; run = readRun(reader)) {
    for (let left = run.count; left > 0; left -= 1) times.push(run.timeUs);
  }
  return times;
}

function boundsOf(reader: ByteReader, count: number): number[] {
  const bounds = new Array<number>(count + 1);
  bounds[0] = 0;
  for (let place = 0; place < count; place += 1) bounds[place + 1] = bounds[place]! + reader.count();
  // The values begin after their lengths.
  for (let place = 0; place <= count; place += 1) bounds[place]! += reader.at;
  return bounds;
}
