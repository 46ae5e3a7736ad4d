import { describe, expect, it } from "vitest";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { ForgetfulFiles } from "../../test/helpers/engines/forgetful-files.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { folder, useOutboxes, text, texts } from "../../test/helpers/hosts/outbox-world.ts";

useOutboxes();

describe("an outbox", () => {
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
});

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
