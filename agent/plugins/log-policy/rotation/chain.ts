import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import {
  LOG_CHECK_BYTES,
  LOG_CHECK_FINE_UNTIL_BYTES,
  LOG_HEAD_BYTES,
  LOG_READ_BYTES,
} from "../../../../common/limits.ts";
import { readAt } from "../reading.ts";

/**
 * Hash of the first `bytes` of a file. It covers the last block and the checkpoint before it. The first blocks are
 * small, because files with the same heading differ soon after it.
 */
export type Checkpoint = readonly [bytes: number, hash: string];

const START: Checkpoint = [0, ""];

/** Adds the checkpoints of `bytes`, which begin at the last checkpoint of the chain. */
export function extendChain(chain: readonly Checkpoint[], bytes: Uint8Array): Checkpoint[] {
  return thin([...chain, ...checkpoints(chain.at(-1) ?? START, bytes)]);
}

/**
 * Compares a file with a chain. Answers the number of bytes that are proven to be equal; undefined when the file
 * differs.
 */
export async function matchChain(
  file: FileHandle,
  chain: readonly Checkpoint[],
  size: number,
): Promise<number | undefined> {
  const expected = new Map(chain);
  const through = chain.findLast(([bytes]) => bytes <= size)?.[0] ?? 0;
  let last = START;
  while (last[0] < through) {
    const bytes = await readAt(file, last[0], Math.min(LOG_READ_BYTES, through - last[0]));
    const found = checkpoints(last, bytes);
    if (found.some(([end, hash]) => (expected.get(end) ?? hash) !== hash)) return undefined;
    last = found.at(-1) ?? START;
    // The file was truncated meanwhile.
    if (found.length === 0) return undefined;
  }
  return through;
}

function checkpoints([start, hash]: Checkpoint, bytes: Uint8Array): Checkpoint[] {
  const found: Checkpoint[] = [];
  let at = start;
  let last = hash;
  for (let end = endOfBlock(at); end - start <= bytes.length; end = endOfBlock(at)) {
    last = createHash("sha256")
      .update(last)
      .update(bytes.subarray(at - start, end - start))
      .digest("base64")
      .slice(0, HASH_CHARACTERS);
    found.push([end, last]);
    at = end;
  }
  return found;
}

const HASH_CHARACTERS = 12;

function endOfBlock(start: number): number {
  return start + (start < LOG_CHECK_FINE_UNTIL_BYTES ? LOG_HEAD_BYTES : LOG_CHECK_BYTES);
}

/**
 * Removes a checkpoint if its neighbours are no further apart than the first of them is from the beginning, and the
 * second from the end. A few dozen remain for a file of any length.
 */
function thin(chain: readonly Checkpoint[]): Checkpoint[] {
  const end = chain.at(-1)?.[0] ?? 0;
  const kept: Checkpoint[] = [];
  for (const [index, checkpoint] of chain.entries()) {
    const before = kept.at(-1)?.[0] ?? 0;
    const after = chain[index + 1]?.[0];
    if (after === undefined || after - before > Math.min(before, end - after)) kept.push(checkpoint);
  }
  return kept;
}
