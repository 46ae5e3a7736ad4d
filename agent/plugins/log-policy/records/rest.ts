import { isAppError } from "../../../../common/errors.ts";
import { LOG_READ_BYTES, LOG_READ_MIN_BYTES, LOG_TAIL_BYTES } from "../../../../common/limits.ts";
import type { UnpackedPiece } from "../packed.ts";
import type { UnpackingJob } from "../unpacking.ts";
import { beginsWithHole, textEnds } from "./holes.ts";

/** Receives the rest of a finished life, from its read position on. `before`: the last bytes before the given ones. */
export interface RestSink {
  readonly unitBytes: 1 | 2;
  /** True if the read position is within a record whose beginning was sent. */
  isSkipping(): boolean;
  /** Answers how many of the bytes were taken: all of them if `isEnd`. If it throws, none were taken. */
  take(bytes: Buffer, isEnd: boolean, before: Buffer): Promise<number>;
  /** Skips the bytes of a hole. */
  skip(bytes: Buffer, before: Buffer): void;
}

interface Rest {
  readonly sink: RestSink;
  before: Buffer;
}

/**
 * Passes the rest of a life to the sink in pieces, without holes. The records are the same as if they were read from
 * the unpacked file. Yields the number of unpacked bytes.
 */
export async function* readRest(chunks: AsyncIterable<UnpackedPiece>, sink: RestSink): UnpackingJob<void> {
  const rest: Rest = { sink, before: Buffer.alloc(0) };
  let held: Buffer[] = [];
  let length = 0;
  for await (const { bytes, unpacked } of chunks) {
    held.push(bytes);
    length += bytes.length;
    if (length >= LOG_READ_BYTES) {
      const left = await take(Buffer.concat(held), rest, false);
      [held, length] = [[left], left.length];
    }
    yield unpacked;
  }
  await take(Buffer.concat(held), rest, true);
}

/** Passes bytes to the sink. Answers the bytes that are left for the next piece. */
async function take(bytes: Buffer, rest: Rest, isEnd: boolean): Promise<Buffer> {
  let left = bytes;
  while (left.length >= (isEnd ? 1 : LOG_READ_BYTES)) {
    const isLast = isEnd && left.length <= LOG_READ_BYTES;
    const done = await step(left.subarray(0, LOG_READ_BYTES), rest, isLast);
    const last = left.subarray(Math.max(0, done - LOG_TAIL_BYTES), done);
    rest.before = Buffer.concat([rest.before, last]).subarray(-LOG_TAIL_BYTES);
    left = left.subarray(done);
  }
  return left;
}

async function step(bytes: Buffer, { sink, before }: Rest, isLast: boolean): Promise<number> {
  const { unitBytes } = sink;
  if (!beginsWithHole(bytes, unitBytes) || sink.isSkipping()) {
    const ends = textEnds(bytes, { unitBytes, isWhole: isLast });
    for (const end of ends) {
      const isEnd = isLast && end === ends.at(-1);
      const consumed = end === 0 ? 0 : await taken(bytes.subarray(0, end), { sink, before }, isEnd);
      if (consumed > 0) return consumed;
    }
  }
  const text = bytes.findIndex((byte) => byte !== 0);
  const hole = text < 0 ? bytes.length : text - (text % unitBytes);
  if (hole === 0) return sink.take(bytes, true, before);
  sink.skip(bytes.subarray(0, hole), before);
  return hole;
}

/** Passes bytes to the sink. If they make too many entries for one write, it passes half of them. */
async function taken(bytes: Buffer, rest: Rest, isEnd: boolean): Promise<number> {
  const { sink, before } = rest;
  try {
    return await sink.take(bytes, isEnd, before);
  } catch (error) {
    if (!isAppError(error, "too_large") || !mayBeDivided(error, bytes.length)) throw error;
    const half = Math.floor(bytes.length / 2);
    return taken(bytes.subarray(0, half - (half % sink.unitBytes)), rest, false);
  }
}

/**
 * True if fewer bytes may succeed: the outbox has little room, or the bytes make too many entries for one write. The
 * second happens when heading lines are frequent, because each one begins a new entry.
 */
export function mayBeDivided(error: unknown, bytes: number): boolean {
  return isAppError(error, "limited") || (isAppError(error, "too_large") && bytes > LOG_READ_MIN_BYTES);
}
