import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FILE_ARCHIVE_RATIO_FREE_BYTES, FILE_IMPORT_BATCH_MAX } from "../../../../common/limits.ts";
import { FileArchiveWorld, type ImportOptions } from "../../../../test/helpers/areas/file-archives.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import { tagRuntime } from "../../../../test/helpers/objects/tags.ts";
import { rawZip, type RawEntry } from "../../../../test/helpers/runs/raw-zip.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { TenantRoom } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { FileService } from "../service.ts";

const admin = testPrincipal();
const FILES = "/matrix/filesystem";

let world: FileArchiveWorld;
let one: FileController;
beforeAll(async () => {
  world = await FileArchiveWorld.open();
  ({ one } = world);
});
afterAll(() => world.close());

/** Each test has its own folder. */
let folders = 0;
let at: string;
beforeEach(() => {
  at = `import${folders++}`;
});

async function unpack(entries: readonly RawEntry[] | Buffer, options: ImportOptions = {}) {
  const archive = Buffer.isBuffer(entries)
    ? entries
    : rawZip(entries.map((entry) => ({ ...entry, name: `${at}/${String(entry.name)}` })));
  return world.import(archive, options);
}

const text = async (path: string) => (await one.files.read(admin, `/${at}/${path}`)).text;
const write = (path: string, content = path, as = admin) =>
  one.files.write(as, one.user(`/${at}/${path}`), { text: content });
const tree = async () => ((await one.files.exists(admin, one.user(at))) ? one.tree(admin, `/${at}`) : []);

describe("an import", () => {
  test("unpacks files, and empty folders, at the paths that the archive states", async () => {
    const answer = await unpack([
      { name: "web/index.html", content: "<p>", isPacked: true },
      { name: "web/empty/", mode: 0o040755 },
      { name: "web/deep/er/a.js", content: "a" },
    ]);
    expect(await tree()).toEqual(
      ["web/", "web/deep/", "web/deep/er/", "web/deep/er/a.js", "web/empty/", "web/index.html"].map(
        (path) => `/${at}/${path}`,
      ),
    );
    expect([await text("web/index.html"), await text("web/deep/er/a.js")]).toEqual(["<p>", "a"]);
    expect(answer).toEqual({
      paths: [`/${at}/web`, `/${at}/web/deep/er/a.js`, `/${at}/web/empty`, `/${at}/web/index.html`],
      files: 2,
      folders: 5,
      bytes: 4,
      warnings: [],
    });
    expect(await one.files.about(admin, one.user(`/${at}/web/index.html`))).toMatchObject({
      ftype: "html",
      size: 3,
      owner: "administrator",
    });
    expect(await world.open()).toBe(0);
  });

  test("replaces files, which keep their attributes and tags, and merges folders", async () => {
    await one.files.write(admin, one.user(`/${at}/d/old`), { text: "old" }, { attr: '{"title":"T"}', tags: ["t"] });
    await write("d/other");
    const { digest } = await one.files.open(admin, `/${at}/d/old`, "user");
    await unpack([{ name: "d/" }, { name: "d/old", content: "new" }]);
    expect([await text("d/old"), await text("d/other")]).toEqual(["new", "d/other"]);
    expect(await one.files.about(admin, one.user(`/${at}/d/old`))).toMatchObject({
      attr: '{"title":"T"}',
      tags: ["t"],
    });
    const { blobs } = await world.engine.tenant("matrix");
    await blobs.sweep(0);
    expect(await blobs.stat(digest)).toBeUndefined();
    expect(await text("d/old")).toBe("new");
  });

  test("writes many files, batch by batch", async () => {
    const count = 2 * FILE_IMPORT_BATCH_MAX + 1;
    const entries = Array.from({ length: count }, (_, n) => ({ name: `${n % 5}/${n}`, content: `content ${n % 9}` }));
    expect(await unpack(entries)).toMatchObject({ files: count });
    await (await world.engine.tenant("matrix")).blobs.sweep(0);
    expect((await tree()).length).toBe(count + 5);
    for (const n of [0, FILE_IMPORT_BATCH_MAX, count - 1]) expect(await text(`${n % 5}/${n}`)).toBe(`content ${n % 9}`);
  });

  test("answers first the folder that contains everything, cut to the depth", async () => {
    const app = [{ name: "apps/shop/1.0/index.html" }, { name: "apps/shop/1.0/js/a.js" }];
    const paths = async (entries: readonly RawEntry[], depth?: number) =>
      (await unpack(entries, { depth })).paths.map((path) => path.replace(`/${at}`, ""));
    expect(await paths(app, 4)).toEqual(["/apps/shop/1.0"]);
    expect(await paths(app, 2)).toEqual(["/apps"]);
    expect(await paths(app)).toEqual(["/apps/shop/1.0", "/apps/shop/1.0/index.html", "/apps/shop/1.0/js/a.js"]);
    expect(await paths([...app, { name: "b" }], 3)).toEqual(["", "/apps/shop", "/b"]);
    expect(await paths([{ name: "empty/" }])).toEqual(["/empty"]);
    expect(await paths([{ name: "alone/a.js" }])).toEqual(["/alone", "/alone/a.js"]);
    expect((await unpack(rawZip([{ name: `${at}.txt` }, { name: `${at}.md` }]))).paths[0]).toBe("/");
  });

  test("restores the tree that an export has packed", async () => {
    for (const path of ["a/文件.txt", "a/b/c.jpg", "d"]) await write(path, path.repeat(9));
    await one.files.makeFolder(admin, one.user(`/${at}/empty/inner`));
    const digests = async () =>
      Promise.all(
        (await tree()).map(async (path) =>
          path.endsWith("/") ? path : (await one.files.open(admin, path, "user")).digest,
        ),
      );
    const before = await digests();
    const { bytes } = await one.files.archives.export(admin, [one.user(`/${at}`)]);
    const archive = await buffer(bytes);
    await one.files.remove(admin, one.user(`/${at}`));
    await unpack(archive);
    expect(await digests()).toEqual(before);
  });
});

describe("nothing is written", () => {
  const fine = { name: "0-fine", content: "fine" };
  const refused = async (entries: readonly RawEntry[] | Buffer, error: object, options: ImportOptions = {}) => {
    const before = await tree();
    await expect(unpack(entries, options)).rejects.toMatchObject(error);
    expect(await tree()).toEqual(before);
    expect(await world.open()).toBe(0);
  };

  test.each<[string, RawEntry, string]>([
    ["leaves the folder", { name: "../../evil" }, "evil"],
    ["is a link", { name: "link", mode: 0o120777 }, "link"],
    ["is encrypted", { name: "secret", flags: 1, size: 0, packedSize: 12 }, "secret"],
    ["comes twice", { name: "0-fine" }, "0-fine"],
    ["has more bytes than stated", { name: "more", content: "xxx", isPacked: true, size: 1 }, "more"],
    ["has another checksum", { name: "sum", content: "x", crc: 1 }, "sum"],
  ])("if an entry %s, and the error names it", async (_why, entry, name) => {
    await refused([fine, entry], { code: "invalid", message: expect.stringContaining(name) as string });
  });

  test("of a bomb, of no archive, and of an empty one", async () => {
    const zeros = Buffer.alloc(FILE_ARCHIVE_RATIO_FREE_BYTES + 4_000_000);
    await refused([fine, { name: "bomb", content: zeros, isPacked: true }], { code: "too_large" });
    await refused(Buffer.from("no archive"), {
      code: "invalid",
      message: expect.stringContaining("cannot be read") as string,
    });
    await refused(rawZip([]), { code: "invalid", message: expect.stringContaining("empty") as string });
    await refused(rawZip([{ name: `${at}/cut`, content: "x".repeat(999) }]).subarray(0, 500), { code: "invalid" });
  });

  test("if a file is to come where a folder is, or the other way round", async () => {
    await write("dir/x");
    await write("file");
    await refused([fine, { name: "dir", content: "x" }], {
      code: "conflict",
      message: expect.stringContaining("/dir is a folder") as string,
    });
    await refused([fine, { name: "file/x" }], {
      code: "conflict",
      message: expect.stringContaining("/file is a file") as string,
    });
    await refused([fine, { name: "file/" }], { code: "conflict" });
  });

  test("on a closed path, against a rule, or without the permission", async () => {
    const open = { ...admin, user: "ann", paths: [`/${at}/open`] };
    await refused([{ name: "open/a" }, { name: "closed/b" }], { code: "denied" }, { as: open });
    await refused([{ name: "open/a" }, { name: "closed/" }], { code: "denied" }, { as: open });
    const ruled = (rule: object): Principal => ({
      ...admin,
      user: "ann",
      data: [
        { class: "/", access: "write" },
        { class: FILES, access: "write", ...rule },
      ],
    });
    await refused([fine, { name: "z-no" }], { code: "denied" }, { as: ruled({ where: "name <> 'z-no'" }) });
    await refused([fine], { code: "denied" }, { as: ruled({ access: "read" }) });
    await refused([fine, { name: "z-no/" }], { code: "denied" }, { as: ruled({ where: "name <> 'z-no'" }) });
    await refused([fine], { code: "denied" }, { as: { ...admin, grants: ["files:read"] } });
    await refused([fine], { code: "denied" }, { as: open, space: "system" });
    await unpack([{ name: "open/" }, { name: "open/a", content: "by ann" }], { as: open });
    expect(await text("open/a")).toBe("by ann");
  });

  test("if a new file would hide one of the system's space", async () => {
    await unpack([{ name: "script/run.js", content: "system" }], { space: "system" });
    const as = { ...admin, user: "ann", paths: [`/${at}`] };
    await refused(
      [fine, { name: "script/run.js" }],
      { code: "denied", message: expect.stringContaining("run.js") as string },
      { as },
    );
    await unpack([{ name: "script/run.js", content: "users" }]);
    const { warnings } = await unpack([{ name: "script/run.js" }], { space: "system" });
    expect(warnings).toEqual([expect.stringContaining(`/${at}/script/run.js hides this one`)]);
  });

  test("if the whole archive does not fit into the quota", async () => {
    let left = 10;
    const room: TenantRoom = {
      isLimited: () => true,
      take: (_tenant, { bytes }) => Promise.resolve(void (left -= bytes)),
      require: (_tenant, { bytes }) => (bytes > left ? Promise.reject(new Error("no room")) : Promise.resolve()),
      count: (_tenant, { bytes }) => void (left -= bytes),
    };
    const { objects } = one;
    const files = new FileService({
      stores: world.engine,
      objects,
      runtime: tagRuntime(),
      controllers: { own: "one", has: () => true },
      room,
    });
    await refused(
      [
        { name: "a", content: "12345" },
        { name: "b", content: "123456" },
      ],
      { message: "no room" },
      { files },
    );
    await unpack(
      [
        { name: "a", content: "12345" },
        { name: "b", content: "12345" },
      ],
      { files },
    );
    expect(left).toBe(0);
  });
});
