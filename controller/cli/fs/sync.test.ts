import { readFile, rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock, shiftedClock } from "../../../test/helpers/time/clock.ts";
import { LocalFolder } from "./local.ts";
import { RemoteFolder } from "./remote.ts";
import { NO_BASE } from "./state.ts";
import { synchronise } from "./sync.ts";
import { ADMIN, openFileSync, type FileSyncWorld } from "../../../test/helpers/programs/file-sync.ts";

/** `odp fs sync` against a controller: what each side has afterwards, and what is told. */

let world: FileSyncWorld;
beforeAll(async () => void (world = await openFileSync()));
afterAll(() => world[Symbol.asyncDispose]());

const FILES = { "a.js": "one", "deep/": "", "deep/b.js": "two", "empty.txt": "", "nothing/": "" };

async function filled() {
  const folders = await world.folders();
  for (const [name, text] of Object.entries(FILES)) if (!name.endsWith("/")) await folders.write(name, text);
  await folders.write("nothing/.git/config", "excluded");
  return folders;
}

test("a local folder goes up, with empty files and folders, and comes down elsewhere as it is", async () => {
  const folders = await filled();
  const up = await folders.up();
  expect(up.code).toBe(0);
  expect(up.result).toMatchObject({
    created: ["a.js", "deep/b.js", "empty.txt"],
    folders: ["deep", "nothing"],
    conflicts: [],
    leftOut: [],
  });
  expect(await folders.there()).toEqual(FILES);

  const other = await world.folders();
  const down = await other.down({ from: folders.remote, to: other.path("made/below") });
  expect([down.code, down.result.created]).toEqual([0, ["a.js", "deep/b.js", "empty.txt"]]);
  expect(await other.here()).toMatchObject({ "made/below/deep/b.js": "two", "made/below/nothing/": "" });
});

test("a second sync does only what changed", async () => {
  const folders = await filled();
  await folders.up();
  await folders.write("deep/b.js", "three");
  const { code, result } = await folders.up();
  expect([code, result.replaced, result.created, result.same]).toEqual([0, ["deep/b.js"], [], 4]);
  await folders.writeThere("deep/b.js", "four");
  expect((await folders.down()).result.replaced).toEqual(["deep/b.js"]);
  expect(await folders.here()).toMatchObject({ "deep/b.js": "four" });
});

test("a file that both sides changed is named, and neither is overwritten; --force takes the source", async () => {
  const folders = await filled();
  await folders.up();
  await folders.write("a.js", "mine");
  await folders.writeThere("a.js", "theirs");
  for (const { code, result } of [await folders.up(), await folders.down()])
    expect([code, result.conflicts]).toEqual([2, [{ path: "a.js", why: "was changed on both sides" }]]);
  expect([(await folders.here())["a.js"], (await folders.there())["a.js"]]).toEqual(["mine", "theirs"]);
  expect(await folders.up({ isForced: true })).toMatchObject({ code: 0, result: { replaced: ["a.js"] } });
  expect((await folders.there())["a.js"]).toBe("mine");
});

describe("an upload whose answer is lost", () => {
  /** Fails each upload, after or before the controller gets it. */
  const losing = (isStored: boolean) =>
    world.client(async (url, init) => {
      if (init.method !== "PUT") return fetch(url, init);
      if (isStored) await fetch(url, init);
      throw new TypeError("fetch failed");
    });

  test("and was stored, is no change of others: the next one replaces it", async () => {
    const folders = await filled();
    await folders.up();
    await folders.write("a.js", "sent");
    await expect(folders.up({ client: losing(true) })).rejects.toMatchObject({ code: "unknown_outcome" });
    await folders.write("a.js", "newer");
    expect(await folders.up()).toMatchObject({ code: 0, result: { replaced: ["a.js"], conflicts: [] } });
    expect((await folders.there())["a.js"]).toBe("newer");
    await folders.writeThere("a.js", "sent");
    expect((await folders.up()).code).toBe(2);
  });

  test("and was not stored, is still a change of this side: a sync down does not overwrite it", async () => {
    const folders = await filled();
    await folders.up();
    await folders.write("a.js", "sent");
    await expect(folders.up({ client: losing(false) })).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await folders.down()).toMatchObject({ code: 2, result: { replaced: [] } });
    expect((await folders.here())["a.js"]).toBe("sent");
  });
});

test("a change of the target alone is not undone by a source that has not changed", async () => {
  const folders = await filled();
  await folders.up();
  await folders.writeThere("a.js", "theirs");
  const { code, result } = await folders.up();
  expect([code, result.conflicts]).toEqual([
    2,
    [{ path: "a.js", why: `was changed in ${folders.remote}, not in ${folders.local}` }],
  ]);
  expect((await folders.there())["a.js"]).toBe("theirs");
});

test("without an earlier sync, equal files are the same and different ones are conflicts", async () => {
  const folders = await filled();
  await folders.writeThere("a.js", "one");
  await folders.writeThere("deep/b.js", "other");
  const { code, result } = await folders.up();
  expect([code, result.conflicts, result.created]).toEqual([
    2,
    [{ path: "deep/b.js", why: "differs, and no sync has seen it before" }],
    ["empty.txt"],
  ]);
});

test("a change of the target between the comparison and the write is a conflict", async () => {
  const folders = await filled();
  await folders.up();
  await folders.write("a.js", "mine");
  const client = world.client(async (url, init) => {
    if (init.method === "PUT") await folders.writeThere("a.js", "theirs");
    return fetch(url, init);
  });
  const { code, result } = await folders.up({ client });
  expect([code, result.conflicts]).toEqual([2, [{ path: "a.js", why: `was changed meanwhile in ${folders.remote}` }]]);
  expect((await folders.there())["a.js"]).toBe("theirs");
});

test("a tag that another user sets is no change of the content", async () => {
  const folders = await filled();
  await folders.up();
  await world.files.note(ADMIN, folders.place("a.js"), {
    tags: ["t"],
  });
  await folders.write("a.js", "mine");
  expect(await folders.up()).toMatchObject({ code: 0, result: { replaced: ["a.js"], conflicts: [] } });
});

test("nothing is removed without --delete, and with it only what an earlier sync saw", async () => {
  const folders = await filled();
  await folders.up();
  await folders.writeThere("theirs.js", "theirs");
  await rm(folders.path("deep"), { recursive: true });
  expect(await folders.up()).toMatchObject({ code: 0, result: { removed: [], kept: 3 } });
  expect(await folders.up({ isDeleting: true })).toMatchObject({
    code: 0,
    result: { removed: ["deep", "deep/b.js"], kept: 1 },
  });
  expect(Object.keys(await folders.there())).toEqual(["a.js", "empty.txt", "nothing/", "theirs.js"]);
  expect(await folders.up({ isDeleting: true, isForced: true })).toMatchObject({ result: { removed: ["theirs.js"] } });
});

test("--delete removes no file that the target changed, and no folder with something else in it", async () => {
  const folders = await filled();
  await folders.up();
  await folders.writeThere("a.js", "theirs");
  await folders.writeThere("deep/theirs.js", "theirs");
  await rm(folders.path("a.js"));
  await rm(folders.path("deep"), { recursive: true });
  const { code, result } = await folders.up({ isDeleting: true });
  expect([code, result.removed, result.conflicts]).toEqual([
    2,
    ["deep/b.js"],
    [{ path: "a.js", why: `was removed from ${folders.local} and changed in ${folders.remote}` }],
  ]);
  expect(await folders.there()).toMatchObject({ "a.js": "theirs", "deep/theirs.js": "theirs" });
});

test("a file that is removed from the target is a conflict, and not made again; --force makes it", async () => {
  const folders = await filled();
  await folders.up();
  await folders.removeThere("a.js");
  await folders.removeThere("deep");
  const { code, result } = await folders.up();
  const why = `was removed from ${folders.remote} since the last sync`;
  expect([code, result.conflicts, result.created]).toEqual([
    2,
    [
      { path: "a.js", why },
      { path: "deep", why },
    ],
    [],
  ]);
  expect((await folders.up({ isForced: true })).code).toBe(0);
  expect(await folders.there()).toEqual(FILES);
});

test("a file on one side and a folder on the other are a conflict, also with --force, and nothing below is touched", async () => {
  const folders = await filled();
  await folders.writeThere("deep", "a file");
  await folders.writeThere("a.js/below.js", "below");
  for (const options of [{}, { isForced: true, isDeleting: true }]) {
    const { code, result } = await folders.up(options);
    expect([code, result.conflicts.map(({ path }) => path)]).toEqual([2, ["a.js", "deep"]]);
  }
  expect(await folders.there()).toMatchObject({ deep: "a file", "a.js/below.js": "below" });
});

test("a dry run tells all and changes nothing", async () => {
  const folders = await filled();
  await folders.writeThere("theirs.js", "theirs");
  const { code, result } = await folders.up({ isDry: true });
  expect([code, result.created, result.folders]).toEqual([0, ["a.js", "deep/b.js", "empty.txt"], ["deep", "nothing"]]);
  expect([await folders.there(), await folders.own()]).toEqual([{ "theirs.js": "theirs" }, []]);
  const other = await world.folders();
  await other.down({ from: folders.remote, to: other.path("new"), isDry: true });
  expect(await other.here()).toEqual({});
});

test("excluded names are left alone on both sides", async () => {
  const folders = await filled();
  await folders.write("tmp/x.log", "x");
  await folders.writeThere("deep/.git/config", "theirs");
  await folders.writeThere("old.log", "theirs");
  await folders.writeThere("only/there.log", "theirs");
  const exclusion = { patterns: ["*.log", "/deep/b*"], byDefault: true };
  const { result } = await folders.up({ exclusion, isDeleting: true, isForced: true });
  expect([result.created, result.removed]).toEqual([["a.js", "empty.txt"], []]);
  expect((await folders.down({ exclusion, isDeleting: true, isForced: true })).result.removed).toEqual([]);
  expect(await folders.here()).toMatchObject({ "tmp/x.log": "x", "deep/b.js": "two" });
  expect(await folders.there()).toMatchObject({ "old.log": "theirs", "only/there.log": "theirs" });
});

test("on a disk that does not tell upper case from lower case, such names are left out", async () => {
  const folders = await world.folders();
  for (const name of ["a.js", "A.js", "Lib/x.js", "lib/y.js", "other.js"]) await folders.writeThere(name, name);
  class CaseBlind extends LocalFolder {
    override isCaseSensitive(): Promise<boolean> {
      return Promise.resolve(false);
    }
  }
  const { platform } = process;
  const target = new CaseBlind({ root: folders.local, nowMs: () => Date.now(), platform });
  const source = new RemoteFolder({ client: world.client(), root: folders.place().path.slice(1), isSystem: false });
  const how = { isUp: false, isForced: false, isDeleting: false, isDry: false };
  const { signal } = new AbortController();
  const { result } = await synchronise({ source, target, ...how, isExcluded: () => false, signal }, NO_BASE);
  expect([result.created, result.leftOut.map(({ path }) => path)]).toEqual([
    ["other.js"],
    ["A.js", "Lib", "a.js", "lib"],
  ]);
  expect(await new LocalFolder({ root: folders.local, nowMs: () => 0, platform }).isCaseSensitive()).toBe(true);
});

test("a file that changes while it is compared is left out for a moment only, so that --watch comes back soon", async () => {
  const folders = await filled();
  await folders.writeThere("a.js", "one");
  class Changing extends LocalFolder {
    override async digest(...given: Parameters<LocalFolder["digest"]>) {
      await folders.write("a.js", "longer than before");
      return super.digest(...given);
    }
  }
  const source = new Changing({ root: folders.local, nowMs: () => Date.now(), platform: process.platform });
  const target = new RemoteFolder({ client: world.client(), root: folders.place().path.slice(1), isSystem: false });
  const how = { isUp: true, isForced: false, isDeleting: false, isDry: false };
  const { signal } = new AbortController();
  const { result } = await synchronise({ source, target, ...how, isExcluded: () => false, signal }, NO_BASE);
  expect(result.leftOut).toMatchObject([{ path: "a.js", isPassing: true }]);
});

test("a file whose last change is a moment ago is read again, because it may change without another time", async () => {
  const folders = await filled();
  await folders.up();
  const [state = ""] = await folders.own();
  const fresh = JSON.parse(await readFile(folders.path(state), "utf8")) as { files: { local: string }[] };
  expect(fresh.files.map(({ local }) => local)).toEqual(["", "", ""]);
  await folders.up({ clock: shiftedClock(realClock, 10_000) });
  const settled = JSON.parse(await readFile(folders.path(state), "utf8")) as typeof fresh;
  expect(settled.files.map(({ local }) => local !== "")).toEqual([true, true, true]);
});
