import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { emitWhenRoom } from "../policies/host.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { OUTBOX_PINS_SLOT_BYTES } from "../../common/limits.ts";
import { nodeFiles } from "../disk/files.ts";
import { folder, useOutboxes, openOutbox, text, texts, segments } from "../../test/helpers/hosts/outbox-world.ts";

useOutboxes();

describe("an outbox", () => {
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

  it("takes nothing of what waited while a failed write could not be taken back", async () => {
    const disk = { freeBytes: Infinity, truncates: false };
    const outbox = await openOutbox({ files: smallDisk(disk) });
    disk.freeBytes = 100;
    const written = outbox.append([text("y".repeat(500))]).finally(() => (disk.freeBytes = Infinity));
    // The first append is being written when the second one comes.
    await Promise.resolve();
    const waited = outbox.append([text("a")]);
    await Promise.all([
      expect(written).rejects.toMatchObject({ code: "limited" }),
      expect(waited).rejects.toMatchObject({ code: "internal" }),
    ]);
    expect(await texts(outbox, 1)).toEqual([]);
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
