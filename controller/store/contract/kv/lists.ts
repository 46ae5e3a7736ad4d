import { expect, test } from "vitest";
import type { KvStore } from "../../kv.ts";
import { again, bytes, type ContractSubject, put, remove, uniqueName } from "../harness.ts";
import { collect, drain, listAll, revisionOf, tell } from "./reading.ts";

/** Lists of keys under a prefix. */
export function listsContract(kv: () => KvStore): void {
  test("a list is in byte order and comes in pages without gap or repeat", async () => {
    const prefix = uniqueName("list") + "/";
    const names = ["b", "a", "é", "z", "aa", "a/1", "\u{10000}", "ￜ", "B"];
    for (const each of names) await put(kv(), prefix + each, bytes(each));
    await put(kv(), prefix.slice(0, -1) + "0", bytes("outside"));
    const expected = names.map((each) => prefix + each).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect((await listAll(kv(), prefix, 2)).map((entry) => entry.key)).toEqual(expected);
    expect((await listAll(kv(), prefix, 1_000)).map((entry) => entry.key)).toEqual(expected);
    expect((await listAll(kv(), prefix, 1_000, expected[2])).map((entry) => entry.key)).toEqual(expected.slice(3));
    expect(await listAll(kv(), uniqueName("nothing"), 10)).toEqual([]);
    // An `after` before the prefix has no effect, with any keys in between.
    expect((await listAll(kv(), prefix, 1_000, "")).map((entry) => entry.key)).toEqual(expected);
  });
}

/** Watches of keys under a prefix: from a revision, in order, without a gap. */
export function watchesContract(subject: () => ContractSubject): void {
  const kv = (): KvStore => subject().store.kv;

  test("a watch from a page's revision misses nothing and keeps the order", async () => {
    const prefix = uniqueName("watch") + "/";
    await put(kv(), `${prefix}old`, bytes("before"));
    const { revision } = await again(() => kv().list(prefix));
    const seen = collect(kv(), prefix, {
      since: revision,
      until: (events) => events.some((event) => event.kind === "put" && event.entry.key === `${prefix}end`),
    });
    for (let i = 0; i < 30; i++) await put(kv(), `${prefix}${i % 3}`, bytes(String(i)));
    await remove(kv(), `${prefix}0`);
    await put(kv(), uniqueName("elsewhere"), bytes("not seen"));
    await put(kv(), `${prefix}end`, bytes("end"));
    const events = await seen;
    const told = events.map(tell).filter((line, i, lines) => line !== lines[i - 1]);
    const expected = [
      ...Array.from({ length: 30 }, (_, i) => `${prefix}${i % 3}=${i}`),
      `${prefix}0 gone`,
      `${prefix}end=end`,
    ];
    expect(told).toEqual(expected);
    const revisions = events.map(revisionOf);
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
    expect(revisions[0]).toBeGreaterThan(revision);
  });

  test("a watch tells what happened before it began, after its revision", async () => {
    const prefix = uniqueName("past") + "/";
    const { revision } = await again(() => kv().list(prefix));
    await put(kv(), `${prefix}a`, bytes("1"));
    await put(kv(), `${prefix}b`, bytes("2"));
    const events = await collect(kv(), prefix, {
      since: revision,
      until: (all) => all.map(tell).includes(`${prefix}b=2`),
    });
    expect(new Set(events.map(tell))).toEqual(new Set([`${prefix}a=1`, `${prefix}b=2`]));
  });

  test("a watch just ends when its signal fires", async () => {
    const prefix = uniqueName("signal");
    const { revision } = await again(() => kv().list(prefix));
    const abort = new AbortController();
    const watching = drain(kv().watch(prefix, { sinceRevision: revision, signal: abort.signal }));
    abort.abort();
    expect(await watching).toEqual([]);
  });

  test("a watch from before the kept history says so", async (context) => {
    const { compactKv } = subject();
    if (compactKv === undefined) return context.skip();
    const prefix = uniqueName("compacted") + "/";
    const { revision } = await again(() => kv().list(prefix));
    await put(kv(), `${prefix}a`, bytes("1"));
    await put(kv(), `${prefix}a`, bytes("2"));
    await compactKv();
    const watching = drain(kv().watch(prefix, { sinceRevision: revision, signal: new AbortController().signal }));
    await expect(watching).rejects.toMatchObject({ code: "compacted" });
    const page = await again(() => kv().list(prefix));
    const later = collect(kv(), prefix, { since: page.revision, until: (events) => events.length > 0 });
    await put(kv(), `${prefix}a`, bytes("3"));
    expect((await later).map(tell)[0]).toBe(`${prefix}a=3`);
  });
}
