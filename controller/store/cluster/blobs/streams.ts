import { AppError } from "../../../../common/errors.ts";
import { BLOB_CHUNK_MAX_BYTES } from "../../../../common/limits.ts";
import type { StreamPart } from "../../blobs.ts";
import type { types } from "cassandra-driver";
import type { Tables } from "../tables.ts";

/** Bytes of a stream per part (a partition of `chunks`). More than a chunk, so that a chunk begins in every part. */
const PART_BYTES = 16 * BLOB_CHUNK_MAX_BYTES;
const READ_MAX_BYTES = 4 * BLOB_CHUNK_MAX_BYTES;
const CHUNKS_PER_READ = 16;

/**
 * Append streams. A stream is stored as chunks of at most `BLOB_CHUNK_MAX_BYTES`, each under its offset. Only one
 * producer may append to a stream: appends of one process are queued, but simultaneous appends of two controllers do
 * not see each other.
 */
export class Streams {
  readonly #tables: Tables;
  readonly #appending = new Map<string, Promise<unknown>>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    const before = this.#appending.get(stream) ?? Promise.resolve();
    const mine = before.then(() => this.#append(stream, offset, bytes));
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#appending.set(stream, settled);
    void settled.then(() => {
      if (this.#appending.get(stream) === settled) this.#appending.delete(stream);
    });
    return mine;
  }

  async read(stream: string, offset: number, maxBytes: number): Promise<StreamPart> {
    const size = await this.#size(stream);
    const end = Math.min(size, offset + Math.min(maxBytes, READ_MAX_BYTES));
    const pieces: Uint8Array[] = [];
    let position = offset;
    while (position < end) {
      const found = await this.#chunksFrom(stream, position);
      const reached = collect(found, position, end, pieces);
      if (reached === position) throw new AppError("internal", `Stream ${stream} has a hole at ${position}.`);
      position = reached;
    }
    return { bytes: new Uint8Array(Buffer.concat(pieces)), size };
  }

  async remove(stream: string): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const last = await this.#lastPart(stream);
    for (let part = 0; part <= (last ?? -1); part++) {
      const query = `DELETE FROM ${keyspace}.chunks USING TIMESTAMP ? WHERE content = ? AND part = ?`;
      await cassandra.write(
        [{ query, params: [BigInt(cassandra.nextTimeUs()), streamName(stream), part] }],
        cassandra.deadline(),
      );
    }
    const query = `DELETE FROM ${keyspace}.contents USING TIMESTAMP ? WHERE content = ?`;
    await cassandra.write(
      [{ query, params: [BigInt(cassandra.nextTimeUs()), streamName(stream)] }],
      cassandra.deadline(),
    );
  }

  async #append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new AppError("invalid", "An offset is a whole number from 0.");
    const size = await this.#size(stream);
    if (offset > size)
      throw new AppError("conflict", `The stream has ${size} bytes, so nothing can begin at ${offset}.`, {
        details: { size },
      });
    const known = Math.min(bytes.length, size - offset);
    await this.#compare(stream, offset, bytes.subarray(0, known));
    let position = size;
    for (let at = known; at < bytes.length; at += BLOB_CHUNK_MAX_BYTES) {
      const chunk = bytes.slice(at, at + BLOB_CHUNK_MAX_BYTES);
      await this.#writeChunk(stream, position, chunk);
      position += chunk.length;
    }
    return { size: position };
  }

  async #compare(stream: string, offset: number, bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) {
      const written = await this.read(stream, offset + at, bytes.length - at);
      if (!Buffer.from(written.bytes).equals(bytes.subarray(at, at + written.bytes.length))) {
        throw new AppError("conflict", `The stream has other bytes at ${offset}.`, { details: { size: written.size } });
      }
      at += written.bytes.length;
    }
  }

  async #writeChunk(stream: string, position: number, bytes: Uint8Array): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const part = Math.floor(position / PART_BYTES);
    const deadline = cassandra.deadline();
    if (part !== (await this.#lastPart(stream))) {
      const query = `UPDATE ${keyspace}.contents USING TIMESTAMP ? SET size = 0 WHERE content = ? AND kind = 'part' AND name = ?`;
      await cassandra.write(
        [{ query, params: [BigInt(cassandra.nextTimeUs()), streamName(stream), partName(part)] }],
        deadline,
      );
    }
    const query = `UPDATE ${keyspace}.chunks USING TIMESTAMP ? SET length = ?, bytes = ? WHERE content = ? AND part = ? AND position = ?`;
    const params = [BigInt(cassandra.nextTimeUs()), bytes.length, bytes, streamName(stream), part, BigInt(position)];
    await cassandra.write([{ query, params }], deadline);
  }

  /**
   * The end of the last chunk. A part is recorded before its first chunk exists; until then the last chunk is in an
   * earlier part.
   */
  async #size(stream: string): Promise<number> {
    const { cassandra, keyspace } = this.#tables;
    const last = await this.#lastPart(stream);
    for (let part = last ?? -1; part >= 0; part--) {
      const query = `SELECT position, length FROM ${keyspace}.chunks WHERE content = ? AND part = ? LIMIT 1`;
      const [row] = await cassandra.read({ query, params: [streamName(stream), part] }, cassandra.deadline());
      if (row !== undefined) return Number(row.position) + Number(row.length);
    }
    return 0;
  }

  async #lastPart(stream: string): Promise<number | undefined> {
    const { cassandra, keyspace } = this.#tables;
    const query = `SELECT name FROM ${keyspace}.contents WHERE content = ? AND kind = 'part' ORDER BY kind DESC, name DESC LIMIT 1`;
    const [row] = await cassandra.read({ query, params: [streamName(stream)] }, cassandra.deadline());
    return row === undefined ? undefined : Number(row.name);
  }

  /** Some chunks in order, beginning with the one that contains `position`. */
  async #chunksFrom(stream: string, position: number): Promise<readonly types.Row[]> {
    const { cassandra, keyspace } = this.#tables;
    const deadline = cassandra.deadline();
    const columns = `SELECT position, bytes FROM ${keyspace}.chunks WHERE content = ? AND part = ?`;
    const part = Math.floor(position / PART_BYTES);
    for (const candidate of part === 0 ? [0] : [part, part - 1]) {
      const place = [streamName(stream), candidate];
      const query = `${columns} AND position <= ? LIMIT 1`;
      const [first] = await cassandra.read({ query, params: [...place, BigInt(position)] }, deadline);
      if (first === undefined) continue;
      const more = `${columns} AND position > ? ORDER BY position ASC`;
      const page = await cassandra.page(
        { query: more, params: [...place, BigInt(position)] },
        { size: CHUNKS_PER_READ },
        deadline,
      );
      return [first, ...page.rows];
    }
    return [];
  }
}

/** Collects the bytes in [position, end) and returns the position reached. */
function collect(rows: readonly types.Row[], position: number, end: number, pieces: Uint8Array[]): number {
  let reached = position;
  for (const row of rows) {
    const first = Number(row.position);
    const bytes = row.bytes as Buffer;
    if (reached >= end || first > reached) break;
    const piece = bytes.subarray(reached - first, end - first);
    pieces.push(piece);
    reached += piece.length;
  }
  return reached;
}

function streamName(stream: string): string {
  return `s/${stream}`;
}

/** Padded, so that names sort like numbers. */
function partName(part: number): string {
  return String(part).padStart(10, "0");
}
