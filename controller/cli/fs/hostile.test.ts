import { execFileSync } from "node:child_process";
import { appendFile, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  environmentOf,
  openFileSync,
  requestOf,
  type FileSyncWorld,
  type Folders,
} from "../../../test/helpers/programs/file-sync.ts";
import type { Fetch } from "../../../common/client/index.ts";
import { FILE_SYNC_AT_ONCE } from "../../../common/limits.ts";
import type { SyncResult } from "./execution.ts";
import { LocalFolder } from "./local.ts";
import { RemoteFolder } from "./remote.ts";
import { syncOnce } from "./run.ts";
import { NO_BASE } from "./state.ts";
import { synchronise } from "./sync.ts";

/** Folders with names, entries and changes that a sync must not trust. */

let world: FileSyncWorld;
beforeAll(async () => void (world = await openFileSync()));
afterAll(() => world[Symbol.asyncDispose]());

describe("a local folder", () => {
  test("has entries that are no files: they are named, not followed, and not replaced", async () => {
    const folders = await world.folders();
    const outside = await world.folders();
    await outside.write("secret", "secret");
    await symlink(outside.path("secret"), folders.path("link"));
    await symlink(outside.local, folders.path("linked"));
    execFileSync("mkfifo", [folders.path("pipe")]);
    await folders.writeThere("linked/new.js", "new");
    await folders.writeThere("pipe", "text");
    const [up, down] = [await folders.up(), await folders.down()];
    expect(up.result.leftOut).toEqual([
      { path: "link", why: "is a symbolic link, which is not followed" },
      { path: "linked", why: "is a symbolic link, which is not followed" },
      { path: "pipe", why: "is neither a file nor a folder" },
    ]);
    expect([up.code, down.code, down.result.created]).toEqual([3, 3, []]);
    expect(await folders.there()).toEqual({ "linked/": "", "linked/new.js": "new", pipe: "text" });
    expect(await outside.here()).toEqual({ secret: "secret" });

    await mkdir(folders.path("only"));
    await symlink(outside.local, folders.path("only/linked"));
    const dry = await folders.down({ isDry: true, isDeleting: true, isForced: true });
    expect([dry.result.removed, dry.result.kept]).toEqual([[], 1]);
  });

  test("has names that cannot be stored: each is named with the reason, and all others go up", async () => {
    const folders = await world.folders();
    const names = ["line\nbreak", "back\\slash", "right\u202eleft", "ordinary ü 文"];
    for (const name of names) await folders.write(name, "text");
    await writeFile(Buffer.concat([Buffer.from(`${folders.local}/`), Buffer.from([0x66, 0xff])]), "no UTF-8");
    const { code, result } = await folders.up();
    expect([code, result.created, result.failed]).toEqual([3, ["ordinary ü 文"], []]);
    expect(result.leftOut.map(({ why }) => why)).toEqual([
      "contains a backslash",
      "its name is no UTF-8",
      "contains a control character",
      "contains a control character",
    ]);
  });

  test("has a name in another form of Unicode: it is the same file, under its own spelling on each side", async () => {
    const folders = await world.folders();
    await folders.write("cafe\u0301/e\u0301.js", "one");
    expect((await folders.up()).result.created).toEqual(["caf\u00e9/\u00e9.js"]);
    await folders.writeThere("caf\u00e9/\u00e9.js", "two");
    await folders.writeThere("caf\u00e9/new.js", "new");
    expect((await folders.down()).result).toMatchObject({
      replaced: ["cafe\u0301/e\u0301.js"],
      created: ["cafe\u0301/new.js"],
    });
    await folders.write("caf\u00e9/\u00e9.js", "another");
    const { code, result } = await folders.up();
    expect([code, result.leftOut.map(({ path }) => path), result.created]).toEqual([
      3,
      ["cafe\u0301", "caf\u00e9"],
      [],
    ]);
  });

  test("has a file that is changed while it is read: neither version is stored as a mixture", async () => {
    const folders = await world.folders();
    await folders.write("log", "x".repeat(3 << 20));
    const client = world.client(async (url, init) => {
      if (url.endsWith("/log")) await appendFile(folders.path("log"), "more");
      return fetch(url, init);
    });
    const { code, result } = await folders.up({ client });
    expect([code, result.leftOut]).toEqual([0, []]);
    expect((await folders.there())["log"]).toHaveLength((3 << 20) + 4);

    await folders.write("log", "y".repeat(3 << 20));
    const interfering = world.client((url, init) =>
      fetch(
        url,
        whileRead(init, () => appendFile(folders.path("log"), "!")),
      ),
    );
    const second = await folders.up({ client: interfering });
    expect([second.code, second.result.leftOut.map(({ path, why }) => [path, why])]).toEqual([
      3,
      [["log", "was changed while it was read"]],
    ]);
    expect((await folders.there())["log"]).toHaveLength((3 << 20) + 4);
  });

  test("has a large file that another user changes first: the upload is refused as a conflict, not as a failure", async () => {
    const folders = await world.folders();
    await folders.write("log", "x".repeat(3 << 20));
    await folders.up();
    await folders.write("log", "y".repeat(24 << 20));
    const client = world.client(async (url, init) => {
      if (url.endsWith("/log")) await folders.writeThere("log", "theirs");
      return fetch(url, init);
    });
    expect(await folders.up({ client })).toMatchObject({
      code: 2,
      result: { conflicts: [{ path: "log" }], failed: [] },
    });
    expect(await folders.there()).toEqual({ log: "theirs" });
  });

  test("gets a link in place of a folder after the comparison: nothing is written behind it", async () => {
    const folders = await world.folders();
    const outside = await world.folders();
    await folders.writeThere("sub/a.js", "one");
    await folders.down();
    await folders.writeThere("sub/a.js", "two");
    const client = world.client(async (url, init) => {
      if (url.includes("type=download")) {
        await rm(folders.path("sub"), { recursive: true });
        await symlink(outside.local, folders.path("sub"));
      }
      return fetch(url, init);
    });
    const { code, result } = await folders.down({ client });
    expect([code, result.conflicts.map(({ path }) => path)]).toEqual([2, ["sub/a.js"]]);
    expect(await outside.here()).toEqual({});
  });

  test("gets a newer file while the download of it is under way: it is not overwritten", async () => {
    const folders = await world.folders();
    await folders.writeThere("a.js", "one");
    await folders.down();
    await folders.writeThere("a.js", "two");
    const client = world.client(async (url, init) => {
      if (url.includes("type=download")) await folders.write("a.js", "mine");
      return fetch(url, init);
    });
    expect(await folders.down({ client })).toMatchObject({ code: 2, result: { conflicts: [{ path: "a.js" }] } });
    expect(await folders.here()).toEqual({ "a.js": "mine" });
    expect(await folders.own()).toEqual([expect.stringMatching(/^\.odp-sync-\w{12}\.json$/)]);
  });
});

/** A controller that answers other listings than it has. */
function lying(listed: (record: Readonly<Record<string, unknown>>) => object): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (!url.includes("type=dir")) return response;
    const answer = (await response.json()) as { readonly message: readonly Record<string, unknown>[] };
    return new Response(JSON.stringify({ ...answer, message: answer.message.map(listed) }), response);
  };
}

describe("a controller", () => {
  test.each([
    ["..", "../outside.js"],
    ["..", ".."],
    ["an absolute path", "/etc/outside.js"],
    ["separators of Windows", "..\\outside.js"],
    ["a drive", "C:outside.js"],
    ["another folder", "deep/inside.js"],
    ["a control character", "out\u001b[2Jside.js"],
  ])("that tells a name with %s cannot write outside the folder: %j", async (_kind, name) => {
    const folders = await world.folders();
    await folders.writeThere("a.js", "one");
    const client = world.client(
      lying((record) => ({ ...record, name, fullname: `${record["parent"] as string}/${name}` })),
    );
    const { code, result } = await folders.down({ client });
    expect([code, result.created, result.leftOut.map(({ why }) => why)]).toEqual([
      3,
      [],
      ["the controller told a name that is no name of a file"],
    ]);
    expect(await folders.here()).toEqual({});
  });

  test("that sends other bytes than it listed damages no file", async () => {
    const folders = await world.folders();
    await folders.writeThere("a.js", "one");
    const client = world.client(lying((record) => ({ ...record, digest: "0".repeat(64) })));
    await expect(folders.down({ client })).rejects.toMatchObject({
      code: "unavailable",
      message: "a.js arrived damaged.",
    });
    expect(await folders.here()).toEqual({});
  });

  test("has a file named like the state of a sync: it does not come down", async () => {
    const folders = await world.folders();
    await folders.write("a.js", "one");
    await folders.up();
    const [state = ""] = await folders.own();
    await folders.writeThere(state, "{}");
    expect((await folders.down()).result).toMatchObject({ created: [], replaced: [] });
    expect(await readFile(folders.path(state), "utf8")).toContain("a.js");
  });

  test("has names that only Windows refuses: there they are named, elsewhere they come down", async () => {
    const folders = await world.folders();
    for (const name of ["at 10:30", "aux.js", "end.", "good.js"]) await folders.writeThere(name, "text");
    const windows = await folders.down({ platform: "win32" });
    expect([windows.code, windows.result.created, windows.result.leftOut.map(({ path }) => path)]).toEqual([
      3,
      ["good.js"],
      ["at 10:30", "aux.js", "end."],
    ]);
    expect((await folders.down()).result.created).toEqual(["at 10:30", "aux.js", "end."]);
  });
});

/** Calls `act` after the first piece of the body. */
function whileRead(init: Parameters<Fetch>[1], act: () => Promise<void>): Parameters<Fetch>[1] {
  const { body } = init;
  if (!(body instanceof ReadableStream)) return init;
  let pieces = 0;
  const spy = new TransformStream<Uint8Array, Uint8Array>({
    async transform(piece, controller) {
      if (pieces++ === 2) await act();
      controller.enqueue(piece);
    },
  });
  return { ...init, body: body.pipeThrough(spy) };
}

async function bases(folders: Folders): Promise<number> {
  const [state = ""] = await folders.own();
  return (JSON.parse(await readFile(folders.path(state), "utf8")) as { files: readonly unknown[] }).files.length;
}

describe("an interrupted sync", () => {
  test("keeps what it did, and the next one goes on from there", async () => {
    const folders = await world.folders();
    for (let count = 0; count < 40; count++) await folders.write(`${count}.js`, `text ${count}`);
    const stop = new AbortController();
    let puts = 0;
    const client = world.client((url, init) => {
      if (init.method === "PUT" && ++puts === 20) stop.abort();
      return fetch(url, init);
    });
    await expect(folders.up({ client, signal: stop.signal })).rejects.toThrow();
    expect(await bases(folders)).toBeGreaterThan(0);
    expect(await folders.own()).toHaveLength(1);
    expect((await folders.up()).code).toBe(0);
    expect(Object.keys(await folders.there())).toHaveLength(40);
  });

  test("whose process was killed leaves a lock that the next one takes over; one under way is not disturbed", async () => {
    const folders = await world.folders();
    await folders.write("a.js", "one");
    await folders.up();
    const [state = ""] = await folders.own();
    const lock = folders.path(state.replace(".json", ".lock"));
    await writeFile(lock, `${process.pid} ${hostname()}\n`);
    await expect(folders.up()).rejects.toMatchObject({ code: "unavailable" });
    await writeFile(lock, `${execFileSync("sh", ["-c", "echo $$"]).toString().trim()} ${hostname()}\n`);
    expect((await folders.up()).code).toBe(0);
  });

  test("whose state cannot be stored tells what was done, and why it failed", async () => {
    const folders = await world.folders();
    await folders.write("a.js", "one");
    const client = world.client(async (url, init) => {
      const response = await fetch(url, init);
      if (url.endsWith("/a.js")) await rename(folders.local, `${folders.local}-moved`);
      return response;
    });
    const results: SyncResult[] = [];
    const told = (result: SyncResult): void => void results.push(result);
    const request = requestOf({ from: folders.local, to: folders.remote });
    await expect(syncOnce(request, environmentOf(world, { client, told }))).rejects.toMatchObject({
      message: expect.stringContaining("The state of the sync could not be stored: ENOENT"),
    });
    expect(results).toMatchObject([{ created: ["a.js"] }]);
  });

  test("down to a disk that is full does not go on with the other files", async () => {
    const folders = await world.folders();
    for (let count = 0; count < 20; count++) await folders.writeThere(`${count}.js`, "text");
    let attempts = 0;
    class Full extends LocalFolder {
      override write(): Promise<never> {
        attempts++;
        return Promise.reject(Object.assign(new Error("no space left on device"), { code: "ENOSPC" }));
      }
    }
    const target = new Full({ root: folders.local, nowMs: () => Date.now(), platform: process.platform });
    const source = new RemoteFolder({ client: world.client(), root: folders.place().path.slice(1), isSystem: false });
    const how = { isUp: false, isForced: false, isDeleting: false, isDry: false };
    const { signal } = new AbortController();
    const done = await synchronise({ source, target, ...how, isExcluded: () => false, signal }, NO_BASE);
    expect([done.error, attempts]).toEqual([expect.objectContaining({ code: "ENOSPC" }), FILE_SYNC_AT_ONCE]);
  });

  test("with a damaged state does nothing, and says what to do", async () => {
    const folders = await world.folders();
    await folders.write("a.js", "one");
    await folders.up();
    const [state = ""] = await folders.own();
    for (const text of ["", "{", '{"format":2}', "null"]) {
      await writeFile(folders.path(state), text);
      await expect(folders.up()).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringContaining("Delete it"),
      });
    }
  });
});

test("a folder that has gone, or is empty, removes nothing by --delete", async () => {
  const folders = await world.folders();
  await folders.write("a.js", "one");
  await folders.up();
  await rename(folders.local, `${folders.local}-away`);
  await expect(folders.up({ isDeleting: true })).rejects.toMatchObject({ code: "not_found" });
  await rename(`${folders.local}-away`, folders.local);
  await rm(folders.path("a.js"));
  await expect(folders.up({ isDeleting: true })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("has no file"),
  });
  expect(await folders.there()).toEqual({ "a.js": "one" });
});
