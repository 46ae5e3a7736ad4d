import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { INGEST_STREAMS_PER_HOST_MAX, INGEST_WRITE_SPAN_US } from "../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import { wrappedKv } from "../../../test/helpers/wrapped-kv.ts";
import { decodeStored } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";
import { HeldStream, writeTimeUs } from "./held-stream.ts";
import { MarkStore } from "./store.ts";

let engine: TestEngine;
let kv: KvStore;
beforeAll(async () => {
  engine = await openTestEngine();
  ({ kv } = await engine.tenant("matrix"));
});
afterAll(() => engine[Symbol.asyncDispose]());

let streams = 0;
let claims = 0;
const newStream = () => `stream-${String(++streams).padStart(4, "0")}`;
const NOW_MS = 1_000_000;

interface From {
  readonly host?: string;
  readonly over?: KvStore;
}

function claim(streamId: string, { host = "web-1", over = kv }: From = {}) {
  const marks = new MarkStore(over);
  return HeldStream.claim({ marks, streamId, host, claim: `claim-${++claims}`, nowMs: () => NOW_MS });
}

const batch = (first: number, last: number) => ({ first, last, rules: {} });

describe("a stream's holder", () => {
  test("is who claimed it last; a former one can neither begin nor finish anything", async () => {
    const streamId = newStream();
    const former = await claim(streamId);
    await former.begin(batch(1, 2));
    const holder = await claim(streamId);
    expect(holder.mark).toMatchObject({ acknowledged: 0, begun: batch(1, 2) });
    await expect(former.finish(2)).rejects.toMatchObject({ code: "conflict" });
    await expect(former.begin(batch(3, 4))).rejects.toMatchObject({ code: "conflict" });
    await holder.finish(2);
    expect((await claim(streamId)).mark.acknowledged).toBe(2);
  });

  test("claims again when another one was faster, and gives up when others always are", async () => {
    const streamId = newStream();
    let faster = 1;
    const raced = wrappedKv(kv, {
      put: async (...call) => {
        if (call[0] === `ingest/${streamId}` && faster-- > 0) await claim(streamId);
        return kv.put(...call);
      },
    });
    const holder = await claim(streamId, { over: raced });
    await holder.finish(1);
    faster = Infinity;
    await expect(claim(streamId, { over: raced })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("holds the stream though the answer to its claim was lost", async () => {
    const told = new Set<string>();
    const lossy = wrappedKv(kv, {
      put: async (...call) => {
        const written = await kv.put(...call);
        if (told.has(call[0])) return written;
        told.add(call[0]);
        throw new AppError("unknown_outcome", "perhaps");
      },
    });
    const holder = await claim(newStream(), { over: lossy });
    await holder.finish(3);
    expect(holder.mark.acknowledged).toBe(3);
  });

  test("does one piece of work after the other, and goes on after one that failed", async () => {
    const holder = await claim(newStream());
    const done: string[] = [];
    const first = holder.inTurn(async () => {
      await Promise.resolve();
      done.push("first");
      throw new Error("no");
    });
    const second = holder.inTurn(() => Promise.resolve(done.push("second")));
    await expect(first).rejects.toThrow("no");
    await second;
    expect(done).toEqual(["first", "second"]);
  });

  test("finishes a part of what was begun, and the rest is still what is repeated", async () => {
    const holder = await claim(newStream());
    const begun = await holder.begin(batch(1, 3));
    await holder.finish(2);
    expect(holder.mark).toMatchObject({ acknowledged: 2, begun });
    await holder.finish(3);
    expect(holder.mark).toMatchObject({ acknowledged: 3 });
    expect(holder.mark.begun).toBeUndefined();
  });
});

describe("times of writes", () => {
  test("lie above the present millisecond and all earlier ones of the stream, but no higher than needed", async () => {
    const holder = await claim(newStream());
    const first = await holder.begin(batch(5, 7));
    expect(first.writeUs).toBe((NOW_MS + 1) * 1_000);
    const second = await holder.begin(batch(8, 8));
    expect(second.writeUs).toBe(first.writeUs + 3 * INGEST_WRITE_SPAN_US);
    expect(writeTimeUs(second, 8, 0)).toBeGreaterThan(writeTimeUs(first, 7, 10 * INGEST_WRITE_SPAN_US));
    expect(holder.mark.nextWriteUs).toBe(second.writeUs + INGEST_WRITE_SPAN_US);
  });

  test("rise with the sequence and with the ordinal, as far as an entry has times of its own", () => {
    const begun = { ...batch(5, 7), writeUs: 100 };
    expect([writeTimeUs(begun, 5, 0), writeTimeUs(begun, 5, 1)]).toEqual([100, 101]);
    expect(writeTimeUs(begun, 6, 0)).toBe(100 + INGEST_WRITE_SPAN_US);
    expect(writeTimeUs(begun, 5, INGEST_WRITE_SPAN_US)).toBe(99 + INGEST_WRITE_SPAN_US);
  });
});

describe("the marks of a host", () => {
  const begun = async (host: string) => {
    const streamId = newStream();
    const holder = await claim(streamId, { host });
    await holder.finish(7);
    return { streamId, holder };
  };
  const fill = async (host: string) => {
    const [oldest, next] = [await begun(host), await begun(host)];
    const all = [oldest, next];
    while (all.length < INGEST_STREAMS_PER_HOST_MAX) all.push(await begun(host));
    return { oldest, next, all };
  };
  const isKept = async (streamId: string) => (await kv.get(`ingest/${streamId}`)) !== undefined;

  test("are those of its latest streams: one more forgets the oldest, whose holder then fails", async () => {
    const { oldest, next } = await fill("many");
    for (const { streamId } of [oldest, next]) expect(await isKept(streamId)).toBe(true);
    await claim(newStream(), { host: "many" });
    expect([await isKept(oldest.streamId), await isKept(next.streamId)]).toEqual([false, true]);
    await expect(oldest.holder.finish(8)).rejects.toMatchObject({ code: "conflict" });
  });

  test("are forgotten last where a batch is under way", async () => {
    const { oldest, next } = await fill("busy");
    await oldest.holder.begin(batch(8, 9));
    await claim(newStream(), { host: "busy" });
    expect([await isKept(oldest.streamId), await isKept(next.streamId)]).toEqual([true, false]);
  });

  test("have room for a stream whose oldest neighbours all are under way", async () => {
    const { oldest, all } = await fill("full");
    for (const { holder } of all) await holder.begin(batch(8, 9));
    const streamId = newStream();
    await claim(streamId, { host: "full" });
    expect([await isKept(oldest.streamId), await isKept(streamId)]).toEqual([false, true]);
  });

  test("name every stream, though another controller notes one at the same time", async () => {
    const [first, second] = [newStream(), newStream()];
    let crossing = true;
    const crossed = wrappedKv(kv, {
      put: async (...call) => {
        const isFirst = crossing;
        crossing = false;
        if (isFirst) await new MarkStore(kv).register(second, "twins");
        return kv.put(...call);
      },
    });
    await new MarkStore(crossed).register(first, "twins");
    const { value = Buffer.alloc(0) } = (await kv.get("ingest-streams/twins")) ?? {};
    expect(decodeStored(value)).toEqual([second, first]);
  });

  test("make room, too, where sessions ended before their marks were written", async () => {
    const marks = new MarkStore(kv);
    const noted = Array.from({ length: INGEST_STREAMS_PER_HOST_MAX }, () => newStream());
    for (const streamId of noted) await marks.register(streamId, "brief");
    const streamId = newStream();
    await claim(streamId, { host: "brief" });
    expect(await isKept(streamId)).toBe(true);
    const { value = Buffer.alloc(0) } = (await kv.get("ingest-streams/brief")) ?? {};
    expect(decodeStored(value)).toEqual([...noted.slice(1), streamId]);
  });

  describe("that are of no use any more", () => {
    const UNTIL_MS = Date.now() + 86_400_000;
    const marks = () => new MarkStore(kv);
    const endOf = async (streamId: string) => (await kv.get(`ingest/${streamId}`))?.expiresAtMs;
    /** As a version wrote it that kept no list of a host's streams. */
    const unlisted = async (host: string) => {
      const { streamId } = await begun(host);
      await kv.delete(`ingest-streams/${host}`);
      return streamId;
    };

    test("end some time after their host was removed, unless its agent goes on", async () => {
      const [gone, back] = [await begun("removed"), await begun("removed")];
      const other = await begun("stays");
      await marks().retire("removed", UNTIL_MS);
      expect([await endOf(gone.streamId), await endOf(back.streamId)]).toEqual([UNTIL_MS, UNTIL_MS]);
      expect(await endOf(other.streamId)).toBeUndefined();
      expect((await kv.get("ingest-streams/removed"))?.expiresAtMs).toBe(UNTIL_MS);
      expect((await claim(back.streamId, { host: "removed" })).mark.acknowledged).toBe(7);
      expect([await endOf(gone.streamId), await endOf(back.streamId)]).toEqual([UNTIL_MS, undefined]);
      expect((await kv.get("ingest-streams/removed"))?.expiresAtMs).toBeUndefined();
      await marks().retire("never-there", UNTIL_MS);
    });

    test("end also when a session writes the mark just then", async () => {
      const { streamId, holder } = await begun("racing");
      let races = 1;
      const raced = wrappedKv(kv, {
        put: async (...call) => {
          if (call[0] === `ingest/${streamId}` && races-- > 0) await holder.finish(8);
          return kv.put(...call);
        },
      });
      await new MarkStore(raced).retire("racing", UNTIL_MS);
      expect(await endOf(streamId)).toBe(UNTIL_MS);
    });

    test("end when no list has them, once, and are listed when their agent goes on", async () => {
      const [lost, found] = [await unlisted("former"), await unlisted("former")];
      const listed = await begun("former");
      await marks().retireUnlisted(UNTIL_MS);
      expect([await endOf(lost), await endOf(found)]).toEqual([UNTIL_MS, UNTIL_MS]);
      expect(await endOf(listed.streamId)).toBeUndefined();
      const again = await claim(found, { host: "former" });
      expect([again.mark.acknowledged, await endOf(found)]).toEqual([7, undefined]);
      await marks().retire("former", UNTIL_MS);
      expect(await endOf(found)).toBe(UNTIL_MS);
      const later = await unlisted("later");
      await marks().retireUnlisted(UNTIL_MS);
      expect(await endOf(later)).toBeUndefined();
    });
  });

  test("are no other host's, and lie under names that are one component", async () => {
    const streamId = newStream();
    await claim(streamId, { host: "one" });
    await expect(claim(streamId, { host: "two" })).rejects.toMatchObject({ code: "denied" });
    for (const bad of ["short", "with/slash", "x".repeat(65)]) {
      await expect(claim(bad)).rejects.toMatchObject({ code: "invalid" });
    }
  });
});
