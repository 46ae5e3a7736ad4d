import { expect, test } from "vitest";
import type { KvStore } from "../../kv.ts";
import { again, bytes, put, remove, text, uniqueName } from "../harness.ts";

/** One key: its lives and its revisions. */
export function keysContract(kv: () => KvStore): void {
  test("a key is absent, then there with its revisions, then absent again", async () => {
    const key = uniqueName("life");
    expect(await again(() => kv().get(key))).toBeUndefined();
    await put(kv(), key, bytes("one"));
    const first = await again(() => kv().get(key));
    expect(first).toMatchObject({ key, createRevision: expect.any(Number), revision: expect.any(Number) });
    expect(text(first!.value)).toBe("one");
    await put(kv(), key, bytes("two"));
    const second = await again(() => kv().get(key));
    expect(second!.createRevision).toBe(first!.createRevision);
    expect(second!.revision).toBeGreaterThan(first!.revision);
    expect(await remove(kv(), key)).toBe(true);
    expect(await again(() => kv().get(key))).toBeUndefined();
    await put(kv(), key, bytes("three"));
    expect((await again(() => kv().get(key)))!.createRevision).toBeGreaterThan(second!.revision);
  });

  test("revisions rise through the whole store", async () => {
    const prefix = uniqueName("rise");
    const revisions: number[] = [];
    for (const part of ["b", "a", "c"]) {
      const result = await put(kv(), `${prefix}/${part}`, bytes(part));
      if (result.ok) revisions.push(result.revision);
    }
    expect(revisions).toHaveLength(3);
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
    expect(new Set(revisions).size).toBe(3);
  });
}

/** Conditional writes, and writers that race for one key. */
export function conditionsContract(kv: () => KvStore): void {
  test("of many that create the same key one wins and the others are told what is there", async () => {
    const key = uniqueName("race");
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, i) => put(kv(), key, bytes(`writer ${i}`), { ifRevision: 0 })),
    );
    const winners = results.flatMap((result, i) => (result.ok ? [`writer ${i}`] : []));
    expect(winners).toHaveLength(1);
    const current = await again(() => kv().get(key));
    expect(text(current!.value)).toBe(winners[0]);
    for (const result of results) if (!result.ok) expect(text(result.current!.value)).toBe(winners[0]);
  });

  test("a condition on a revision holds over just that revision", async () => {
    const key = uniqueName("condition");
    const lost = await put(kv(), key, bytes("x"), { ifRevision: 1 });
    expect(lost).toEqual({ ok: false, current: undefined });
    await put(kv(), key, bytes("first"));
    const { revision } = (await again(() => kv().get(key)))!;
    expect((await put(kv(), key, bytes("second"), { ifRevision: revision })).ok).toBe(true);
    const late = await put(kv(), key, bytes("late"), { ifRevision: revision });
    expect(late.ok).toBe(false);
    expect(await remove(kv(), key, { ifRevision: revision })).toBe(false);
    const current = (await again(() => kv().get(key)))!;
    expect(text(current.value)).toBe("second");
    expect(await remove(kv(), key, { ifRevision: current.revision })).toBe(true);
  });

  test("deleting what is absent is fine, and refused when a revision was expected", async () => {
    const key = uniqueName("absent");
    expect(await remove(kv(), key)).toBe(true);
    expect((await again(() => kv().delete(key, { ifRevision: 7 }))).ok).toBe(false);
  });

  test("of entries added to one list at once none is lost and none is doubled", async () => {
    const key = uniqueName("list");
    await put(kv(), key, bytes("start"));
    const add = async (mark: string): Promise<void> => {
      for (;;) {
        const current = (await again(() => kv().get(key)))!;
        // Also after a lost answer: the write may have been made, and others may have built on it.
        if (text(current.value).split(" ").includes(mark)) return;
        await put(kv(), key, bytes(`${text(current.value)} ${mark}`), { ifRevision: current.revision });
      }
    };
    await Promise.all(
      [1, 2, 3, 4].map(async (writer) => {
        for (let i = 0; i < 5; i++) await add(`${writer}.${i}`);
      }),
    );
    const marks = text((await again(() => kv().get(key)))!.value)
      .split(" ")
      .slice(1);
    expect(marks.sort()).toEqual([1, 2, 3, 4].flatMap((writer) => [0, 1, 2, 3, 4].map((i) => `${writer}.${i}`)));
  });
}
