import { describe, expect, it } from "vitest";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { emitWhenRoom } from "../policies/host.ts";
import type { Outbox, Emission } from "./outbox.ts";
import { OUTBOX_TIME_AHEAD_MAX_MS } from "../../common/limits.ts";
import { useOutboxes, openOutbox, text, textOf, texts, segments } from "../../test/helpers/hosts/outbox-world.ts";

useOutboxes();

describe("an outbox", () => {
  it("gives sequence numbers without holes, also to many appends at once, and keeps them over a restart", async () => {
    const outbox = await openOutbox();
    const last = await Promise.all(Array.from({ length: 100 }, (_, index) => outbox.append([text(`a${index}`)])));
    expect(last).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    await outbox.close();
    const again = await openOutbox();
    expect(again.streamId).toBe(outbox.streamId);
    expect(await again.append([text("b"), text("c")])).toBe(102);
    expect(await texts(again, 99)).toEqual(["a98", "a99", "b", "c"]);
  });

  it("gives each entry a time of its own, also over a restart, and little ahead of the clock", async () => {
    const clock = new TestClock();
    const outbox = await openOutbox({ clock });
    await Promise.all(Array.from({ length: 50 }, () => outbox.append([ROW, ROW])));
    await outbox.close();
    const again = await openOutbox({ clock });
    await again.append([ROW]);
    const beginMs = clock.nowMs();
    expect(await times(again)).toEqual(Array.from({ length: 101 }, (_, at) => beginMs + at));
    await again.append(Array.from({ length: OUTBOX_TIME_AHEAD_MAX_MS }, () => ROW));
    expect(Math.max(...(await times(again)))).toBe(beginMs + OUTBOX_TIME_AHEAD_MAX_MS);
  });

  it("gives each entry of rows a time of its own also behind what commands wrote, and in a new file", async () => {
    const clock = new TestClock();
    const beginMs = clock.nowMs();
    const outbox = await openOutbox({ clock });
    await outbox.append([ROW, ROW, ROW, text("output of a command")]);
    await outbox.close();
    const again = await openOutbox({ clock });
    await again.append([ROW]);
    // The marks go on in a new file, which has no entries.
    await again.renewStream();
    await again.close();
    const last = await openOutbox({ clock });
    await last.append([ROW]);
    expect(await times(last)).toEqual([0, 1, 2, 0, 3, 4].map((aheadMs) => beginMs + aheadMs));
  });

  it("follows a clock that is set back far, and stays above one that is set back a little", async () => {
    const clock = new TestClock();
    const outbox = await openOutbox({ clock });
    await outbox.append([ROW]);
    const beginMs = clock.nowMs();
    clock.advance(-100);
    await outbox.append([ROW]);
    clock.advance(100 - 3_600_000);
    await outbox.append([ROW]);
    expect(await times(outbox)).toEqual([beginMs, beginMs + 1, beginMs - 3_600_000]);
  });

  it("deletes what is acknowledged, and keeps its marks and its place", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    await outbox.append([], {
      marks: [
        { key: "kept", value: "yes" },
        { key: "dropped", value: "no" },
      ],
    });
    await outbox.append([], { marks: [{ key: "dropped" }] });
    for (let index = 0; index < 40; index++) await outbox.append([text("x".repeat(10_000))]);
    expect((await segments()).length).toBeGreaterThan(3);
    await outbox.acknowledge(40);
    expect(await segments()).toHaveLength(1);
    expect(outbox.firstSequence).toBe(41);
    await outbox.close();
    const again = await openOutbox({ maxBytes: 1 << 20 });
    expect([again.mark("kept"), again.mark("dropped"), again.nextSequence]).toEqual(["yes", undefined, 41]);
  });

  it("refuses at its bound, keeps a reserve for results, and goes on when there is room", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    const fill = async (reserve: boolean) => {
      for (;;) await outbox.append([text("x".repeat(10_000))], { reserve });
    };
    await expect(fill(false)).rejects.toMatchObject({ code: "limited", details: { reason: "outbox_full" } });
    const held = outbox.nextSequence;
    await outbox.append([text("result")], { reserve: true });
    await expect(fill(true)).rejects.toMatchObject({ code: "limited" });
    expect(outbox.bytes).toBeLessThan((1 << 20) + 50_000);
    const waiting = emitWhenRoom(outbox, [text("late")]);
    await outbox.acknowledge(held);
    await waiting;
    expect((await texts(outbox, held)).at(0)).toBe("result");
    expect((await texts(outbox, held)).at(-1)).toBe("late");
  });

  it("is read while it is written and deleted, every entry once and in order", async () => {
    const outbox = await openOutbox({ maxBytes: 4 << 20 });
    const reader = outbox.reader(1);
    const read: string[] = [];
    const writing = (async () => {
      for (let index = 0; index < 400; index++) await emitWhenRoom(outbox, [text(`${index} ${"x".repeat(20_000)}`)]);
    })();
    while (read.length < 400) {
      const since = outbox.version;
      const entries = await reader.next(16, 100_000);
      if (entries.length === 0) await outbox.changed(since);
      for (const entry of entries) read.push(textOf(entry.body).split(" ")[0] ?? "");
      await outbox.acknowledge(entries.at(-1)?.sequence ?? 0);
    }
    await writing;
    await reader.close();
    expect(read).toEqual(Array.from({ length: 400 }, (_, index) => String(index)));
  });

  it("goes on under a new name when it is told to, with what it holds", async () => {
    const outbox = await openOutbox();
    await outbox.append([text("a")]);
    const before = outbox.streamId;
    await outbox.renewStream();
    await outbox.append([text("b")]);
    await outbox.close();
    const again = await openOutbox();
    expect(again.streamId).not.toBe(before);
    expect(await texts(again, again.firstSequence)).toEqual(["a", "b"]);
  });
});

/** An entry that rows are made of. */
const ROW: Emission = {
  body: {
    $case: "gap",
    value: { policy: "p", source: "s", reason: "vanished", count: 0, unit: "bytes", fromMs: 0, toMs: 0 },
  },
};

async function times(outbox: Outbox): Promise<readonly number[]> {
  const reader = outbox.reader(1);
  const entries = await reader.next(10_000, 1 << 24);
  await reader.close();
  return entries.map(({ timeMs }) => timeMs);
}
