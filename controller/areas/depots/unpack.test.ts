import { createHash } from "node:crypto";
import { crc32, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tarHeader, tarOf, uploadFolder, zipOf, type ArchiveEntry } from "../../../test/helpers/runs/archives.ts";
import { nameEncoding } from "../../archives/entry-names.ts";
import { unpackUploads } from "./unpack.ts";

let folder: Awaited<ReturnType<typeof uploadFolder>>;
beforeAll(async () => {
  folder = await uploadFolder();
});
afterAll(() => folder.remove());

const FORMS: readonly [string, (entries: readonly ArchiveEntry[]) => Promise<Buffer>][] = [
  ["a.zip", zipOf],
  ["a.tar", (entries) => Promise.resolve(tarOf(entries))],
  ["a.tar.gz", (entries) => Promise.resolve(gzipSync(tarOf(entries)))],
  ["A.TGZ", (entries) => Promise.resolve(gzipSync(tarOf(entries)))],
];

async function unpack(filename: string, content: Buffer | string, encoding?: string) {
  const contents: Buffer[] = [];
  const upload = { ...(await folder.upload(filename, content)), names: nameEncoding(encoding) };
  const files = await unpackUploads([upload], async (bytes) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of bytes) pieces.push(piece);
    const whole = Buffer.concat(pieces);
    contents.push(whole);
    return { digest: createHash("sha256").update(whole).digest("hex"), size: whole.length };
  });
  return { files, contents };
}

describe.each(FORMS)("%s", (filename, make) => {
  test("becomes a manifest of files with their modes, folders vanish", async () => {
    const big = Buffer.alloc(200_000, "x");
    const { files, contents } = await unpack(
      filename,
      await make([
        { name: "bin/", flag: "5", mode: 0o040755 },
        { name: "bin/check.sh", content: "#!/bin/sh\n", mode: 0o100755 },
        { name: "./read.me".slice(2), content: "read" },
        { name: "big.bin", content: big },
        { name: "empty", content: "" },
      ]),
    );
    expect(files.map((file) => [file.path, file.size, file.executable])).toEqual([
      ["big.bin", 200_000, false],
      ["bin/check.sh", 10, true],
      ["empty", 0, false],
      ["read.me", 4, false],
    ]);
    expect(contents.find((content) => content.length === big.length)?.equals(big)).toBe(true);
  });

  test.each([
    ["../evil.sh", /leaves|invalid relative path/],
    ["a/../../evil.sh", /leaves|invalid relative path/],
    ["/etc/cron.d/evil", /absolute/],
    ["C:/evil.sh", /drive|absolute/],
    ["a\\..\\evil.sh", /backslash|invalid characters/],
    ["a\nb", /control/],
  ])("is refused when an entry is called %j", async (name, reason) => {
    const archive = await make([
      { name: "fine.sh", content: "x" },
      { name, content: "evil" },
    ]);
    await expect(unpack(filename, archive)).rejects.toThrow(reason);
  });

  test("is refused when a path comes twice, or is file and folder", async () => {
    const twice = await make([
      { name: "a", content: "1" },
      { name: "a", content: "2" },
    ]);
    await expect(unpack(filename, twice)).rejects.toThrow(/twice/);
    const both = await make([
      { name: "a", content: "1" },
      { name: "a/b", content: "2" },
    ]);
    await expect(unpack(filename, both)).rejects.toThrow(/both a file and a folder/);
  });

  test("is refused when it is cut off", async () => {
    const archive = await make([{ name: "a", content: Buffer.alloc(5_000, "y") }]);
    await expect(unpack(filename, archive.subarray(0, Math.floor(archive.length / 3)))).rejects.toThrow(
      /cannot be read|damaged/,
    );
  });

  test("is refused when it holds no file", async () => {
    await expect(unpack(filename, await make([]))).rejects.toThrow(/no file in it/);
  });

  test("is refused when it holds no archive at all", async () => {
    await expect(unpack(filename, "just text, long enough to be looked at ".repeat(50))).rejects.toThrow(
      /cannot be read|damaged/,
    );
  });
});

test("a symbolic link in a zip is refused", async () => {
  const archive = await zipOf([{ name: "link", content: "/etc/passwd", mode: 0o120777 }]);
  await expect(unpack("a.zip", archive)).rejects.toThrow(/is a link/);
});

test.each([
  ["1", "link"],
  ["2", "link"],
  ["3", "neither"],
  ["6", "neither"],
  ["S", "neither"],
])("tar entry type %s is refused", async (flag, reason) => {
  const archive = tarOf([
    { name: "link", flag, link: "/etc/passwd" },
    { name: "link/x", content: "evil" },
  ]);
  await expect(unpack("a.tar", archive)).rejects.toThrow(reason);
});

test("a bomb is stopped by its ratio, long before it is unpacked", async () => {
  const bomb = Buffer.alloc(64 * 1024 * 1024);
  let read = 0;
  const upload = await folder.upload("bomb.tgz", gzipSync(tarOf([{ name: "zeros", content: bomb }])));
  const unpacking = unpackUploads([upload], async (bytes) => {
    for await (const piece of bytes) read += piece.length;
    return { digest: "", size: read };
  });
  await expect(unpacking).rejects.toMatchObject({ code: "too_large" });
  expect(read).toBeLessThan(32 * 1024 * 1024);
  await expect(unpack("bomb.zip", await zipOf([{ name: "zeros", content: bomb }]))).rejects.toMatchObject({
    code: "too_large",
  });
});

test.each([
  ["zeros behind its end", (zeros: Buffer) => Buffer.concat([tarOf([{ name: "a", content: "x" }]), zeros])],
  [
    "headers that belong to no file",
    (zeros: Buffer) => {
      const header = tarHeader({ name: "pax", flag: "g" }, 60 * 1024);
      const padded = Buffer.concat([header, zeros.subarray(0, 60 * 1024)]);
      return Buffer.concat([
        ...Array.from({ length: Math.floor(zeros.length / padded.length) }, () => padded),
        tarOf([{ name: "a", content: "x" }]),
      ]);
    },
  ],
])("a bomb made of %s is stopped by the same ratio", async (_what, make) => {
  const bomb = gzipSync(make(Buffer.alloc(64 * 1024 * 1024)));
  await expect(unpack("bomb.tgz", bomb)).rejects.toMatchObject({ code: "too_large" });
});

test("a tar header that lies about its size or checksum is refused", async () => {
  const lying = Buffer.concat([tarHeader({ name: "a" }, 10_000_000), Buffer.alloc(512, "x")]);
  await expect(unpack("a.tar", lying)).rejects.toThrow(/cut off/);
  const torn = tarOf([{ name: "a", content: "x" }]);
  torn[0] = 0x62;
  await expect(unpack("a.tar", torn)).rejects.toThrow(/checksum/);
});

test("long names of GNU and pax archives are whole, and as dangerous as short ones", async () => {
  const long = `${"d".repeat(80)}/${"e".repeat(80)}`;
  const gnu = [
    { name: "././@LongLink", flag: "L", content: `${long}\0` },
    { name: "cut", content: "1" },
  ];
  expect((await unpack("a.tar", tarOf(gnu))).files[0]?.path).toBe(long);
  expect(
    (
      await unpack(
        "a.tar",
        tarOf([
          { name: "PaxHeader", flag: "x", content: paxRecord("path", long) },
          { name: "cut", content: "1" },
        ]),
      )
    ).files[0]?.path,
  ).toBe(long);
  const evil = [
    { name: "PaxHeader", flag: "x", content: paxRecord("path", "../evil") },
    { name: "fine", content: "1" },
  ];
  await expect(unpack("a.tar", tarOf(evil))).rejects.toThrow(/leaves/);
});

test("a sparse file of GNU tar is refused: its content begins with a map of its holes", async () => {
  const sparse = (...records: readonly string[]) =>
    tarOf([
      { name: "PaxHeader", flag: "x", content: records.join("") },
      { name: "GNUSparseFile.0/disk", content: "1\n0\n512\n" },
    ]);
  for (const records of [
    [paxRecord("GNU.sparse.major", "1"), paxRecord("GNU.sparse.minor", "0"), paxRecord("GNU.sparse.name", "disk")],
    [paxRecord("GNU.sparse.map", "0,512"), paxRecord("GNU.sparse.size", "4096")],
  ])
    await expect(unpack("a.tar", sparse(...records))).rejects.toThrow(/is neither a file nor a folder/);
});

/** A zip of one file with this raw name, with or without the UTF-8 flag, and with an extra field. */
async function zipNamed(name: Buffer, { isMarked = false, extra = Buffer.alloc(0) as Buffer } = {}): Promise<Buffer> {
  const zip = await zipOf([{ name: "n".repeat(name.length), content: "1" }]);
  for (let at = zip.indexOf("nnn"); at >= 0; at = zip.indexOf("nnn", at + 1)) name.copy(zip, at);
  for (const [signature, flags] of [
    ["PK\u0003\u0004", 6],
    ["PK\u0001\u0002", 8],
  ] as const)
    zip.writeUInt16LE(
      (zip.readUInt16LE(zip.indexOf(signature) + flags) & ~0x800) | (isMarked ? 0x800 : 0),
      zip.indexOf(signature) + flags,
    );
  const entry = zip.indexOf("PK\u0001\u0002");
  const [end, at] = [zip.indexOf("PK\u0005\u0006"), entry + 46 + name.length];
  zip.writeUInt16LE(extra.length, entry + 30);
  zip.writeUInt32LE(zip.readUInt32LE(end + 12) + extra.length, end + 12);
  return Buffer.concat([zip.subarray(0, at), extra, zip.subarray(at)]);
}

/** Info-ZIP Unicode Path Extra Field of a name. */
function unicodeField(name: string, crc: number): Buffer {
  const text = Buffer.from(name);
  const field = Buffer.alloc(9);
  field.writeUInt16LE(0x7075, 0);
  field.writeUInt16LE(5 + text.length, 2);
  field.writeUInt8(1, 4);
  field.writeUInt32LE(crc, 5);
  return Buffer.concat([field, text]);
}

const GBK_NAME = Buffer.from("b1e0c2eb2e7368", "hex");

test("names in a zip are read by its marks, else in the encoding that is named, else as UTF-8", async () => {
  const named = async (...zip: Parameters<typeof zipNamed>) =>
    (await unpack("a.zip", await zipNamed(...zip))).files[0]?.path;
  const utf8 = Buffer.from("编码.sh");
  expect(await named(utf8, { isMarked: true })).toBe("编码.sh");
  expect(await named(utf8)).toBe("编码.sh");
  expect(await named(GBK_NAME, { extra: unicodeField("编码.sh", crc32(GBK_NAME)) })).toBe("编码.sh");
  const gbk = await zipNamed(GBK_NAME);
  expect((await unpack("a.zip", gbk, "gbk")).files[0]?.path).toBe("编码.sh");
  expect((await unpack("a.zip", await zipNamed(utf8, { isMarked: true }), "gbk")).files[0]?.path).toBe("编码.sh");
  await expect(unpack("a.zip", gbk)).rejects.toThrow(
    "in the archive is no utf-8 text at byte 1: name its encoding by encoding=",
  );
  await expect(named(GBK_NAME, { extra: unicodeField("other.sh", crc32(utf8)) })).rejects.toThrow("no utf-8 text");
  await expect(unpack("a.zip", await zipNamed(Buffer.from("..\\b")), "gbk")).rejects.toThrow("is refused");
  expect(() => nameEncoding("utf-16le")).toThrow("none of names in archives");
});

test("names in a tar are UTF-8 in pax headers, and else in the encoding that is named, or UTF-8", async () => {
  const tar = tarOf([{ name: "nnnnnnn", content: "1" }]);
  GBK_NAME.copy(tar, 0);
  tar.fill(0x20, 148, 156);
  const sum = tar.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  tar.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  expect((await unpack("a.tar", tar, "gbk")).files[0]?.path).toBe("编码.sh");
  await expect(unpack("a.tar", tar)).rejects.toThrow("in the archive is no utf-8 text at byte 1");
  const pax = tarOf([
    { name: "PaxHeader", flag: "x", content: paxRecord("path", "编码") },
    { name: "cut", content: "1" },
  ]);
  expect((await unpack("a.tar", pax, "gbk")).files[0]?.path).toBe("编码");
  // bsdtar writes names like this when it cannot convert them to UTF-8.
  const path = [paxRecord("hdrcharset", "BINARY"), "16 path=", GBK_NAME, "\n"].map((part) => Buffer.from(part));
  const binary = tarOf([
    { name: "PaxHeader", flag: "x", content: Buffer.concat(path) },
    { name: "cut", content: "1" },
  ]);
  expect((await unpack("a.tar", binary, "gbk")).files[0]?.path).toBe("编码.sh");
  await expect(unpack("a.tar", binary)).rejects.toThrow("in the archive is no utf-8 text at byte 1");
});

test("a plain file is taken as it is; a script or program may be started", async () => {
  expect((await unpack("check.sh", "#!/bin/sh\necho 1\n")).files).toMatchObject([
    { path: "check.sh", executable: true },
  ]);
  expect((await unpack("notes.txt", "hello")).files).toMatchObject([{ path: "notes.txt", executable: false }]);
  await expect(unpack("../notes.txt", "hello")).rejects.toThrow(/leaves/);
});

test("archives inside archives stay files", async () => {
  const inner = tarOf([{ name: "../evil", content: "x" }]);
  expect((await unpack("a.tar", tarOf([{ name: "inner.tar", content: inner }]))).files).toMatchObject([
    { path: "inner.tar" },
  ]);
});

test("too many entries are refused", async () => {
  const many = Array.from({ length: 10_001 }, (_, index) => ({ name: `f${index}`, content: "" }));
  await expect(unpack("a.tar", tarOf(many))).rejects.toMatchObject({ code: "too_large" });
});

/** The length counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = Buffer.byteLength(rest);
  let length = size;
  while (String(length).length + size !== length) length = String(length).length + size;
  return `${length}${rest}`;
}
