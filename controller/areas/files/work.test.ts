import { describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { FILE_WORK_BATCH_MAX } from "../../../common/limits.ts";
import { onCluster, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { useFileControllers } from "../../../test/helpers/areas/file-controllers.ts";
import { mortalFiles } from "../../../test/helpers/areas/mortal-files.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { encodeJson } from "../../store/format.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import type { OpenFileWork } from "./work-journal.ts";

const admin = testPrincipal();
const MANY = TIMES > 1 && !onCluster ? 1_000 : FILE_WORK_BATCH_MAX + 1;

let engine: TestEngine;
let one: FileController;
useFileControllers((opened) => ({ engine, one } = opened));

const user = (path: string) => one.user(path);
const write = (path: string, text = path) => one.files.write(admin, user(path), { text });
const text = async (path: string) => (await one.files.read(admin, path)).text;
const tree = (path: string) => one.tree(admin, path);

async function open(): Promise<number> {
  const { kv } = await engine.tenant("matrix");
  const found: string[] = [];
  for await (const { key } of entriesUnder(kv, "files/open/")) found.push(key);
  return found.length;
}

/**
 * Every file below the path as `<name>=<text>`, read after a sweep of unused contents. Throws if a content was lost.
 */
async function contentsOf(path: string): Promise<readonly string[]> {
  await (await engine.tenant("matrix")).blobs.sweep(0);
  const files = (await tree(path)).filter((name) => !name.endsWith("/"));
  const texts: string[] = [];
  for (const name of files) texts.push(`${name.slice(path.length)}=${await text(name)}`);
  return texts;
}

describe("a rename", () => {
  test("moves a file with its content, attributes and tags to the whole new path", async () => {
    await one.files.write(admin, user("/ren/a.js"), { text: "a" }, { attr: '{"title":"A"}', tags: ["x"] });
    await one.files.rename(admin, user("//ren/a.js"), "/ren/deep/er/b.txt");
    expect(await tree("/ren")).toEqual(["/ren/deep/", "/ren/deep/er/", "/ren/deep/er/b.txt"]);
    expect(await one.files.about(admin, user("/ren/deep/er/b.txt"))).toMatchObject({
      attr: '{"title":"A"}',
      tags: ["x"],
    });
    expect(await text("/ren/deep/er/b.txt")).toBe("a");
  });

  test("moves a folder with all below it, and leaves nothing behind", async () => {
    for (const path of ["/big/a/1", "/big/a/b/2", "/big/3"]) await write(path);
    await one.files.makeFolder(admin, user("/big/empty"), { tags: ["kept"] });
    await one.files.rename(admin, user("/big"), "/large");
    await expect(tree("/big")).rejects.toMatchObject({ code: "not_found" });
    expect(await tree("/large")).toEqual([
      "/large/3",
      "/large/a/",
      "/large/a/1",
      "/large/a/b/",
      "/large/a/b/2",
      "/large/empty/",
    ]);
    expect(await contentsOf("/large")).toEqual(["/3=/big/3", "/a/1=/big/a/1", "/a/b/2=/big/a/b/2"]);
    expect(await one.files.about(admin, user("/large/empty"))).toMatchObject({ tags: ["kept"] });
    expect(await open()).toBe(0);
  });

  test("is refused where something is, into itself, and of what is not there", async () => {
    for (const path of ["/no/a/b/c", "/no/d"]) await write(path);
    const rename = (from: string, to: string) => one.files.rename(admin, user(from), to);
    await expect(rename("/no/d", "/no/a/b/c")).rejects.toMatchObject({ code: "conflict" });
    await expect(rename("/no/a", "/no/a/b/x")).rejects.toMatchObject({ code: "invalid" });
    await expect(rename("/no/a/b", "/no/a")).rejects.toMatchObject({ code: "conflict" });
    await expect(rename("/no/d", "/no/a/b/c/e")).rejects.toMatchObject({ code: "conflict" });
    await expect(rename("/no/none", "/no/x")).rejects.toMatchObject({ code: "not_found" });
    await rename("/no/d", "/no/d");
    expect(await tree("/no")).toEqual(["/no/a/", "/no/a/b/", "/no/a/b/c", "/no/d"]);
    expect(await open()).toBe(0);
  });
});

describe("a move", () => {
  test("puts a file or folder into a folder, which is made", async () => {
    for (const path of ["/mv/a/1", "/mv/2"]) await write(path);
    await one.files.move(admin, user("/mv/2"), "/mv/to/it");
    await one.files.move(admin, user("/mv/a"), "/mv/to");
    expect(await contentsOf("/mv/to")).toEqual(["/a/1=/mv/a/1", "/it/2=/mv/2"]);
    await expect(one.files.move(admin, user("/mv/to"), "/mv/to/a")).rejects.toMatchObject({ code: "invalid" });
  });

  test("of two that would go into each other at once, one is done, and nothing is lost", async () => {
    await write("/x/1", "1");
    await write("/y/2", "2");
    const moves = [one.files.move(admin, user("/x"), "/y"), one.files.move(admin, user("/y"), "/x")];
    const outcomes = await Promise.allSettled(moves);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const texts = [...(await contentsOf("/"))].filter((line) => /^.?[xy]\//.test(line)).map((line) => line.slice(-2));
    expect(texts.sort()).toEqual(["=1", "=2"]);
    expect(await open()).toBe(0);
  });

  test("that a writer meets leaves what he wrote at the old or the new place", async () => {
    await write("/met/from/a", "before");
    const moved = one.files.move(admin, user("/met/from"), "/met/to");
    const written = Promise.all(["a", "b"].map((name) => write(`/met/from/${name}`, "written")));
    await Promise.all([moved, written]);
    const lines = await contentsOf("/met");
    for (const name of ["a", "b"]) expect(lines.some((line) => line.endsWith(`/${name}=written`))).toBe(true);
  });
});

describe("a copy", () => {
  test("goes into a folder, has its own content, and belongs to its maker", async () => {
    for (const path of ["/cp/a/1", "/cp/a/b/2"]) await write(path);
    const maker = { ...admin, user: "maker" };
    await one.files.copy(maker, user("/cp/a"), "/cp/to");
    await write("/cp/a/1", "changed");
    expect(await contentsOf("/cp/to")).toEqual(["/a/1=/cp/a/1", "/a/b/2=/cp/a/b/2"]);
    expect(await one.files.about(admin, user("/cp/to/a/b/2"))).toMatchObject({ owner: "maker" });
    await one.files.remove(admin, user("/cp/a"));
    expect(await contentsOf("/cp")).toEqual(["/to/a/1=/cp/a/1", "/to/a/b/2=/cp/a/b/2"]);
  });

  test("replaces files and fills folders; a file never takes the place of a folder", async () => {
    for (const path of ["/over/src/f", "/over/src/d/g", "/over/dst/src/d/own"]) await write(path);
    await write("/over/dst/src/f", "old");
    await one.files.copy(admin, user("/over/src"), "/over/dst");
    expect(await contentsOf("/over/dst/src")).toEqual([
      "/d/g=/over/src/d/g",
      "/d/own=/over/dst/src/d/own",
      "/f=/over/src/f",
    ]);
    await write("/over/kind/src", "a file");
    await expect(one.files.copy(admin, user("/over/src"), "/over/kind")).rejects.toMatchObject({ code: "conflict" });
    await write("/over/inner/src/f/x", "below a folder f");
    await expect(one.files.copy(admin, user("/over/src"), "/over/inner")).rejects.toMatchObject({ code: "conflict" });
    await expect(one.files.copy(admin, user("/over/src"), "/over/src/d")).rejects.toMatchObject({ code: "invalid" });
    await expect(one.files.copy(admin, user("/over/src"), "/over")).rejects.toMatchObject({ code: "invalid" });
    expect(await open()).toBe(0);
  });
});

test("a folder of more files than one step takes is copied and moved whole", async () => {
  const names = Array.from({ length: MANY }, (_, at) => `/many/${at}`);
  await mapLimited(names, 32, (name) => write(name, "same"));
  await one.files.copy(admin, user("/many"), "/copies");
  await one.files.rename(admin, user("/many"), "/moved");
  await (await engine.tenant("matrix")).blobs.sweep(0);
  for (const folder of ["/copies/many", "/moved"]) {
    const files = await tree(folder);
    expect(files).toHaveLength(MANY);
    expect(await text(files.at(-1) ?? "")).toBe("same");
  }
});

/** See `Mortality`: with 2, every state comes once. On the cluster, each simulated life of a controller takes a second. */
const WRITES_BETWEEN = onCluster ? 3 : TIMES > 1 ? 2 : 5;
const KINDS = onCluster
  ? (["rename", "replacing copy"] as const)
  : (["rename", "copy", "replacing copy", "remove"] as const);

/** Two files, so that work may end between them. The folder of one has a folder above it that it also has to pass. */
const PATHS = ["/1", "/a/b/2"];

/** Work in progress when its controller dies, at any write, is completed afterwards and leaves no content behind. */
test.each(KINDS)("a %s is ended by another at whatever write its controller dies, or was never begun", async (name) => {
  const isReplacing = name === "replacing copy";
  const kind = isReplacing ? "copy" : name;
  const { blobs } = await engine.tenant("matrix");
  await using heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
  await using mortal = await mortalFiles(engine, heir);
  let begun = 0;
  for (let life = 0; ; life++) {
    const isWritten = life % 2 === 1;
    const at = `/die/${name}${life}`;
    const [from, to] = [`${at}/from`, `${at}/to`];
    for (const path of PATHS) await write(from + path);
    const { digest } = await one.files.read(admin, `${from}/1`);
    if (isReplacing) await write(`${to}/from/1`, `old ${to}`);
    const replaced = isReplacing ? (await one.files.read(admin, `${to}/from/1`)).digest : digest;
    const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, isWritten);
    const isDead = await mortal.dies(mortality, (files) =>
      kind === "remove" ? files.remove(admin, user(from)) : files[kind](admin, user(from), to),
    );
    if (!isDead) break;
    expect(await open(), `${life}`).toBe(0);
    const texts = PATHS.map((path) => `${path}=${from}${path}`);
    const places = [await found(from), await found(kind === "copy" ? `${to}/from` : to)];
    const done = { rename: [[], texts], copy: [texts, texts], remove: [[], []] }[kind];
    const isDone = JSON.stringify(places) === JSON.stringify(done);
    expect(places, `${life}`).toEqual(isDone ? done : [texts, isReplacing ? [`/1=old ${to}`] : []]);
    if (isDone) begun += 1;
    await heir.files.remove(admin, user(at));
    await blobs.sweep(0);
    for (const one of [digest, replaced]) expect(await blobs.stat(one), `${life}`).toBeUndefined();
  }
  expect(begun).toBeGreaterThan(10 / WRITES_BETWEEN);
});

test("a content that a copy was to replace is kept, if its controller died before the copy replaced it", async () => {
  await write("/spared/file");
  const { tenant, ospace, user: name, traceparent } = admin;
  const { content } = await one.files.about(admin, user("/spared/file"));
  const copy: OpenFileWork = {
    ...{ tenant, ospace, user: name, traceparent, id: "spared", owner: "dying", attempt: 0, startedMs: 0 },
    ...{ kind: "copy", space: "user", from: "/spared/gone", at: "/spared/gone", to: "/spared/file" },
    ...(content && { replaced: [{ fullname: "/spared/file", ...content }] }),
  };
  await (await engine.tenant("matrix")).kv.put("files/open/spared", encodeJson(copy));
  await using heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
  await heir.files.maintain("matrix");
  await heir.files.settled();
  expect(await open()).toBe(0);
  expect(await contentsOf("/spared")).toEqual(["/file=/spared/file"]);
});

async function found(path: string): Promise<readonly string[]> {
  return (await one.files.exists(admin, user(path))) ? contentsOf(path) : [];
}
