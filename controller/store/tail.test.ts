import { expect, test } from "vitest";
import { AppError } from "../../common/errors.ts";
import { FOLLOW_PIECE_BYTES, FOLLOW_POLL_MS } from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import type { StreamPart } from "./blobs.ts";
import { AppendNotifier, tail, type Growing } from "./tail.ts";

/** A log that grows when a test says so. Time stands still unless a test advances it. */
class Log implements Growing {
  readonly appends = new AppendNotifier();
  bytes = "";
  isEnded = false;
  /** Runs after the next read has taken its bytes and before it returns them. */
  meanwhile: (() => void) | undefined;
  reads = 0;

  append(text: string, ends = false): void {
    this.bytes += text;
    this.isEnded ||= ends;
    this.appends.tell("log");
  }

  read(offset: number, maxBytes: number): Promise<StreamPart> {
    this.reads++;
    const part = { bytes: Buffer.from(this.bytes.slice(offset, offset + maxBytes)), size: this.bytes.length };
    const { meanwhile } = this;
    this.meanwhile = undefined;
    meanwhile?.();
    return Promise.resolve(part);
  }

  isOver(): Promise<boolean> {
    return Promise.resolve(this.isEnded);
  }

  onAppend(callback: () => void): () => void {
    return this.appends.on("log", callback);
  }
}

interface Started {
  readonly log?: Log;
  readonly from?: number;
  readonly mayRead?: () => Promise<void>;
}

function follow({ log = new Log(), from = 0, mayRead = () => Promise.resolve() }: Started = {}) {
  const clock = new TestClock();
  const leaving = new AbortController();
  const got: { text: string; isOver: boolean } = { text: "", isOver: false };
  const work = (async () => {
    for await (const piece of tail(log, { from, clock, signal: leaving.signal, mayRead })) {
      expect([piece.from, piece.to]).toEqual([from + got.text.length, piece.from + piece.bytes.length]);
      got.text += Buffer.from(piece.bytes).toString();
    }
    got.isOver = true;
  })();
  return { log, clock, leaving, got, work };
}

test("what is appended last, between the look at the end and the look at the bytes, is not missed", async () => {
  const { log, got, work } = follow();
  log.meanwhile = () => log.append("the last", true);
  await work;
  expect(got.text).toBe("the last");
});

test("what is appended while a read finds nothing is told without waiting for the next look", async () => {
  const { log, got, leaving, work } = follow();
  log.meanwhile = () => log.append("new");
  await expect.poll(() => got.text).toBe("new");
  leaving.abort();
  await work;
});

test("what others append without a word is found at the next look", async () => {
  const { log, clock, got, work } = follow();
  await expect.poll(() => clock.waiting).toBe(1);
  log.bytes = "of others";
  log.isEnded = true;
  clock.advance(FOLLOW_POLL_MS);
  await work;
  expect(got.text).toBe("of others");
});

test("a long past comes in pieces, each read when the one before was taken", async () => {
  const log = new Log();
  log.append("x".repeat(3 * FOLLOW_PIECE_BYTES + 1), true);
  const clock = new TestClock();
  const { signal } = new AbortController();
  const pieces = tail(log, { from: 1, clock, signal, mayRead: () => Promise.resolve() });
  for (const count of [1, 2, 3]) {
    expect((await pieces.next()).value).toMatchObject({ from: 1 + (count - 1) * FOLLOW_PIECE_BYTES });
    expect(log.reads).toBe(count);
  }
  expect(await pieces.next()).toMatchObject({ done: true });
});

test("a position that is not reached yet is waited for, and one behind the end is the end", async () => {
  const early = follow({ from: 3 });
  early.log.append("ab");
  early.log.append("cdef", true);
  await early.work;
  expect(early.got.text).toBe("def");
  const log = new Log();
  log.append("ab", true);
  const late = follow({ log, from: 5 });
  await late.work;
  expect(late.got.text).toBe("");
});

test("nothing is read for who may not, and it ends at once for who leaves; both leave nothing behind", async () => {
  let isAllowed = true;
  const refused = follow({
    mayRead: () => (isAllowed ? Promise.resolve() : Promise.reject(new AppError("denied", "no"))),
  });
  await expect.poll(() => refused.clock.waiting).toBe(1);
  const { reads } = refused.log;
  isAllowed = false;
  refused.log.append("unseen");
  await expect(refused.work).rejects.toMatchObject({ code: "denied" });
  expect([refused.log.reads, refused.clock.waiting]).toEqual([reads, 0]);
  const left = follow();
  await expect.poll(() => left.clock.waiting).toBe(1);
  left.leaving.abort();
  await left.work;
  expect(left.clock.waiting).toBe(0);
});
