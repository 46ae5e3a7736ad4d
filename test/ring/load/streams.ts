import type { TenantStore } from "../../../controller/store/engine.ts";
import type { Calls } from "./calls.ts";

const STREAM_PIECE_BYTES = 512;

/** Writers of streams, and what was acknowledged to them. */
export class StreamLoad {
  readonly #store: TenantStore;
  readonly #calls: Calls;
  /** The beginning of the names of all streams. */
  readonly #place: string;
  readonly #streams = new Map<string, number>();

  constructor(store: TenantStore, calls: Calls, place: string) {
    this.#store = store;
    this.#calls = calls;
    this.#place = place;
  }

  async append(name: string, round: number): Promise<void> {
    const stream = `${this.#place}/${name}`;
    const offset = round * STREAM_PIECE_BYTES;
    await this.#calls.make("write", () => this.#store.blobs.append(stream, offset, piece(round)));
    this.#streams.set(stream, offset + STREAM_PIECE_BYTES);
  }

  async check(): Promise<void> {
    for (const [stream, size] of this.#streams) {
      for (let offset = 0; offset < size; offset += STREAM_PIECE_BYTES) {
        const part = await this.#calls.make("read", () =>
          this.#store.blobs.readStream(stream, offset, STREAM_PIECE_BYTES),
        );
        if (part.size !== size || Buffer.compare(part.bytes, piece(offset / STREAM_PIECE_BYTES)) !== 0)
          return this.#calls.complain(`${stream} differs at ${offset}, ${part.size} of ${size} bytes.`);
      }
    }
  }
}

function piece(index: number): Uint8Array {
  return new Uint8Array(STREAM_PIECE_BYTES).fill(index % 251);
}
