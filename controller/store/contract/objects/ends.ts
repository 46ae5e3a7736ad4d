import { describe, expect, test } from "vitest";
import type { Entity, EntityChange, EntityKey } from "../../objects.ts";
import { again, all, bytes, counted, passTime, text, uniqueCid, uniqueName } from "../harness.ts";
import { type ObjectsSubject, textsOf } from "./subject.ts";

const BRIEF_MS = 2_000;
const LONG_MS = 3_600_000;

/** Entities that end as a whole. */
export function endsContract(store: ObjectsSubject): void {
  describe("ends", () => {
    wholeEndContract(store);
    namedEndContract(store);
    clearedEndsContract(store);
  });
}

function wholeEndContract(store: ObjectsSubject): void {
  const { subject, objects, nowMs, write, read } = store;

  test("an entity ends as a whole by the last change that named its end, and what is written next begins afresh", async () => {
    const cid = uniqueCid();
    const [brief, lasting] = [
      { cid, id: "brief" },
      { cid, id: "lasting" },
    ];
    const to = { cid, id: uniqueName("target") };
    const atUs = nowMs() * 1_000;
    const whole = (key: EntityKey, endsAtMs: number): EntityChange => ({
      key,
      timeUs: atUs,
      birth: true,
      cells: new Map([
        ["1", bytes("one")],
        ["2", bytes("two")],
      ]),
      addTerms: [`c${cid}`, `word ${cid}`],
      numbers: new Map([[1, 5]]),
      addEdges: [{ type: "is", to }],
      version: bytes("born"),
      endsAtMs,
    });
    await write(whole(brief, nowMs() + LONG_MS), whole(lasting, nowMs() + BRIEF_MS));
    const update = { timeUs: atUs + 10, cells: new Map([["1", bytes("new")]]) };
    await write({ key: brief, ...update, endsAtMs: nowMs() + BRIEF_MS });
    await write({ key: lasting, ...update, endsAtMs: nowMs() + LONG_MS });
    // Neither a late earlier change nor a change without an end moves the end.
    await write({ key: brief, timeUs: atUs + 5, cells: new Map([["3", bytes("three")]]), endsAtMs: Infinity });
    await write({ key: lasting, timeUs: atUs + 20, cells: new Map([["3", bytes("three")]]) });
    const both = ["brief", "lasting"];
    expect(await seen(store, cid, to)).toEqual({
      inClass: both,
      counted: 2,
      byTerm: both,
      byNumber: both,
      edges: both,
    });
    await passTime(subject(), BRIEF_MS, async () => (await read(brief)) === undefined);
    const left = ["lasting"];
    expect(await seen(store, cid, to)).toEqual({
      inClass: left,
      counted: 1,
      byTerm: left,
      byNumber: left,
      edges: left,
    });
    expect(textsOf(await read(lasting))).toEqual({ "1": "new", "2": "two", "3": "three" });
    expect(await all(2, (page) => objects().edges(brief, "out", page))).toEqual([]);
    expect(await all(2, (page) => objects().history(brief, {}, page))).toMatchObject([{ value: bytes("born") }]);
    const [trace] = await again(() => objects().trace([brief]));
    expect(trace).toMatchObject({ entity: undefined, lastUs: atUs + 10 });
    if (trace?.ended !== undefined) await write({ key: brief, timeUs: trace.lastUs, death: true });
    await write({ key: brief, timeUs: atUs + 30, birth: true, addTerms: [`c${cid}`] });
    const next = await read(brief);
    expect([textsOf(next), next?.numbers[1], next?.endsAtMs]).toEqual([{}, undefined, undefined]);
    expect(await all(2, (page) => objects().edges(brief, "out", page))).toEqual([]);
  });
}

function namedEndContract({ objects, nowMs, write, read }: ObjectsSubject): void {
  test("of changes in any order the latest names the end, at equal times the later end, and none is the latest of all", async () => {
    const key = { cid: uniqueCid(), id: uniqueName("o") };
    const atUs = nowMs() * 1_000;
    const ends = [LONG_MS, 2 * LONG_MS, 3 * LONG_MS].map((ms) => nowMs() + ms);
    const named = async (offset: number, endsAtMs: number | undefined): Promise<number | undefined> => {
      await write({ key, timeUs: atUs + offset, ...(endsAtMs === undefined ? { birth: true } : { endsAtMs }) });
      return (await read(key))?.endsAtMs;
    };
    expect(await named(1, undefined)).toBeUndefined();
    expect(await named(10, ends[1])).toBe(ends[1]);
    expect(await named(5, ends[2])).toBe(ends[1]);
    expect(await named(10, ends[0])).toBe(ends[1]);
    expect(await named(20, ends[0])).toBe(ends[0]);
    expect(await named(20, Infinity)).toBe(Infinity);
    expect(await named(20, ends[2])).toBe(Infinity);
    expect(await named(30, ends[2])).toBe(ends[2]);
    expect((await read(key))?.lastUs).toBe(atUs + 30);
    await write({ key, timeUs: atUs + 40, death: true });
    await write({ key, timeUs: atUs + 50, birth: true });
    expect((await read(key))?.endsAtMs).toBeUndefined();
    await expect(again(() => objects().change([{ key, timeUs: atUs + 60, endsAtMs: NaN }]))).rejects.toMatchObject({
      code: "invalid",
    });
  });
}

function clearedEndsContract({ subject, objects, nowMs, write, read }: ObjectsSubject): void {
  test("what has ended is told to who clears up, or cleared up by the engine itself", async () => {
    const cid = uniqueCid();
    const atUs = nowMs() * 1_000;
    const key = { cid, id: uniqueName("ended") };
    const going = { cid, id: uniqueName("going") };
    const endsAtMs = nowMs() - 1_000;
    await write({ key, timeUs: atUs, birth: true, cells: new Map([["1", bytes("a")]]), endsAtMs });
    await write({ key: going, timeUs: atUs, birth: true, endsAtMs: nowMs() + LONG_MS });
    // Cells without a birth mark: an update leaves this state if it arrives after a removal.
    const unborn = { cid, id: uniqueName("unborn") };
    await write({ key: unborn, timeUs: atUs, cells: new Map([["1", bytes("a")]]), endsAtMs });
    expect(await read(key)).toBeUndefined();
    expect(await again(() => objects().trace([key]))).toMatchObject([{ endedUs: endsAtMs * 1_000 }]);
    const ended = async (): Promise<readonly Entity[]> => {
      const beforeMs = nowMs();
      const found = await all(2, (page) => subject().store.scrub.ended({ ...page, beforeMs }));
      return found.filter((entity) => entity.key.cid === cid);
    };
    for (const entity of await ended()) {
      expect([key.id, unborn.id]).toContain(entity.key.id);
      expect(textsOf(entity)).toEqual({ "1": "a" });
      await write({ key: entity.key, timeUs: entity.lastUs, death: true });
    }
    expect(await ended()).toEqual([]);
    expect(await again(() => objects().trace([key]))).toMatchObject([{ entity: undefined, lastUs: atUs }]);
    expect(await read(going)).toBeDefined();
  });

  test("a version vanishes by its own time, and another one stays though its entity has ended", async () => {
    const key = { cid: uniqueCid(), id: uniqueName("o") };
    const atUs = nowMs() * 1_000;
    const ended = { birth: true, endsAtMs: nowMs() - 1_000 } as const;
    await write({ key, timeUs: atUs, ...ended, version: bytes("first"), versionExpiresAtMs: nowMs() + BRIEF_MS });
    await write({ key, timeUs: atUs + 1, ...ended, version: bytes("second"), versionExpiresAtMs: nowMs() + LONG_MS });
    const versions = async (): Promise<readonly string[]> =>
      (await all(2, (page) => objects().history(key, {}, page))).map(({ value }) => text(value));
    expect(await versions()).toEqual(["second", "first"]);
    await passTime(subject(), BRIEF_MS + 1_000, async () => (await versions()).length === 1);
    expect(await versions()).toEqual(["second"]);
  });
}

/** Everything that readers see of two entities of one class, and of the edges from them to a third. */
async function seen({ objects, find }: ObjectsSubject, cid: number, to: EntityKey): Promise<object> {
  const inClass = await find({ terms: [`c${cid}`] }, 3);
  const edges = await all(2, (page) => objects().edges(to, "in", page));
  return {
    inClass,
    counted: await counted((cursor) => objects().countClass(`c${cid}`, cursor)),
    byTerm: await find({ terms: [`word ${cid}`] }, 3),
    byNumber: (await find({ terms: [`c${cid}`], ranges: [{ slot: 1, from: 5, to: 5 }] }, 3)).filter((id) =>
      inClass.includes(id),
    ),
    edges: edges.map(({ from }) => from.id).sort(),
  };
}
