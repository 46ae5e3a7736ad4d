import { LOG_READ_BYTES } from "../../../common/limits.ts";
import { beginsWithHole, textEnds } from "./holes.ts";

/** Takes what is behind the place read of a life, which has an end. */
export interface RestSink {
  readonly unitBytes: 1 | 2;
  /** The place read is within a record whose beginning was sent. */
  isSkipping(): boolean;
  /** How many of the bytes are done with; all of them at the end. */
  take(bytes: Buffer, isEnd: boolean): Promise<number>;
  /** A hole of so many bytes is left out. */
  skip(bytes: Buffer): void;
}

/** Gives what a life ends with in pieces, without its holes: as a file that is there is read. */
export async function readRest(chunks: AsyncIterable<Buffer>, sink: RestSink): Promise<void> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < LOG_READ_BYTES) continue;
    const left = await take(Buffer.concat(held), sink, false);
    [held, bytes] = [[left], left.length];
  }
  await take(Buffer.concat(held), sink, true);
}

/** What is left for the next piece. */
async function take(bytes: Buffer, sink: RestSink, isEnd: boolean): Promise<Buffer> {
  let left = bytes;
  while (left.length >= (isEnd ? 1 : LOG_READ_BYTES)) {
    const isLast = isEnd && left.length <= LOG_READ_BYTES;
    left = left.subarray(await step(left.subarray(0, LOG_READ_BYTES), sink, isLast));
  }
  return left;
}

async function step(bytes: Buffer, sink: RestSink, isLast: boolean): Promise<number> {
  const { unitBytes } = sink;
  if (!beginsWithHole(bytes, unitBytes) || sink.isSkipping()) {
    const ends = textEnds(bytes, { unitBytes, isWhole: isLast });
    for (const end of ends) {
      const consumed = end === 0 ? 0 : await sink.take(bytes.subarray(0, end), isLast && end === ends.at(-1));
      if (consumed > 0) return consumed;
    }
  }
  const text = bytes.findIndex((byte) => byte !== 0);
  const hole = text < 0 ? bytes.length : text - (text % unitBytes);
  if (hole === 0) return sink.take(bytes, true);
  sink.skip(bytes.subarray(0, hole));
  return hole;
}
