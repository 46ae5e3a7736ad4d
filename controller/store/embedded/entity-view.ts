import { NUMBER_SLOTS } from "../../../common/limits.ts";
import { decodeStored } from "../format.ts";
import type { Entity, EntityKey, EntityTrace, StoredCell } from "../objects.ts";
import type { PackedEntity } from "./entity-state.ts";

/** Key, time, value or null, moment. */
const MARK_FIELDS = 4;
const NO_CELLS: ReadonlyMap<string, StoredCell> = new Map();

/** An entity for readers: what `EntityState` wrote, looked at in place, as of one moment. */
export class EntityView {
  readonly #packed: PackedEntity;
  readonly #nowMs: number;

  constructor(stored: Uint8Array, nowMs: number) {
    this.#packed = decodeStored<PackedEntity>(stored);
    this.#nowMs = nowMs;
  }

  get alive(): boolean {
    const [birthUs, birthExpiresMs] = this.#packed;
    return birthUs > 0 && (birthExpiresMs === 0 || birthExpiresMs > this.#nowMs);
  }

  /** Nothing has vanished since it was written, so the indexes say exactly what it has. */
  get settled(): boolean {
    return this.#packed[5] === 0 || this.#packed[5] > this.#nowMs;
  }

  bears(terms: readonly string[]): boolean {
    const marks = decodeStored<readonly unknown[]>(this.#packed[7]);
    return terms.every((term) => {
      for (let i = 0; i < marks.length; i += MARK_FIELDS) if (marks[i] === term) return this.#present(marks, i);
      return false;
    });
  }

  number(slot: number): number | undefined {
    const marks = this.#packed[8];
    for (let i = 0; i < marks.length; i += MARK_FIELDS) if (marks[i] === slot && this.#present(marks, i)) return marks[i + 2] as number;
    return undefined;
  }

  toEntity(key: EntityKey): Entity {
    const numbers = Array.from({ length: NUMBER_SLOTS }, (_, slot) => this.number(slot));
    return { key, birthUs: this.#packed[0], lastUs: this.#lastUs(), cells: this.#cells(), numbers };
  }

  toTrace(key: EntityKey): EntityTrace {
    const lastUs = this.#lastUs();
    if (this.alive) return { entity: this.toEntity(key), lastUs, leftover: NO_CELLS };
    return { entity: undefined, lastUs: Math.max(lastUs, this.#packed[2]), leftover: this.#cells() };
  }

  #cells(): Map<string, StoredCell> {
    const marks = this.#packed[6];
    const cells = new Map<string, StoredCell>();
    for (let i = 0; i < marks.length; i += MARK_FIELDS) {
      if (this.#present(marks, i)) cells.set(marks[i] as string, { value: plain(marks[i + 2] as Uint8Array), timeUs: marks[i + 1] as number });
    }
    return cells;
  }

  #lastUs(): number {
    let lastUs = this.#packed[0];
    for (const marks of [this.#packed[6], this.#packed[8]]) {
      for (let i = 1; i < marks.length; i += MARK_FIELDS) if ((marks[i] as number) > lastUs) lastUs = marks[i] as number;
    }
    return lastUs;
  }

  #present(marks: readonly unknown[], i: number): boolean {
    const atMs = marks[i + 3] as number;
    return marks[i + 2] !== null && (atMs === 0 || atMs > this.#nowMs);
  }
}

/** Bytes out of the decoder are a Buffer over a greater one. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}
