import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { uploadFolder, zipOf } from "../../test/helpers/runs/archives.ts";
import { ENCRYPTED, rawZip, UTF8_NAME, type RawEntry } from "../../test/helpers/runs/raw-zip.ts";
import { nameEncoding } from "./entry-names.ts";
import { ZipArchive } from "./zip-reading.ts";

const KIB = 1024;
const BOUNDS = { entriesMax: 100, unpackedMaxBytes: 512 * KIB, ratioMax: 10, ratioFreeBytes: 4 * KIB };

let folder: Awaited<ReturnType<typeof uploadFolder>>;
beforeAll(async () => {
  folder = await uploadFolder();
});
afterAll(() => folder.remove());

/** Each file as `path=content`, and each folder as `path/`. */
async function contentsOf(archive: Buffer, encoding?: string): Promise<readonly string[]> {
  const { path } = await folder.upload("a.zip", archive);
  await using zip = await ZipArchive.open(path, { bounds: BOUNDS, names: nameEncoding(encoding) });
  const contents: string[] = [];
  for (const entry of zip.entries) {
    const pieces: Uint8Array[] = [];
    if (!entry.isFolder) for await (const piece of zip.read(entry)) pieces.push(piece);
    contents.push(entry.path + (entry.isFolder ? "/" : `=${Buffer.concat(pieces).toString()}`));
  }
  return contents;
}

const fine: RawEntry = { name: "fine", content: "fine" };

test("files and folders are read in the order of the archive, packed and plain", async () => {
  const archive = rawZip([
    { name: "./" },
    { name: "d/", mode: 0o040755 },
    { name: "d/a", content: "one" },
    { name: "D/A", content: "other case, other file", isPacked: true },
    { name: "d/" },
    { name: "empty" },
  ]);
  expect(await contentsOf(archive)).toEqual(["d/", "d/a=one", "D/A=other case, other file", "d/", "empty="]);
  expect(await contentsOf(rawZip([]))).toEqual([]);
});

test("64-bit sizes, offsets and counts are understood", async () => {
  expect(await contentsOf(rawZip([fine, { name: "z", content: "64", isZip64: true }], { isZip64: true }))).toEqual([
    "fine=fine",
    "z=64",
  ]);
});

test("a name is decoded by the archive's flag, or else by the named encoding", async () => {
  const gbk = Buffer.from([0xce, 0xc4, 0xbc, 0xfe]);
  const archive = rawZip([
    { name: gbk, flags: 0, content: "g" },
    { name: "文本", flags: UTF8_NAME, content: "u" },
  ]);
  expect(await contentsOf(archive, "gbk")).toEqual(["文件=g", "文本=u"]);
  await expect(contentsOf(archive)).rejects.toThrow(/The name .* in the archive/);
});

describe.each<[string, RawEntry, RegExp]>([
  ["leaves the folder", { name: "../evil" }, /"\.\.\/evil".*relative/],
  ["leaves the folder later", { name: "a/../../evil" }, /evil.*relative/],
  ["is absolute", { name: "/etc/evil" }, /"\/etc\/evil".*absolute/],
  ["names a drive", { name: "C:/evil" }, /"C:\/evil".*absolute/],
  ["has backslashes", { name: "a\\..\\evil" }, /evil.*invalid characters/],
  ["has a control character", { name: "a\u0007b" }, /control character/],
  ["has a name that is too long", { name: "n".repeat(256) }, /"n+" has a name longer/],
  ["is too deep", { name: "d/".repeat(33) }, /"(d\/)+" is deeper/],
  ["is a link", { name: "link", content: "/etc/passwd", mode: 0o120777 }, /"link" is a link/],
  ["is a device", { name: "dev", mode: 0o020644 }, /"dev" is neither/],
  ["is encrypted", { name: "secret", flags: ENCRYPTED, size: 0, packedSize: 12 }, /"secret" is encrypted/],
  ["is strongly encrypted", { name: "s", flags: 0x41 }, /strong encryption/],
  ["is packed in an unknown way", { name: "lz", method: 14, content: "x" }, /"lz" is packed in an unknown way/],
  ["is a folder with a content", { name: "d/", content: "x" }, /"d\/" is a folder with a content/],
  ["comes twice", { name: "./fine", content: "second" }, /"fine" would be unpacked twice/],
  ["is a file and a folder", { name: "fine/below", content: "x" }, /"fine" would be both/],
  ["is a folder and a file", { name: "fine/" }, /"fine" would be both/],
  ["shares the bytes of another", { name: "copy", content: "fine", shares: 0 }, /"copy" shares its bytes/],
  ["begins inside another", { name: "in", content: "fine", shares: 0, shift: 4 }, /"in" shares its bytes/],
])("an archive with an entry that %s", (_why, entry, reason) => {
  test("is refused before anything is read", async () => {
    const { path } = await folder.upload("a.zip", rawZip([fine, entry]));
    await expect(ZipArchive.open(path, { bounds: BOUNDS })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringMatching(reason) as string,
    });
  });
});

test.each<[string, RawEntry, RegExp]>([
  ["more bytes than stated", { name: "m", content: "x".repeat(99), isPacked: true, size: 9 }, /"m" is damaged.*many/],
  ["fewer bytes than stated", { name: "f", content: "x", isPacked: true, size: 9 }, /"f" is damaged.*enough/],
  ["another checksum", { name: "c", content: "x", crc: 1 }, /"c" is damaged.*checksum/],
  ["bytes that are no packed ones", { name: "p", content: "\u00ff\u00ff", method: 8 }, /"p" is damaged/],
  ["a place where no entry is", { name: "o", content: "x", shift: 1 }, /"o" is damaged/],
])("an entry with %s is refused by its name when it is read", async (_what, entry, reason) => {
  await expect(contentsOf(rawZip([fine, entry]))).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringMatching(reason) as string,
  });
});

test("sizes that are stated differently for a plain entry are refused", async () => {
  await expect(contentsOf(rawZip([{ name: "s", content: "x", size: 2 }]))).rejects.toThrow(/mismatch/);
});

test("no archive, and one that is cut off, are refused", async () => {
  const archive = rawZip([fine, { name: "b", content: "y".repeat(5_000) }]);
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from("text ".repeat(99)),
    archive.subarray(0, 3_000),
    archive.subarray(9),
  ])
    await expect(contentsOf(bytes)).rejects.toMatchObject({ code: "invalid" });
});

describe("a bomb is refused by the sizes that it states, before anything is unpacked:", () => {
  const open = async (entries: readonly RawEntry[]) => {
    const { path } = await folder.upload("bomb.zip", rawZip(entries));
    await (await ZipArchive.open(path, { bounds: BOUNDS }))[Symbol.asyncDispose]();
  };
  const TOO_LARGE = { code: "too_large" };

  test("by its ratio", async () => {
    await expect(open([{ name: "zeros", content: Buffer.alloc(99 * KIB), isPacked: true }])).rejects.toMatchObject(
      TOO_LARGE,
    );
  });

  test("by all entries together", async () => {
    const some = (at: number) => ({ name: String(at), content: Buffer.alloc(3 * KIB), isPacked: true });
    await open([some(0)]);
    await expect(open(Array.from({ length: 50 }, (_, at) => some(at)))).rejects.toMatchObject(TOO_LARGE);
  });

  test("by its total, whatever its ratio", async () => {
    await expect(open([{ name: "plain", content: Buffer.alloc(513 * KIB) }])).rejects.toMatchObject(TOO_LARGE);
  });

  test("by the number of its entries", async () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `${at}/` }));
    await open(many(100));
    await expect(open(many(101))).rejects.toMatchObject(TOO_LARGE);
  });

  test("with sizes of 64 bits", async () => {
    const huge = { name: "h", content: "x", isZip64: true, isPacked: true, size: 2 ** 40 };
    await expect(open([huge])).rejects.toMatchObject(TOO_LARGE);
  });
});

test("archives that other programs write are read", async () => {
  expect(await contentsOf(await zipOf([{ name: "a/b", content: "c".repeat(9) }]))).toEqual(["a/b=ccccccccc"]);
});
