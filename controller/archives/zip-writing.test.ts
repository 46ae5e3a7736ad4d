import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { buffer, text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromBufferPromise, type Entry } from "yauzl";
import { uploadFolder } from "../../test/helpers/runs/archives.ts";
import { ARCHIVE_PIECE_BYTES } from "../../common/limits.ts";
import { centralRecord, descriptor, endRecords, localHeader } from "./zip-records.ts";
import { ZipArchive } from "./zip-reading.ts";
import { zipStream, type ZipPart } from "./zip-writing.ts";

const BOUNDS = { entriesMax: 100_000, unpackedMaxBytes: 2 ** 40, ratioMax: 1_000, ratioFreeBytes: 2 ** 40 };
const MODIFIED = new Date(2024, 1, 29, 12, 30, 58);

let folder: Awaited<ReturnType<typeof uploadFolder>>;
beforeAll(async () => {
  folder = await uploadFolder();
});
afterAll(() => folder.remove());

const bytesOf = (parts: Parameters<typeof zipStream>[0]): Promise<Buffer> => buffer(zipStream(parts));

const file = (path: string, content: string, more: Partial<ZipPart["content"]> = {}): ZipPart => ({
  path,
  modified: MODIFIED,
  content: { open: () => [content], ...more },
});

interface ZipProgram {
  readonly name: string;
  /** Output of a check of the whole archive. */
  readonly check: (path: string) => Promise<string>;
  readonly fine: RegExp;
  readonly read: (path: string, entry: string) => Promise<string>;
}

const PYTHON_READ = "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode(), end='')";

/** Programs of others. Info-ZIP is not installed everywhere. */
function programs(): readonly ZipProgram[] {
  const run = async (program: string, ...words: readonly string[]) =>
    (await promisify(execFile)(program, words)).stdout;
  const python: ZipProgram = {
    name: "python3",
    check: (path) => run("python3", "-m", "zipfile", "-t", path),
    fine: /^Done testing\n$/,
    read: (path, entry) => run("python3", "-c", PYTHON_READ, path, entry),
  };
  const infoZip: ZipProgram = {
    name: "unzip",
    check: (path) => run("unzip", "-tq", path),
    fine: /^No errors detected/,
    read: (path, entry) => run("unzip", "-p", path, entry),
  };
  return spawnSync("unzip", ["-v"]).status === 0 ? [python, infoZip] : [python];
}

async function entriesOf(archive: Buffer): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of (await fromBufferPromise(archive)).eachEntry()) entries.push(entry);
  return entries;
}

/** Each entry as a program finds it that reads the archive from its beginning, without the list at the end. */
function walk(archive: Buffer, entries: readonly Entry[]): readonly string[] {
  let at = 0;
  return entries.map((entry) => {
    expect(entry.relativeOffsetOfLocalHeader).toBe(at);
    expect(archive.readUInt32LE(at)).toBe(0x04034b50);
    expect(archive.readUInt16LE(at + 6)).toBe(entry.generalPurposeBitFlag);
    expect(archive.readUInt16LE(at + 8)).toBe(entry.compressionMethod);
    expect([archive.readUInt16LE(at + 10), archive.readUInt16LE(at + 12)]).toEqual([
      entry.lastModFileTime,
      entry.lastModFileDate,
    ]);
    const nameBytes = archive.readUInt16LE(at + 26);
    const name = archive.toString("utf8", at + 30, at + 30 + nameBytes);
    expect(entry.fileName).toBe(name);
    at += 30 + nameBytes + archive.readUInt16LE(at + 28) + entry.compressedSize;
    if (name.endsWith("/")) return name;
    const [signature, ...numbers] = [0, 4, 8, 12].map((offset) => archive.readUInt32LE(at + offset));
    expect(signature).toBe(0x08074b50);
    expect(numbers).toEqual([entry.crc32, entry.compressedSize, entry.uncompressedSize]);
    at += 16;
    return name;
  });
}

test("files and folders in any order are read back, from the list and from the beginning", async () => {
  const archive = await bytesOf([
    file("文件.txt", "text ".repeat(999)),
    { path: "d", modified: MODIFIED },
    file("d/stored", "as it is", { isStored: true, size: 8 }),
    file("d/empty", "", { size: 0 }),
  ]);
  const entries = await entriesOf(archive);
  expect(walk(archive, entries)).toEqual(["文件.txt", "d/", "d/stored", "d/empty"]);
  for (const entry of entries) expect(entry.getLastModDate()).toEqual(MODIFIED);
  const { path } = await folder.upload("a.zip", archive);
  await using zip = await ZipArchive.open(path, { bounds: BOUNDS });
  const found = await Promise.all(
    zip.entries.map(async (entry) => [entry.path, entry.mode, entry.isFolder ? "" : await text(zip.read(entry))]),
  );
  expect(found).toEqual([
    ["文件.txt", 0o100644, "text ".repeat(999)],
    ["d", 0o040755, ""],
    ["d/stored", 0o100644, "as it is"],
    ["d/empty", 0o100644, ""],
  ]);
  expect(await bytesOf([])).toHaveLength(22);
});

test("other programs find no fault", async () => {
  const parts = [
    file("文件.txt", "text ".repeat(999)),
    { path: "d", modified: MODIFIED },
    file("d/host:8080.log", "stored", { isStored: true, size: 6 }),
    file("d/host:9090.log", "", { size: 0 }),
  ];
  const { path } = await folder.upload("a.zip", await bytesOf(parts));
  for (const { name, check, fine, read } of programs()) {
    expect(await check(path), name).toMatch(fine);
    expect(await read(path, "d/host:8080.log"), name).toBe("stored");
  }
});

test("more entries than 16 bits count are listed", async () => {
  const count = 66_000;
  const folders = Array.from({ length: count - 1 }, (_, at) => ({ path: String(at), modified: MODIFIED }));
  const archive = await bytesOf([...folders, file("last", "hello")]);
  expect((await fromBufferPromise(archive)).entryCount).toBe(count);
  const { path } = await folder.upload("a.zip", archive);
  for (const { name, read } of programs()) expect(await read(path, "last"), name).toBe("hello");
});

test("sizes and offsets beyond 32 bits are written as 64 bits", async () => {
  const large = 5 * 2 ** 30;
  const name = { modified: MODIFIED, isPlainTime: false, isFolder: false, isPacked: false };
  const content = { crc: 0x3610a686, size: 5, packedSize: 5 };
  // The file has a hole in place of the first content.
  const parts = [
    { name: { ...name, path: "large", isLarge: true }, content: { crc: 0, size: large, packedSize: large } },
    { name: { ...name, path: "after", isLarge: false }, content },
  ] as const;
  const path = `${(await folder.upload("holes.zip", "")).path}`;
  const handle = await open(path, "w");
  let at = 0;
  const write = async (bytes: Buffer) => void (at += (await handle.write(bytes, 0, bytes.length, at)).bytesWritten);
  const list: Buffer[] = [];
  for (const part of parts) {
    list.push(centralRecord(part.name, part.content, at));
    await write(localHeader(part.name));
    if (part.content === content) await write(Buffer.from("hello"));
    else at += large;
    await write(descriptor(part.name, part.content));
  }
  const offset = at;
  await write(Buffer.concat(list));
  await write(endRecords({ count: list.length, offset, size: at - offset }));
  await handle.close();
  await using zip = await ZipArchive.open(path, { bounds: BOUNDS });
  expect(zip.entries.map((entry) => [entry.path, entry.size])).toEqual([
    ["large", large],
    ["after", 5],
  ]);
  expect(await text(zip.read(zip.entries[1] as never))).toBe("hello");
  for (const program of programs()) expect(await program.read(path, "after"), program.name).toBe("hello");
});

describe("an archive breaks off", () => {
  test("if a content has more or fewer bytes than stated, fails, or the list of parts fails", async () => {
    await expect(bytesOf([file("a", "text", { size: 5 })])).rejects.toThrow("a has 4 instead of 5 bytes");
    await expect(bytesOf([file("a", "text", { size: 3 })])).rejects.toThrow("a has more than 3 bytes");
    const failing = () =>
      (function* () {
        yield "x";
        throw new Error("the disk has failed");
      })();
    for (const isStored of [true, false])
      await expect(bytesOf([file("a", "", { open: failing, isStored })])).rejects.toThrow("the disk has failed");
    const parts = (function* () {
      yield file("a", "text");
      throw new Error("the list has failed");
    })();
    await expect(bytesOf(parts)).rejects.toThrow("the list has failed");
  });

  test.each([true, false])("if its reader goes away, and closes what it reads (stored: %s)", async (isStored) => {
    let closed = 0;
    const endless = async function* () {
      try {
        for (;;) yield await Promise.resolve(crypto.getRandomValues(new Uint8Array(ARCHIVE_PIECE_BYTES)));
      } finally {
        closed += 1;
      }
    };
    const stream = zipStream([file("a", "", { open: endless, isStored })]);
    await once(stream, "readable");
    await once(stream.destroy(), "close");
    expect(closed).toBe(1);
  });
});
