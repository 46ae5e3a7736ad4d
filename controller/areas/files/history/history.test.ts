import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { FILE_HISTORY_PER_FILE_MAX } from "../../../../common/limits.ts";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { rawZip } from "../../../../test/helpers/runs/raw-zip.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { uploadFolder } from "../../../../test/helpers/runs/archives.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { Principal } from "../../permissions/index.ts";
import { encodeJson } from "../../../store/format.ts";
import { HistoryStore } from "./store.ts";

/** Contents of replaced and removed files are kept, listed and restored, within bounds. */

const admin = testPrincipal();
const HOUR_MS = 3_600_000;
const history = { ageMs: HOUR_MS, maxBytes: 1_000_000 };

let engine: TestEngine;
let one: FileController;
let other: FileController;
useFileControllers((opened) => ({ engine, one, other } = opened), { history });
let uploads: Awaited<ReturnType<typeof uploadFolder>>;
beforeAll(async () => {
  uploads = await uploadFolder();
});
afterAll(() => uploads.remove());

let folders = 0;
let at: string;
const place = (name = "") => one.user(at + name);
beforeEach(() => {
  at = `/kept${folders++}`;
});

const write = (name: string, text: string, as = admin) => one.files.write(as, place(name), { text });
const read = async (name: string) => (await one.files.read(admin, at + name)).text;
const listed = (name: string, as: Principal = admin) => one.files.history.list(as, place(name));
const trash = (as: Principal = admin, limit = 100, after?: string) =>
  one.files.history.trash(as, place(), { limit, after });
const purge = (name: string, key?: string, as: Principal = admin) =>
  other.files.history.purge(as, place(name), { key });
const restore = (name: string, key: string, as: Principal = admin) => other.files.history.restore(as, place(name), key);

/** Former contents of a file, newest first, read after a sweep of unused ones. Throws if one is lost. */
async function texts(name: string): Promise<readonly string[]> {
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  const found: string[] = [];
  for (const { entry } of await listed(name)) {
    const parts: Uint8Array[] = [];
    for await (const part of blobs.read(entry.content?.digest ?? "")) parts.push(part);
    found.push(Buffer.concat(parts).toString());
  }
  return found;
}

test("each content that a file had is listed, newest first, and restored by another controller", async () => {
  await one.files.write(admin, place("/a"), { text: "1" }, { attr: '{"a":1}', tags: ["t"] });
  for (const text of ["2", "2", "3"]) await write("/a", text);
  expect(await texts("/a")).toEqual(["2", "1"]);
  await one.files.remove(admin, place("/a"));
  expect(await texts("/a")).toEqual(["3", "2", "1"]);
  const [last, , first] = await listed("/a");
  expect(last).toMatchObject({ cause: "removed", user: admin.user, isTop: true, entry: { size: 1, attr: '{"a":1}' } });
  expect(first).toMatchObject({ cause: "replaced", isTop: false });
  expect(await restore("/a", first?.key ?? "")).toBe(1);
  expect(await read("/a")).toBe("1");
  expect(await one.files.about(admin, place("/a"))).toMatchObject({ attr: '{"a":1}', tags: ["t"], ftype: "" });
  expect(await restore("/a", last?.key ?? "")).toBe(1);
  expect(await read("/a")).toBe("3");
  await expect(restore("/a", "none")).rejects.toMatchObject({ code: "not_found" });
  await expect(restore("/b", first?.key ?? "")).rejects.toMatchObject({ code: "not_found" });
  await expect(listed("/b")).rejects.toMatchObject({ code: "not_found" });
});

test("the object of a former file says what it was, and how it was lost", async () => {
  await one.files.write(admin, place("/f/a.txt"), { text: "text" }, { attr: "{}" });
  const { digest } = await one.files.read(admin, `${at}/f/a.txt`);
  await one.files.remove(admin, place("/f"));
  const [former] = await listed("/f/a.txt");
  const [folder] = (await trash()).former;
  const request = { class: "/matrix/system/filehistory", subtree: false, ids: [`filehistory:${former?.key}`] };
  for await (const [row] of one.objects.unrestricted.read(admin, request))
    expect(row?.values).toMatchObject({
      ...{ held: former?.key, space: "user", fullname: `${at}/f/a.txt`, cause: "removed", top: "no" },
      ...{ removal: folder?.removal, at: former?.atMs, changer: admin.user, ftype: "txt", size: 4, owner: admin.user },
      ...{ attr: "{}", digest, modified: former?.entry.modifiedMs },
    });
  expect(folder).toMatchObject({ isTop: true, removal: expect.stringMatching(/./), entry: { ftype: "dir" } });
});

test("a copy, a pull and an import keep what they replace or remove; a move keeps nothing", async () => {
  await write("/from/a", "copied");
  await write("/to/a", "before the copy");
  await one.files.copy(admin, place("/from/a"), `${at}/to`);
  expect(await texts("/to/a")).toEqual(["before the copy"]);
  await one.files.versions.push(admin, place("/to"), "v");
  await write("/to/a", "before the pull");
  await write("/to/new", "new");
  await one.files.versions.pull(admin, place("/to"), "v");
  expect(await texts("/to/a")).toEqual(["before the pull", "copied", "before the copy"]);
  expect(await texts("/to/new")).toEqual(["new"]);
  const { path } = await uploads.upload("a.zip", rawZip([{ name: `${at.slice(1)}/to/a`, content: "imported" }]));
  await one.files.archives.import(admin, { path }, { space: "user" });
  expect((await texts("/to/a"))[0]).toBe("copied");
  await one.files.rename(admin, place("/from"), `${at}/moved`);
  await one.files.rename(admin, place("/moved/a"), `${at}/moved/b`, { revisions: "*", isAbsent: false });
  expect((await trash()).former.map(({ entry }) => entry.fullname)).toEqual([`${at}/to/new`]);
});

test("a removed folder is one entry of the trash, and is restored with all that was removed with it", async () => {
  for (const name of ["/f/1", "/f/a/2", "/f/a/b/3"]) await write(name, name);
  await one.files.makeFolder(admin, place("/f/empty"), { attr: '{"e":1}' });
  await write("/f/gone", "removed before");
  await one.files.remove(admin, place("/f/gone"));
  const before = await one.tree(admin, at);
  await one.files.remove(admin, place("/f"));
  const { former } = await trash();
  expect(former.map(({ entry }) => entry.fullname)).toEqual([`${at}/f`, `${at}/f/gone`]);
  await write("/f/1", "written again");
  expect((await trash()).former.map(({ entry }) => entry.fullname)).toEqual([`${at}/f/gone`]);
  expect(await restore("/f", former[0]?.key ?? "")).toBe(2);
  expect(await one.tree(admin, at)).toEqual(before);
  expect(await one.files.about(admin, place("/f/empty"))).toMatchObject({ attr: '{"e":1}' });
  expect([await read("/f/1"), await read("/f/a/b/3")]).toEqual(["written again", "/f/a/b/3"]);
  expect(await restore("/f", former[0]?.key ?? "")).toBe(0);
  expect(await keysUnder(engine, "files/open/")).toEqual([]);
});

test("a folder is restored with the folders above it, and never into a file", async () => {
  const removed = async () => (await trash()).former.find(({ entry }) => entry.fullname === `${at}/a/empty`)?.key ?? "";
  await one.files.makeFolder(admin, place("/a/empty"));
  for (const name of ["/a/empty", "/a"]) await one.files.remove(admin, place(name));
  expect(await restore("/a/empty", await removed())).toBe(0);
  expect(await one.files.exists(admin, place("/a"))).toBe(true);
  for (const name of ["/a/empty", "/a"]) await one.files.remove(admin, place(name));
  await write("/a", "a file");
  await expect(restore("/a/empty", await removed())).rejects.toMatchObject({ code: "conflict" });
  expect(await one.files.exists(admin, place("/a/empty"))).toBe(false);
});

test("the trash is listed page by page", async () => {
  const names = ["/1", "/2", "/3", "/4", "/5"];
  for (const name of names) await write(name, name);
  for (const name of names) await one.files.remove(admin, place(name));
  const found: string[] = [];
  let after: string | undefined;
  do {
    const page = await trash(admin, 2, after);
    found.push(...page.former.map(({ entry }) => entry.fullname.slice(at.length)));
    after = page.next;
  } while (after !== undefined);
  expect([...found].sort()).toEqual(names);
  await expect(trash(admin, 2, "x")).rejects.toMatchObject({ code: "invalid" });
});

test("former contents are purged one by one or all, and the content of the file stays", async () => {
  for (const text of ["1", "2", "3", "4"]) await write("/a", text);
  const [, second] = await listed("/a");
  expect(await purge("/a", second?.key)).toBe(1);
  expect(await texts("/a")).toEqual(["3", "1"]);
  await expect(purge("/a", second?.key)).rejects.toMatchObject({ code: "not_found" });
  expect(await purge("/a")).toBe(2);
  expect([await texts("/a"), await read("/a")]).toEqual([[], "4"]);
  await expect(purge("/a")).rejects.toMatchObject({ code: "not_found" });
});

test("a removed folder is purged with all that was removed with it, and with nothing else", async () => {
  for (const name of ["/f/1", "/f/a/2", "/g"]) await write(name, at + name);
  const { digest } = await one.files.read(admin, `${at}/f/a/2`);
  await write("/f/1", "other");
  for (const name of ["/f", "/g"]) await one.files.remove(admin, place(name));
  const folder = (await trash()).former.find(({ entry }) => !entry.content);
  expect(await purge("/f", folder?.key)).toBe(2);
  expect((await trash()).former.map(({ entry }) => entry.fullname)).toEqual([`${at}/g`]);
  expect([await texts("/f/1"), await texts("/g")]).toEqual([[`${at}/f/1`], [`${at}/g`]]);
  expect(await (await engine.tenant("matrix")).blobs.stat(digest)).toBeUndefined();
});

test("a folder that is still being removed or restored is not purged", async () => {
  await write("/f/1", at);
  await one.files.remove(admin, place("/f"));
  const [folder] = (await trash()).former;
  const { kv } = await engine.tenant("matrix");
  const open = {
    id: folder?.removal,
    owner: "other",
    tenant: "matrix",
    space: "user",
    from: `${at}/f`,
    kind: "remove",
  };
  await kv.put(`files/open/${folder?.removal}`, encodeJson(open));
  await expect(purge("/f", folder?.key)).rejects.toMatchObject({ code: "conflict" });
  expect(await texts("/f/1")).toEqual([at]);
  await kv.delete(`files/open/${folder?.removal}`);
  expect(await purge("/f", folder?.key)).toBe(1);
});

test("a key of another form names nothing", async () => {
  await write("/a", "1");
  await write("/a", "2");
  for (const key of ["a:b", "\\", "", "x".repeat(5_000), "\0"])
    for (const call of [restore, purge]) await expect(call("/a", key)).rejects.toMatchObject({ code: "not_found" });
  expect(await texts("/a")).toEqual(["1"]);
});

test("the newest contents of a file are kept, older ones are released", async () => {
  const count = FILE_HISTORY_PER_FILE_MAX + 3;
  const first = await one.files
    .write(admin, place("/a"), { text: `${at} 0` })
    .then(() => one.files.read(admin, `${at}/a`));
  for (let version = 1; version <= count; version++) await write("/a", `${at} ${version}`);
  const kept = Array.from({ length: FILE_HISTORY_PER_FILE_MAX }, (_, age) => `${at} ${count - 1 - age}`);
  expect(await texts("/a")).toEqual(kept);
  expect(await (await engine.tenant("matrix")).blobs.stat(first.digest)).toBeUndefined();
});

test("what is older than the age, or beyond the bytes, is purged oldest first, and no content of a file", async () => {
  for (const text of ["1", "2", "3"]) await write("/a", text);
  const swept = async (bounds: typeof history | undefined) => {
    await using sweeper = fileController(engine, { own: "sweeper", history: bounds });
    await sweeper.files.history.sweep("matrix", admin.ospace);
    return texts("/a");
  };
  expect(await swept(history)).toEqual(["2", "1"]);
  expect(await swept({ ...history, maxBytes: 1_500 })).toEqual(["2"]);
  expect(await swept({ ...history, ageMs: -1 })).toEqual([]);
  await write("/a", "4");
  expect(await swept(undefined)).toEqual([]);
  expect(await read("/a")).toBe("4");
});

test("an object of a change that was not made names the content of a file, which its purge leaves", async () => {
  await write("/a", at);
  const entry = await one.files.about(admin, place("/a"));
  const store = new HistoryStore({ stores: engine, objects: one.objects, bounds: history });
  await store.keep(admin, [entry], { cause: "replaced", atMs: entry.modifiedMs });
  expect(await listed("/a")).toEqual([]);
  await store.purge(admin, await store.of(admin, [entry]));
  expect(await store.of(admin, [entry])).toEqual([]);
  await (await engine.tenant("matrix")).blobs.sweep(0);
  expect(await read("/a")).toBe(at);
});

test("a purge beside the write that takes the content leaves no content behind", async () => {
  await write("/a", at);
  const entry = await one.files.about(admin, place("/a"));
  const { unrestricted } = one.objects;
  const remove: typeof unrestricted.remove = async (...given) => {
    await write("/a", `${at} next`);
    return unrestricted.remove(...given);
  };
  const objects = { unrestricted: { ...unrestricted, remove } };
  const store = new HistoryStore({ stores: engine, objects, bounds: history });
  await store.keep(admin, [entry], { cause: "replaced", atMs: entry.modifiedMs });
  await store.purge(admin, await store.of(admin, [entry]));
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  expect(await blobs.stat(entry.content?.digest ?? "")).toBeUndefined();
  expect(await read("/a")).toBe(`${at} next`);
});

test("a history that is switched off keeps nothing", async () => {
  await using off = fileController(engine, { own: "off" });
  await off.files.write(admin, place("/a"), { text: "1" });
  const { digest } = await off.files.read(admin, `${at}/a`);
  await off.files.write(admin, place("/a"), { text: "2" });
  await off.files.remove(admin, place("/a"));
  await expect(listed("/a")).rejects.toMatchObject({ code: "not_found" });
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  expect(await blobs.stat(digest)).toBeUndefined();
});
