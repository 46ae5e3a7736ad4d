import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { FILE_ARCHIVES_AT_ONCE_MAX, FILE_EXPORT_SOURCES_MAX } from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Principal } from "../../permissions/index.ts";

const admin = testPrincipal();
const FILES = "/matrix/filesystem";

let engine: TestEngine;
let one: FileController;
/** Contents that are missing in the store, and the number of contents that are being read. */
const missing = new Set<string>();
let reading = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const read = (digest: string) => watched(store.blobs.read(digest), digest);
      return { ...store, blobs: new Mortality(Infinity, false).mortal(store.blobs, { read }) };
    },
  };
  one = fileController(stores, { data: engine });
  await tree();
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await engine.close();
});

async function* watched(bytes: AsyncIterable<Uint8Array>, digest: string): AsyncGenerator<Uint8Array> {
  reading += 1;
  try {
    yield* missing.has(digest) ? [Buffer.from("x")] : bytes;
  } finally {
    reading -= 1;
  }
}

const user = (path: string) => one.user(path);
const write = (path: string, text = path) => one.files.write(admin, user(path), { text });

async function tree(): Promise<void> {
  for (const path of ["/web/b/index.html", "/web/a/index.html", "/web/文件.txt", "/other/index.html"])
    await write(path);
  await write("/web/big.jpg", "j".repeat(300_000));
  await write("/web/big.log", "l".repeat(300_000));
  await one.files.makeFolder(admin, user("/web/empty/inner"));
}

async function packed(paths: readonly string[], principal: Principal = admin): Promise<Buffer> {
  const { bytes } = await one.files.archives.export(principal, paths.map(user));
  return buffer(bytes);
}

async function namesIn(archive: Buffer): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const entry of (await fromBufferPromise(archive)).eachEntry()) names.push(entry.fileName);
  return names;
}

describe("an export", () => {
  test("has files, and folders also when they are empty, under their whole paths, in the same order each time", async () => {
    const archive = await packed(["/web"]);
    expect(await namesIn(archive)).toEqual([
      "web/",
      "web/a/",
      "web/b/",
      "web/empty/",
      "web/empty/inner/",
      "web/a/index.html",
      "web/b/index.html",
      "web/big.jpg",
      "web/big.log",
      "web/文件.txt",
    ]);
    expect((await packed(["/web"])).equals(archive)).toBe(true);
  });

  test("has the times of the contents, names marked as UTF-8, and what is packed already as it is", async () => {
    const zip = await fromBufferPromise(await packed(["/web"]));
    const found = new Map<string, readonly [isPacked: boolean, packedSize: number]>();
    for await (const entry of zip.eachEntry()) {
      found.set(entry.fileName, [entry.isCompressed(), entry.compressedSize]);
      expect(entry.generalPurposeBitFlag & 0x800).toBe(0x800);
      const { modifiedMs } = await one.files.about(admin, user(`/${entry.fileName.replace(/\/$/, "")}`));
      expect(entry.getLastModDate().getTime()).toBe(Math.floor(modifiedMs / 1_000) * 1_000);
    }
    expect(found.get("web/big.jpg")).toEqual([false, 300_000]);
    const [isPacked, size] = found.get("web/big.log") ?? [];
    expect([isPacked, Number(size) < 3_000]).toEqual([true, true]);
  });

  test("keeps files of the same name from several folders apart, and has each once", async () => {
    const names = await namesIn(
      await packed(["/web/b", "//web/a/index.html", "/web/a/", "/other/index.html", "/web/b"]),
    );
    expect(names).toEqual(["web/a/", "web/b/", "other/index.html", "web/a/index.html", "web/b/index.html"]);
    expect(await namesIn(await packed(["/"]))).toContain("other/index.html");
  });

  test("is named after what is in it", async () => {
    const nameOf = async (...paths: readonly string[]) => {
      const { bytes, filename } = await one.files.archives.export(admin, paths.map(user));
      await once(bytes.destroy(), "close");
      return filename;
    };
    expect(await nameOf("/web/a")).toBe("a.zip");
    expect(await nameOf("/web/a/index.html")).toBe("index.html.zip");
    expect(await nameOf("/web/a", "/other")).toBe("files.zip");
    expect(await nameOf("/")).toBe("files.zip");
  });
});

describe("before its first byte an export is refused", () => {
  const refused = (paths: readonly string[], as: Principal, code: string) =>
    expect(one.files.archives.export(as, paths.map(user)), code).rejects.toMatchObject({ code });

  test("without a path, with too many, and if one of them is not there", async () => {
    await refused([], admin, "invalid");
    await refused(
      Array.from({ length: FILE_EXPORT_SOURCES_MAX + 1 }, () => "/web"),
      admin,
      "too_large",
    );
    await refused(["/web", "/none"], admin, "not_found");
    await refused(["/web", "/web/none"], admin, "not_found");
    await refused(["../web"], admin, "invalid");
  });

  test("for what is closed to the caller, or in part invisible, as a copy is", async () => {
    await refused(["/web"], { ...admin, paths: ["/other"] }, "denied");
    await refused(["/"], { ...admin, paths: ["/other"] }, "denied");
    const ruled = (rule: object): Principal => ({
      ...admin,
      data: [
        { class: "/", access: "write" },
        { class: FILES, access: "write", ...rule },
      ],
    });
    await refused(["/web"], ruled({ where: "name <> 'big.log'" }), "denied");
    await refused(["/web/big.log"], ruled({ where: "name <> 'big.log'" }), "not_found");
    await refused(["/web"], ruled({ hidden: ["digest"] }), "denied");
    expect(await namesIn(await packed(["/web/a"], ruled({ where: "name <> 'big.log'" })))).toHaveLength(2);
  });

  test("in the system's space for others than administrators", async () => {
    const asked = [{ path: "/web", space: "system" }] as const;
    const as = { ...admin, paths: ["/web"] };
    await expect(one.files.archives.export(as, asked)).rejects.toMatchObject({ code: "denied" });
    await expect(one.files.archives.export(admin, asked)).rejects.toMatchObject({ code: "not_found" });
  });
});

test("an archive breaks off if a content is not what its file says", async () => {
  const { digest } = await one.files.open(admin, "/web/b/index.html", "user");
  missing.add(digest);
  await expect(packed(["/web"])).rejects.toThrow(/web\/b\/index.html has 1 instead of 17 bytes/);
  missing.clear();
  await expect(packed(["/web"])).resolves.toBeDefined();
});

test("reading ends when the caller has gone, and its place is free again", async () => {
  // More than the streams of an archive hold.
  await write("/large.jpg", "j".repeat(4_000_000));
  const away = new AbortController();
  const open = () => one.files.archives.export(admin, [user("/large.jpg")], away.signal);
  const exports = await Promise.all(Array.from({ length: FILE_ARCHIVES_AT_ONCE_MAX }, open));
  for (const { bytes } of exports) bytes.read(1);
  await expect.poll(() => reading).toBe(FILE_ARCHIVES_AT_ONCE_MAX);
  await expect(open()).rejects.toMatchObject({ code: "limited" });
  away.abort();
  await expect.poll(() => reading).toBe(0);
  expect(exports.every(({ bytes }) => bytes.destroyed)).toBe(true);
  await expect(packed(["/web/a"])).resolves.toBeDefined();
});
