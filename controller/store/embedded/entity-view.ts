import { NUMBER_SLOTS } from "../../../common/limits.ts";
import { decodeStored } from "../format.ts";
import type { Entity, EntityKey, StoredCell } from "../objects.ts";
import type { PackedEntity } from "./entity-state.ts";

/** Key, time, value or null, moment. */
const MARK_FIELDS = 4;

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
    const marks = this.#packed[6];
    const birthUs = this.#packed[0];
    const cells = new Map<string, StoredCell>();
    let lastUs = birthUs;
    for (let i = 0; i < marks.length; i += MARK_FIELDS) {
      const timeUs = marks[i + 1] as number;
      if (timeUs > lastUs) lastUs = timeUs;
      if (this.#present(marks, i)) cells.set(marks[i] as string, { value: plain(marks[i + 2] as Uint8Array), timeUs });
    }
    return { key, birthUs, lastUs, cells, numbers: Array.from({ length: NUMBER_SLOTS }, (_, slot) => this.number(slot)) };
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
