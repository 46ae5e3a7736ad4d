import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Files } from "../../common/files.ts";
import { OUTBOX_COPY_MS, OUTBOX_FRAME_MAX_BYTES } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { prove } from "../../test/helpers/runs/evidence.ts";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { nodeFiles } from "../disk/files.ts";
import { Journal } from "../commands/journal.ts";
import { Outbox } from "./outbox.ts";
import { OutboxCopy } from "./copy.ts";

const PATIENCE = { timeout: 30_000 };

let folder: string;
let seed = 1;
const FILE = { key: "policy/p/file-1", value: JSON.stringify({ offset: 10 }) };
const LATER = { key: "policy/p/file-1", value: JSON.stringify({ offset: 20 }) };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-outbox-copy-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

describe("an outbox that was deleted", () => {
  it("says so, and goes on where the controllers had everything", async () => {
    const lost = await open();
    await lost.outbox.append([text("a")], { marks: [FILE, { key: "policy/p/since", value: "1" }] });
    await lost.outbox.acknowledge(1);
    await lost.end();
    const found = await openAfterLoss();
    expect(found.outbox.marks("policy/")).toEqual([
      [FILE.key, FILE.value],
      ["policy/p/since", "1"],
    ]);
    expect(await told(found.outbox)).toMatchObject([{ reason: "outbox_lost", source: "outbox" }]);
    const since = expect.stringMatching(/^\d{4}-.*Z$/) as string;
    expect(found.logged).toEqual([["error", "the outbox was lost", { stream: lost.outbox.streamId, since }]]);
    await found.end();
    // Once, not at every start.
    const again = await open();
    expect(again.logged).toEqual([]);
    expect(await told(again.outbox)).toHaveLength(1);
    await again.end();
    prove("outbox-lost", { where: "agent/outbox/copy.test.ts" });
  });

  it("has all of its marks again, also where they are larger than one append", async () => {
    const lost = await open();
    const marks = Array.from({ length: 5 }, (_, at) => ({
      key: `policy/p/file-${at}`,
      value: "x".repeat(OUTBOX_FRAME_MAX_BYTES),
    }));
    await lost.outbox.append([], { marks: marks.slice(0, 2) });
    await lost.outbox.append([text("a")], { marks: marks.slice(2) });
    await lost.outbox.acknowledge(1);
    await lost.end();
    const found = await openAfterLoss();
    expect(found.outbox.marks("policy/").map(([key, value]) => [key, value.length])).toEqual(
      marks.map(({ key, value }) => [key, value.length]),
    );
    expect(await told(found.outbox)).toHaveLength(1);
    await found.end();
  });

  it("says so from when the runs were due that were open", async () => {
    const lost = await open();
    const dueMs = realClock.nowMs() - 90_000;
    await lost.outbox.append([text("a")], {
      marks: [FILE, { key: "policy/p/run", value: JSON.stringify({ scheduledMs: dueMs }) }],
    });
    await lost.outbox.acknowledge(1);
    await lost.end();
    const found = await openAfterLoss();
    expect(await told(found.outbox)).toMatchObject([{ reason: "outbox_lost", fromMs: dueMs }]);
    await found.end();
  });

  it("reads again what had not arrived", async () => {
    const lost = await open();
    await lost.outbox.append([text("a")], { marks: [FILE] });
    await lost.outbox.acknowledge(1);
    await lost.end();
    const more = await open();
    await more.outbox.append([text("b")], { marks: [LATER] });
    await more.end();
    const found = await openAfterLoss();
    expect(found.outbox.mark(FILE.key)).toBe(FILE.value);
    await found.end();
  });

  it("starts no command a second time, gives none a second result, and does not speak of runs", async () => {
    const lost = await open();
    await new Journal(lost.outbox, realClock).start("c1", 60_000, "");
    await lost.outbox.append([], {
      marks: [
        { key: "policy/p/run", value: "{}" },
        { key: "policy/p/due", value: "1" },
      ],
    });
    await lost.end();
    const found = await openAfterLoss();
    const journal = new Journal(found.outbox, realClock);
    expect(journal.has("c1")).toBe(true);
    expect(await journal.finishInterrupted()).toBe(0);
    expect(found.outbox.marks("policy/")).toEqual([]);
    await found.end();
  });

  it("is not taken for one that was never there, nor for one that lost nothing", async () => {
    const first = await open();
    expect(await told(first.outbox)).toEqual([]);
    await first.end();
    const second = await open();
    expect(await told(second.outbox)).toEqual([]);
    await second.end();
  });
});

describe("the copy of an outbox's marks", () => {
  it("is taken from time to time, and kept once all has arrived that was there when it was taken", async () => {
    const clock = new TestClock();
    const { outbox, copy } = await open({ clock });
    const ended = new AbortController();
    const keeping = copy.keep(ended.signal);
    const round = async () => {
      await expect.poll(() => clock.waiting, PATIENCE).toBe(1);
      clock.advance(OUTBOX_COPY_MS);
      await expect.poll(() => clock.waiting, PATIENCE).toBe(1);
    };
    await outbox.append([text("a")], { marks: [FILE] });
    await round();
    expect(await kept()).toEqual([]);
    await outbox.append([text("b")], { marks: [LATER] });
    await outbox.acknowledge(1);
    await round();
    expect(await kept()).toEqual([[FILE.key, FILE.value]]);
    await outbox.acknowledge(2);
    await round();
    expect(await kept()).toEqual([[LATER.key, LATER.value]]);
    ended.abort();
    await keeping;
    await outbox.close();
  });

  it("is not written again while nothing changed, and tried again when it could not be written", async () => {
    const written: string[] = [];
    let isFull = true;
    const files: Files = {
      ...nodeFiles,
      rename: (from, to) => {
        written.push(to);
        return isFull ? Promise.reject(new Error("no space")) : nodeFiles.rename(from, to);
      },
    };
    const { end, copy, logged } = await open({ files });
    await copy.keep(AbortSignal.abort());
    expect(logged).toHaveLength(2);
    expect(logged[1]).toEqual(["warn", "copy of the outbox's marks not written", { error: "no space" }]);
    isFull = false;
    await copy.keep(AbortSignal.abort());
    expect(written).toHaveLength(3);
    await end();
    expect(written).toHaveLength(3);
  });

  it("follows an outbox that goes on under a new name, once its entries have arrived", async () => {
    const { after, end } = await renamed();
    expect([await told(after.outbox), after.logged]).toEqual([[], []]);
    expect(await kept()).toEqual([]);
    await after.outbox.acknowledge(1);
    await after.copy.keep(AbortSignal.abort());
    expect(await kept()).toEqual([[FILE.key, FILE.value]]);
    await end();
  });

  it("skips no entry of an outbox that goes on under a new name and is deleted before they arrived", async () => {
    const { end } = await renamed();
    await end();
    const found = await openAfterLoss();
    expect(found.outbox.mark(FILE.key)).toBeUndefined();
    expect(await told(found.outbox)).toMatchObject([{ reason: "outbox_lost" }]);
    await found.end();
  });

  it("of a loss whose gap did not arrive is the one before, so a second loss is told from the first one on", async () => {
    const first = await open();
    await first.end();
    const { atMs } = JSON.parse(await readFile(place(), "utf8")) as { readonly atMs: number };
    await (await openAfterLoss()).end();
    const found = await openAfterLoss();
    expect(await told(found.outbox)).toMatchObject([{ reason: "outbox_lost", fromMs: atMs }]);
    await found.end();
  });

  it("of a newer agent is left alone as if there were none", async () => {
    const former = await open();
    await former.outbox.append([text("a")], { marks: [FILE] });
    await former.outbox.acknowledge(1);
    await former.end();
    await writeFile(place(), JSON.stringify({ format: 2, stream: "other", atMs: 0, marks: [["epoch", "7"]] }));
    const found = await openAfterLoss();
    expect([found.outbox.marks(""), found.logged]).toEqual([[], []]);
    await found.end();
  });
});

const place = (): string => join(folder, "outbox-marks.json");

async function kept(): Promise<unknown> {
  return (JSON.parse(await readFile(place(), "utf8")) as { marks: unknown }).marks;
}

async function open({ clock = realClock, files = nodeFiles }: { clock?: Clock; files?: Files } = {}) {
  const logged: unknown[] = [];
  const outbox = await Outbox.open({ folder: join(folder, "outbox"), clock, random: seededRandom(seed++) });
  const copy = new OutboxCopy({
    path: place(),
    files,
    outbox,
    clock,
    log: (...line) => void logged.push(line),
  });
  await copy.restore();
  const end = async () => {
    await copy.keep(AbortSignal.abort());
    await outbox.close();
  };
  return { outbox, copy, end, logged };
}

/** An outbox with an entry that has not arrived, opened again after it got a new name. */
async function renamed() {
  const before = await open();
  await before.outbox.append([text("a")], { marks: [FILE] });
  await before.end();
  const renaming = await open();
  await renaming.outbox.renewStream();
  await renaming.outbox.close();
  const after = await open();
  return { after, end: after.end };
}

async function openAfterLoss() {
  await rm(join(folder, "outbox"), { recursive: true });
  return open();
}

function text(data: string) {
  return {
    body: { $case: "output" as const, value: { commandId: "c", stderr: false, offset: 0, data: Buffer.from(data) } },
  };
}

async function told(outbox: Outbox) {
  const reader = outbox.reader(1);
  const entries = await reader.next(100, 1 << 20);
  await reader.close();
  return entries.flatMap(({ body }) => (body?.$case === "gap" ? [body.value] : []));
}
