import { appendFile, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { ForgetfulFiles } from "../../test/helpers/engines/forgetful-files.ts";
import { emitWhenRoom } from "../policies/host.ts";
import { Outbox, type Emission, type OutboxOptions } from "./outbox.ts";
import { encodeHeader } from "./segment.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { OUTBOX_PINS_SLOT_BYTES, OUTBOX_TIME_AHEAD_MAX_MS } from "../../common/limits.ts";
import { nodeFiles } from "../disk/files.ts";

let folder: string;
let opened: Outbox[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-outbox-"));
  opened = [];
});

afterEach(async () => {
  for (const outbox of opened) await outbox.close();
  await rm(folder, { recursive: true, force: true });
});

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

  it("writes entries and marks in one piece: wherever the file is torn, both are there or neither", async () => {
    const outbox = await openOutbox();
    for (let index = 1; index <= 5; index++)
      await outbox.append([text(`a${index}`), text(`b${index}`)], { marks: [{ key: "at", value: String(index) }] });
    await outbox.close();
    const path = await onlySegment();
    const whole = await readFile(path);
    for (let size = whole.length; size > whole.length - 200; size -= 7) {
      await truncate(path, size);
      const torn = await openOutbox();
      const held = await texts(torn, 1);
      expect(held.length).toBe(2 * Number(torn.mark("at") ?? 0));
      expect(await torn.append([text("next")])).toBe(held.length + 1);
      expect(await texts(torn, 1)).toEqual([...held, "next"]);
      await torn.close();
      await writeFile(path, whole);
    }
  });

  it("leaves out a damaged frame in the middle and keeps what is behind it", async () => {
    const outbox = await openOutbox();
    for (const name of ["aaaa", "bbbb", "cccc"]) await outbox.append([text(name)]);
    await outbox.close();
    const path = await onlySegment();
    const bytes = await readFile(path);
    bytes.write("X", bytes.indexOf("bbbb"));
    await writeFile(path, bytes);
    const damaged = await openOutbox();
    expect(damaged.damagedFrames).toBe(1);
    expect(await texts(damaged, 1)).toEqual(["aaaa", "cccc"]);
    expect(await damaged.append([text("dddd")])).toBe(4);
  });

  it("keeps what is behind several damaged frames in a row, and goes on behind it", async () => {
    const outbox = await openOutbox();
    for (const name of ["aaaa", "bbbb", "cccc", "dddd", "eeee"]) await outbox.append([text(name)]);
    await outbox.close();
    const path = await onlySegment();
    const bytes = await readFile(path);
    for (const name of ["bbbb", "cccc", "dddd"]) bytes.write("X", bytes.indexOf(name));
    await writeFile(path, bytes);
    const damaged = await openOutbox();
    expect([damaged.damagedFrames, damaged.tornBytes]).toEqual([3, 0]);
    expect(await texts(damaged, 1)).toEqual(["aaaa", "eeee"]);
    expect(await damaged.append([text("ffff")])).toBe(6);
  });

  it("cuts garbage off its end", async () => {
    const outbox = await openOutbox();
    await outbox.append([text("a")]);
    await outbox.close();
    await appendFile(await onlySegment(), Buffer.alloc(5_000, 7));
    const again = await openOutbox();
    expect(again.tornBytes).toBe(5_000);
    expect(await texts(again, 1)).toEqual(["a"]);
    await again.close();
    expect((await openOutbox()).tornBytes).toBe(0);
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

  it("survives a full disk: the append fails, nothing of it stays, and waiting writers go on when there is space", async () => {
    const disk = { freeBytes: Infinity };
    const outbox = await openOutbox({ files: smallDisk(disk) });
    await outbox.append([text("before")], { marks: [{ key: "at", value: "1" }] });
    disk.freeBytes = 150;
    await expect(outbox.append([text("y".repeat(500))], { marks: [{ key: "at", value: "2" }] })).rejects.toMatchObject({
      code: "limited",
      details: { reason: "disk_full" },
    });
    expect(outbox.mark("at")).toBe("1");
    const waiting = emitWhenRoom(outbox, [text("z".repeat(500))], { marks: [{ key: "at", value: "3" }] });
    disk.freeBytes = Infinity;
    await waiting;
    expect(await texts(outbox, 1)).toEqual(["before", "z".repeat(500)]);
    await outbox.close();
    const again = await openOutbox();
    expect(again.tornBytes).toBe(0);
    expect([again.mark("at"), again.nextSequence]).toEqual(["3", 3]);
  });

  it("writes the small ones when only all together are too much for the disk", async () => {
    const disk = { freeBytes: Infinity };
    const outbox = await openOutbox({ files: smallDisk(disk) });
    disk.freeBytes = 200;
    const both = await Promise.allSettled([outbox.append([text("y".repeat(5_000))]), outbox.append([text("small")])]);
    expect(both.map((result) => result.status)).toEqual(["rejected", "fulfilled"]);
    expect(await texts(outbox, 1)).toEqual(["small"]);
  });

  it("gives a full disk back what is acknowledged, though all of it is in the file being written", async () => {
    const outbox = await openOutbox({ files: diskOf(400_000 + 2 * OUTBOX_PINS_SLOT_BYTES) });
    await outbox.append([], { marks: [{ key: "kept", value: "yes" }] });
    const fill = async () => {
      for (;;) await outbox.append([text("x".repeat(10_000))]);
    };
    await expect(fill()).rejects.toMatchObject({ code: "limited", details: { reason: "disk_full" } });
    expect(await segments()).toEqual(["0000000001.seg"]);
    const late = "late".repeat(5_000);
    const waiting = emitWhenRoom(outbox, [text(late)]);
    await outbox.acknowledge(outbox.nextSequence - 1);
    await waiting;
    expect(await segments()).toEqual(["0000000002.seg"]);
    expect([outbox.mark("kept"), await texts(outbox, outbox.firstSequence)]).toEqual(["yes", [late]]);
    await expect(fill()).rejects.toMatchObject({ details: { reason: "disk_full" } });
    await outbox.close();
    const again = await openOutbox();
    expect([again.mark("kept"), (await texts(again, again.firstSequence))[0]]).toEqual(["yes", late]);
  });

  it("takes nothing more when a failed write cannot be taken back", async () => {
    const disk = { freeBytes: Infinity, truncates: false };
    const outbox = await openOutbox({ files: smallDisk(disk) });
    disk.freeBytes = 100;
    await expect(outbox.append([text("y".repeat(500))])).rejects.toThrow();
    await expect(outbox.append([text("a")])).rejects.toMatchObject({ code: "internal" });
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

  it("knows a file that could not be finished, should its deletion have been lost", async () => {
    const outbox = await openOutbox();
    for (const name of ["a", "b"]) await outbox.append([text(name)], { marks: [{ key: "at", value: name }] });
    await outbox.close();
    const header = encodeHeader({ format: 1, stream: outbox.streamId, base: 2, marks: [["at", "a"]] });
    await writeFile(join(folder, "0000000002.seg"), header);
    const again = await openOutbox();
    expect([again.mark("at"), again.nextSequence, await texts(again, 1)]).toEqual(["b", 3, ["a", "b"]]);
  });

  it("goes on behind nothing that only the machine's memory holds, as after a sync that failed", async () => {
    const disk = new ForgetfulFiles(1);
    const before = await Outbox.open(onDisk(disk));
    disk.faults.fails = (operation) => operation === "sync" || operation === "truncate";
    await expect(before.append([text("a")])).rejects.toMatchObject({ code: "unavailable" });
    disk.kill();
    disk.faults.fails = () => false;
    const next = await Outbox.open(onDisk(disk));
    expect(await texts(next, 1)).toEqual(["a"]);
    await next.append([text("b")], { marks: [{ key: "at", value: "b" }] });
    disk.powerCut();
    const last = await Outbox.open(onDisk(disk));
    expect([last.mark("at"), await texts(last, 1)]).toEqual(["b", ["a", "b"]]);
  });

  it("brings nothing back that was refused, whatever of its removal a power cut leaves", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const disk = new ForgetfulFiles(seed);
      const fault = { due: false };
      const outbox = await Outbox.open({ ...onDisk(disk), files: failingLate(disk.boot(), fault) });
      await outbox.append([text("kept")]);
      fault.due = true;
      await expect(outbox.append([text("refused")])).rejects.toMatchObject({ code: "unavailable" });
      disk.powerCut();
      expect(await texts(await Outbox.open(onDisk(disk)), 1), `seed ${seed}`).toEqual(["kept"]);
    }
  });

  it("forgets nothing for a file that could not be finished, whatever of its deletion a power cut leaves", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const disk = new ForgetfulFiles(seed);
      const outbox = await Outbox.open(onDisk(disk));
      disk.faults.fails = failingOnce("sync", folder);
      await expect(outbox.renewStream()).rejects.toMatchObject({ code: "EIO" });
      await outbox.append([], { marks: [{ key: "at", value: "later" }] });
      disk.powerCut();
      const again = await Outbox.open(onDisk(disk));
      expect([again.streamId, again.mark("at")], `seed ${seed}`).toEqual([outbox.streamId, "later"]);
    }
  });

  it("knows what was acknowledged of a file before it deletes the file, wherever it is killed", async () => {
    for (const at of [0, -2]) {
      const disk = new ForgetfulFiles(1);
      const outbox = await Outbox.open(onDisk(disk));
      const paths = await severalFiles(outbox);
      const killed = removal(disk, paths.at(at), () => disk.kill());
      void outbox.acknowledge(outbox.nextSequence - 1);
      await killed;
      const again = await Outbox.open(onDisk(disk));
      // Otherwise the entries of that file would be reported as lost.
      expect(again.acknowledged).toBe(outbox.nextSequence - 1);
    }
  });

  it("deletes files in their order: no power cut leaves an older one behind a hole", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const disk = new ForgetfulFiles(seed);
      const outbox = await Outbox.open(onDisk(disk));
      const paths = await severalFiles(outbox);
      const cut = removal(disk, paths.at(-2), () => disk.powerCut());
      void outbox.acknowledge(outbox.nextSequence - 1);
      await cut;
      const left = paths.filter((path) => disk.contents().has(path));
      expect(left, `seed ${seed}`).toEqual(paths.slice(-left.length));
    }
  });

  it("keeps its name when there is no room to write the new one down", async () => {
    const disk = { freeBytes: Infinity };
    const outbox = await openOutbox({ files: smallDisk(disk) });
    await outbox.append([text("a")]);
    const before = outbox.streamId;
    disk.freeBytes = 10;
    await expect(outbox.renewStream()).rejects.toMatchObject({ code: "ENOSPC" });
    expect(outbox.streamId).toBe(before);
  });
});

async function openOutbox(options: Partial<OutboxOptions> = {}): Promise<Outbox> {
  const outbox = await Outbox.open({ folder, clock: realClock, random: seededRandom(opened.length + 1), ...options });
  opened.push(outbox);
  return outbox;
}

function onDisk(disk: ForgetfulFiles): OutboxOptions {
  return { folder, clock: realClock, random: seededRandom(1), files: disk.boot(), maxBytes: 1 << 20 };
}

/** Fills files, and answers their paths. */
async function severalFiles(outbox: Outbox): Promise<readonly string[]> {
  while (outbox.segments.length < 8) await outbox.append([text("x".repeat(70_000))]);
  return outbox.segments.map(({ path }) => path);
}

/** Resolves after `act`, which comes when that file was removed and the outbox has no answer yet. */
function removal(disk: ForgetfulFiles, path: string | undefined, act: () => void): Promise<void> {
  return new Promise((resolve) => {
    disk.faults.happened = (operation, of) => {
      if (operation !== "rm" || of !== path) return;
      delete disk.faults.happened;
      act();
      resolve();
    };
  });
}

function failingOnce(operation: string, path: string): (now: string, at: string) => boolean {
  let left = 1;
  return (now, at) => now === operation && at === path && left-- > 0;
}

function text(data: string): Emission {
  return { body: { $case: "output", value: { commandId: "c", stderr: false, offset: 0, data: Buffer.from(data) } } };
}

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

function textOf(body: unknown): string {
  const output = body as Emission["body"];
  return output.$case === "output" ? output.value.data.toString() : output.$case;
}

async function texts(outbox: Outbox, from: number): Promise<string[]> {
  const reader = outbox.reader(from);
  const all: string[] = [];
  for (let entries = await reader.next(7, 1_000); entries.length > 0; entries = await reader.next(7, 1_000)) {
    all.push(...entries.map(({ body }) => textOf(body)));
  }
  await reader.close();
  return all;
}

async function onlySegment(): Promise<string> {
  const names = await segments();
  expect(names).toHaveLength(1);
  return join(folder, names[0] ?? "");
}

async function segments(): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith(".seg"));
}

/** A disk of that size with nothing on it but the outbox; it takes whole blocks, as disks do. */
function diskOf(capacityBytes: number): Files {
  const blockBytes = 4_096;
  const blocks = (bytes: number) => Math.ceil(bytes / blockBytes) * blockBytes;
  return filesThat((file, path) => ({
    write: async (bytes, offset, length, position) => {
      const others = await Promise.all(
        (await readdir(folder)).map(async (name) =>
          join(folder, name) === path ? 0 : blocks((await stat(join(folder, name))).size),
        ),
      );
      const fits = Math.min(length, capacityBytes - others.reduce((sum, size) => sum + size, 0) - position);
      if (fits <= 0) throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
      return file.write(bytes, offset, fits, position);
    },
  }));
}

/** A disk that takes so much and then, in the middle of a write, no more. */
function smallDisk(disk: { freeBytes: number; truncates?: boolean }): Files {
  return filesThat((file) => ({
    write: async (bytes, offset, length, position) => {
      const fits = Math.min(length, disk.freeBytes);
      disk.freeBytes -= fits;
      if (fits === 0) throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
      return file.write(bytes, offset, fits, position);
    },
    truncate: async (length) => {
      if (disk.truncates === false) throw new Error("EIO");
      disk.freeBytes += (await file.stat()).size - length;
      return file.truncate(length);
    },
  }));
}

function filesThat(differ: (file: OpenFile, path: string) => Partial<OpenFile>): Files {
  const open = async (path: string, flags: string): Promise<OpenFile> => {
    const file = await nodeFiles.open(path, flags);
    return {
      read: (...at) => file.read(...at),
      write: (...at) => file.write(...at),
      truncate: (length) => file.truncate(length),
      datasync: () => file.datasync(),
      sync: () => file.sync(),
      stat: () => file.stat(),
      close: () => file.close(),
      ...differ(file, path),
    };
  };
  return { ...nodeFiles, open };
}

/** A sync that fails once although everything reached the disk: the system tells the failure, not how far it came. */
function failingLate(files: Files, fault: { due: boolean }): Files {
  const wrap = (file: OpenFile): OpenFile => ({
    read: (into, offset, length, position) => file.read(into, offset, length, position),
    write: (bytes, offset, length, position) => file.write(bytes, offset, length, position),
    truncate: (bytes) => file.truncate(bytes),
    sync: () => file.sync(),
    stat: () => file.stat(),
    close: () => file.close(),
    async datasync() {
      await file.datasync();
      if (!fault.due) return;
      fault.due = false;
      throw new Error("EIO");
    },
  });
  return { ...files, open: async (path, flags, mode) => wrap(await files.open(path, flags, mode)) };
}
