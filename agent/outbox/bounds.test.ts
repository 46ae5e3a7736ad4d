import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OUTBOX_BALLAST_BYTES, OUTBOX_FRAME_MAX_BYTES, OUTBOX_RETRY_MS } from "../../common/limits.ts";
import type { Files } from "../../common/files.ts";
import { writeWholly } from "../disk/files.ts";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { ForgetfulFiles } from "../../test/helpers/engines/forgetful-files.ts";
import { Outbox, type Emission, type OutboxOptions } from "./outbox.ts";
import { encodeHeader } from "./segment.ts";

const FOLDER = "/outbox";
let disk: ForgetfulFiles;
let opened: Outbox[];

beforeEach(() => {
  disk = new ForgetfulFiles(1);
  opened = [];
});

afterEach(async () => {
  for (const outbox of opened) await outbox.close();
});

describe("the space an outbox takes", () => {
  it("is kept from the start, so that a disk that fills up has room for one more file", async () => {
    await openOutbox();
    expect(disk.contents().get(`${FOLDER}/reserve`)).toHaveLength(OUTBOX_BALLAST_BYTES);
  });

  it("is used to its end: where the next file does not fit, the one being written takes what still does", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    await outbox.append([text("x".repeat(70_000))], { marks: [{ key: "large", value: "m".repeat(20_000) }] });
    disk.faults.capacityBytes = used() + 10_000;
    expect(await outbox.append([text("small")])).toBe(2);
    expect(segments()).toHaveLength(1);
    expect(await texts(outbox)).toEqual([expect.any(String), "small"]);
  });

  it("is not given up for a failure of another kind when the next file is begun", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    await outbox.append([text("x".repeat(70_000))]);
    disk.faults.fails = (operation, path) => operation === "open" && path.endsWith("2.seg");
    await expect(outbox.append([text("small")])).rejects.toMatchObject({ code: "EIO" });
    disk.faults.fails = () => false;
    expect(await outbox.append([text("small")])).toBe(2);
    expect(segments()).toHaveLength(2);
  });

  it("holds nothing too large for one frame; what was appended at the same time is written", async () => {
    const outbox = await openOutbox();
    const huge = text("x".repeat(5 * OUTBOX_FRAME_MAX_BYTES));
    const appended = [text("small"), huge, text("after")].map((each) => outbox.append([each]));
    const ended = await Promise.allSettled(appended);
    expect(ended.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await texts(outbox)).toEqual(["small", "after"]);
  });
});

describe("marks that are together larger than one frame", () => {
  const MARKS = ["a", "b", "c", "d", "e"].map((key) => ({ key, value: key.repeat(OUTBOX_FRAME_MAX_BYTES - 100) }));

  it("go on in a new file, also after a restart", async () => {
    const outbox = await openOutbox();
    await outbox.append([], { marks: MARKS.slice(0, 2) });
    await outbox.append([text("one")], { marks: MARKS.slice(2) });
    await outbox.renewStream();
    await outbox.append([text("two")], { marks: [{ key: "a" }, { key: "later", value: "x" }] });
    await outbox.close();
    const again = await openOutbox();
    expect(MARKS.map(({ key, value }) => again.mark(key) === value)).toEqual([false, true, true, true, true]);
    expect([again.mark("later"), again.streamId, await texts(again)]).toEqual(["x", outbox.streamId, ["one", "two"]]);
    // The header ends where the entries begin: a file that only has a header is not replaced by a new one.
    const last = again.segments.at(-1);
    expect(last && last.bytes - last.headerBytes).toBeLessThan(1_000);
  });

  it("are taken from the file before when a crash left the new one without its end", async () => {
    const outbox = await openOutbox();
    await outbox.append([text("one")], { marks: [{ key: "a", value: "old" }] });
    await outbox.close();
    const marks = MARKS.slice(0, 3).map(({ key, value }) => [key, value] as const);
    const header = encodeHeader({ format: 1, stream: outbox.streamId, base: 2, marks });
    const file = await disk.boot().open(`${FOLDER}/0000000002.seg`, "w+", 0o600);
    await writeWholly(file, header.subarray(0, -1), 0);
    await file.close();
    const again = await openOutbox();
    expect([again.mark("a"), again.segments.length, await texts(again)]).toEqual(["old", 1, ["one"]]);
  });
});

describe("an acknowledgement", () => {
  it("of what was never written, or of less than before, changes nothing", async () => {
    const outbox = await openOutbox();
    for (const name of ["a", "b", "c"]) await outbox.append([text(name)]);
    await outbox.acknowledge(4);
    expect(outbox.firstSequence).toBe(1);
    await outbox.acknowledge(2);
    const { version } = outbox;
    for (const sequence of [1, 2, 4, 1_000]) await outbox.acknowledge(sequence);
    expect([outbox.firstSequence, outbox.version]).toEqual([3, version]);
    await outbox.acknowledge(3);
    expect([outbox.firstSequence, outbox.version > version]).toEqual([4, true]);
  });

  it("that frees no file writes nothing", async () => {
    const outbox = await openOutbox();
    for (const name of ["a", "b"]) await outbox.append([text(name)]);
    const operations: string[] = [];
    disk.faults.happened = (operation) => operations.push(operation);
    await outbox.acknowledge(1);
    expect(operations).toEqual([]);
    delete disk.faults.happened;
  });

  it("holds for the old name only: under a new one everything is held again", async () => {
    const outbox = await openOutbox();
    for (const name of ["a", "b"]) await outbox.append([text(name)]);
    await outbox.acknowledge(2);
    await outbox.renewStream();
    expect(outbox.firstSequence).toBe(1);
  });
});

describe("the end of an outbox", () => {
  it("refuses what comes later, and lets everybody go who waits", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    await expect(fill(outbox)).rejects.toMatchObject({ code: "limited" });
    const waiting = Promise.all([outbox.room(undefined), outbox.changed(outbox.version)]);
    await outbox.close();
    await waiting;
    await expect(outbox.append([text("late")])).rejects.toMatchObject({ code: "cancelled" });
    expect(outbox.hasRoom()).toBe(false);
  });

  it("is not waited for by who was told to stop", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    await expect(fill(outbox)).rejects.toMatchObject({ code: "limited" });
    const stop = new AbortController();
    const waiting = Promise.all([outbox.room(stop.signal), outbox.changed(outbox.version, stop.signal)]);
    stop.abort();
    await waiting;
    await Promise.all([outbox.room(stop.signal), outbox.changed(outbox.version, stop.signal)]);
    expect(outbox.hasRoom()).toBe(false);
  });
});

describe("a reader", () => {
  it("takes as many entries and bytes as it is asked for, and a larger one alone", async () => {
    const outbox = await openOutbox();
    await outbox.append(["a", "b", "c", "d".repeat(1_000), "e"].map(text));
    const reader = outbox.reader(1);
    const next = async (entries: number, bytes: number) => {
      const taken = await reader.next(entries, bytes);
      return taken.map(({ sequence }) => sequence);
    };
    // An entry of one byte of output weighs 101.
    expect([
      await next(1, 1_000),
      await next(9, 202),
      await next(9, 500),
      await next(9, 500),
      await next(9, 500),
    ]).toEqual([[1], [2, 3], [4], [5], []]);
    await reader.close();
  });
});

describe("a reader of much that is stored", () => {
  const sequences = async (reader: ReturnType<Outbox["reader"]>): Promise<readonly number[]> =>
    (await reader.next(100, 10 << 20)).map(({ sequence }) => sequence);
  const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, at) => from + at);

  it("loses nothing where one read of the file ends within an entry", async () => {
    const outbox = await openOutbox();
    for (let count = 0; count < 20; count++) await outbox.append([text("x".repeat(20_000))]);
    expect(segments()).toHaveLength(1);
    const reader = outbox.reader(1);
    expect(await sequences(reader)).toEqual(upTo(20));
    await reader.close();
  });

  it("goes on in the next file when its own was deleted", async () => {
    const outbox = await openOutbox({ maxBytes: 1 << 20 });
    const reader = outbox.reader(1);
    for (let count = 0; count < 10; count++) await outbox.append([text("x".repeat(20_000))]);
    const [first = ""] = segments();
    await reader.next(1, 1);
    await outbox.acknowledge(10);
    expect(segments()).not.toContain(first);
    await outbox.append([text("later")]);
    const read: number[] = [];
    for (let seen = -1; seen < read.length; ) {
      seen = read.length;
      read.push(...(await sequences(reader)));
    }
    expect(read.at(-1)).toBe(11);
    await reader.close();
  });
});

describe("the disk's space", () => {
  it("comes free with what was acknowledged, though a reader was in the middle of it", async () => {
    const { files, open } = counting(disk.boot());
    const outbox = await openOutbox({ files, maxBytes: 1 << 20 });
    const reader = outbox.reader(1);
    for (let count = 0; count < 10; count++) await outbox.append([text("x".repeat(20_000))]);
    const [first, ...later] = segments();
    await reader.next(1, 1);
    expect(open.get(first ?? "")).toBe(1);
    await outbox.acknowledge(10);
    expect(disk.contents().has(first ?? "")).toBe(false);
    await reader.next(1, 1);
    expect(open.get(first ?? ""), "the deleted file is open still").toBe(0);
    await reader.close();
    await outbox.close();
    expect(later.map((path) => open.get(path))).toEqual(later.map(() => 0));
  });
});

describe("files that could not be deleted when they were acknowledged", () => {
  it("are deleted by the next one that waits for room", async () => {
    const clock = new TestClock();
    const outbox = await openOutbox({ clock, maxBytes: 1 << 20 });
    await expect(fill(outbox)).rejects.toMatchObject({ code: "limited" });
    disk.faults.fails = (operation) => operation === "rm";
    await outbox.acknowledge(outbox.nextSequence - 1).catch(() => undefined);
    expect(outbox.hasRoom()).toBe(false);
    disk.faults.fails = () => false;
    await outbox.room(undefined);
    expect(await outbox.append([text("goes on")])).toBe(outbox.nextSequence - 1);
  });
});

describe("a disk that is full", () => {
  it("comes free when all is acknowledged, though it filled up while a deleted file was being read", async () => {
    const clock = new TestClock();
    const outbox = await openOutbox({ clock });
    const fillWholly = async () => {
      for (const bytes of [20_000, 1_000, 1]) {
        await expect(fill(outbox, bytes)).rejects.toMatchObject({ details: { reason: "disk_full" } });
        clock.advance(OUTBOX_RETRY_MS);
      }
    };
    await outbox.append([], { marks: [{ key: "position", value: "p".repeat(1_000) }] });
    disk.faults.capacityBytes = used() + 100_000;
    await fillWholly();
    const reader = outbox.reader(1);
    await reader.next(1, 1);
    await outbox.acknowledge(outbox.nextSequence - 1);
    await fillWholly();
    await reader.close();
    await fillWholly();
    await outbox.acknowledge(outbox.nextSequence - 1);
    await outbox.append([text("goes on")]);
  });

  it("is asked again after some time, and not by every append", async () => {
    const clock = new TestClock();
    const outbox = await openOutbox({ clock });
    disk.faults.capacityBytes = used() + 100_000;
    await expect(fill(outbox)).rejects.toMatchObject({ details: { reason: "disk_full" } });
    disk.faults.capacityBytes = used() + 10_000_000;
    await expect(outbox.append([text("early")])).rejects.toMatchObject({ details: { reason: "disk_full" } });
    clock.advance(OUTBOX_RETRY_MS);
    await outbox.append([text("goes on")]);
    expect((await texts(outbox)).at(-1)).toBe("goes on");
  });

  it("takes nothing in the place that was kept, when others have filled it", async () => {
    const outbox = await openOutbox();
    await outbox.append([text("x".repeat(5_000))]);
    await outbox.acknowledge(1);
    disk.faults.capacityBytes = used();
    await expect(outbox.append([text("x".repeat(20_000))])).rejects.toMatchObject({ code: "limited" });
    expect(disk.contents().get(`${FOLDER}/reserve`)).toHaveLength(OUTBOX_BALLAST_BYTES);
  });

  it("comes free as soon as there is room for one more file, though others took the place that was kept", async () => {
    const clock = new TestClock();
    const outbox = await openOutbox({ clock });
    await outbox.append([text("x".repeat(300_000))]);
    await outbox.acknowledge(1);
    disk.faults.capacityBytes = used();
    disk.faults.happened = (operation, path) => {
      if (operation === "truncate" && path.endsWith("reserve")) disk.faults.capacityBytes = used();
    };
    await expect(outbox.append([text("late")])).rejects.toMatchObject({ code: "limited" });
    delete disk.faults.happened;
    disk.faults.capacityBytes = used() + 5_000;
    clock.advance(OUTBOX_RETRY_MS);
    expect(await outbox.append([text("late")])).toBe(2);
  });
});

describe("a folder", () => {
  it("with files of other names is no outbox of its own", async () => {
    const before = await openOutbox();
    await before.append([text("a")]);
    await before.close();
    const files = disk.boot();
    for (const name of ["1.seg", "0000000009.seg.bak", "notes"]) {
      const file = await files.open(`${FOLDER}/${name}`, "w+");
      await writeWholly(file, Buffer.from("not ours"), 0);
      await file.close();
    }
    const again = await openOutbox();
    expect([again.streamId, await texts(again)]).toEqual([before.streamId, ["a"]]);
    expect([...disk.contents().keys()]).toContain(`${FOLDER}/1.seg`);
  });
});

async function openOutbox(options: Partial<OutboxOptions> = {}): Promise<Outbox> {
  const random = seededRandom(opened.length + 1);
  const files = options.files ?? disk.boot();
  const outbox = await Outbox.open({ folder: FOLDER, clock: realClock, random, ...options, files });
  opened.push(outbox);
  return outbox;
}

/** How often each file is open. */
function counting(files: Files) {
  const open = new Map<string, number>();
  const count = (path: string, by: number) => open.set(path, (open.get(path) ?? 0) + by);
  const counted: Files = {
    ...files,
    open: async (path, flags, mode) => {
      const file = await files.open(path, flags, mode);
      count(path, 1);
      return { ...file, close: () => (count(path, -1), file.close()) };
    },
  };
  return { files: counted, open };
}

async function fill(outbox: Outbox, bytes = 20_000): Promise<never> {
  for (;;) await outbox.append([text("x".repeat(bytes))]);
}

function used(): number {
  return [...disk.contents().values()].reduce((sum, content) => sum + content.length, 0);
}

function segments(): readonly string[] {
  return [...disk.contents().keys()].filter((path) => path.endsWith(".seg"));
}

function text(data: string): Emission {
  return { body: { $case: "output", value: { commandId: "c", stderr: false, offset: 0, data: Buffer.from(data) } } };
}

async function texts(outbox: Outbox): Promise<readonly string[]> {
  const reader = outbox.reader(1);
  const entries = await reader.next(100, 1 << 24);
  await reader.close();
  return entries.map(({ body }) => (body?.$case === "output" ? body.value.data.toString() : ""));
}
