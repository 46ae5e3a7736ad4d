import { mkdir, readFile, readlink, symlink } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openFileSync, type FileSyncWorld, type Folders } from "../../../test/helpers/programs/file-sync.ts";
import { copyFile, listFolder, moveEntry, removeEntry, showFile } from "./verbs.ts";

/** `odp fs ls`, `cat`, `cp`, `rm` and `mv` against a controller. */

let world: FileSyncWorld;
beforeAll(async () => void (world = await openFileSync()));
afterAll(() => world[Symbol.asyncDispose]());

let folders: Folders;
let signal: AbortSignal;
beforeEach(async () => {
  folders = await world.folders();
  ({ signal } = new AbortController());
  await folders.writeThere("a.js", "one");
  await folders.writeThere("deep/b.js", "two");
});

function options() {
  return { client: world.client(), isSystem: false, signal, nowMs: () => Date.now(), platform: process.platform };
}

test("ls lists a folder by name; a missing folder is an error", async () => {
  const listed = await listFolder(folders.remote, options());
  expect(listed.map(({ name, size, isdir }) => [name, size, isdir])).toEqual([
    ["a.js", 3, false],
    ["deep", 0, true],
  ]);
  expect((await listFolder("/", options())).map(({ name }) => name)).toContain(folders.place().path.slice(1));
  await expect(listFolder(`${folders.remote}/none`, options())).rejects.toMatchObject({ code: "not_found" });
});

test("cat passes on the bytes; a path may leave the file space neither by .. nor otherwise", async () => {
  const pieces: Uint8Array[] = [];
  const write = (bytes: Uint8Array) => Promise.resolve(pieces.push(bytes) > 0);
  await showFile(`${folders.remote}/deep/b.js`, { ...options(), write });
  expect(Buffer.concat(pieces).toString()).toBe("two");
  for (const path of ["odp:/../x", "odp:/a\\b", "odp:", "/"])
    await expect(showFile(path, { ...options(), write })).rejects.toMatchObject({ code: "invalid" });
});

test("cat reads no more of a file when its reader has gone", async () => {
  await folders.writeThere("large.txt", "x".repeat(4 << 20));
  const pieces: Uint8Array[] = [];
  const write = (bytes: Uint8Array) => Promise.resolve(pieces.push(bytes) < 1);
  await showFile(`${folders.remote}/large.txt`, { ...options(), write });
  expect(pieces).toHaveLength(1);
});

test("cp refuses what is no file, with the reason, and replaces no symbolic link", async () => {
  await symlink("elsewhere", folders.path("link"));
  const [there, link] = [`${folders.remote}/a.js`, folders.path("link")];
  await expect(copyFile(there, link, options())).rejects.toMatchObject({
    code: "invalid",
    message: `${link} is a symbolic link: it is not replaced.`,
  });
  expect(await readlink(link)).toBe("elsewhere");
  await expect(copyFile("/dev/null", there, options())).rejects.toMatchObject({
    message: "/dev/null is neither a file nor a folder.",
  });
});

test.runIf(process.platform === "linux")(
  "cp does not store a file of the system that states no size as empty",
  async () => {
    await expect(copyFile("/proc/self/status", `${folders.remote}/status`, options())).rejects.toMatchObject({
      message: "status was changed while it was read.",
    });
    expect(Object.keys(await folders.there())).not.toContain("status");
  },
);

test("cp copies one file up or down, into a folder under its own name, and over a file", async () => {
  await folders.write("new.js", "new");
  await symlink(folders.path("new.js"), folders.path("link.js"));
  const there = folders.remote;
  for (const [from, to] of [
    ["new.js", `${there}/c.js`],
    ["new.js", `${there}/deep`],
    ["new.js", `${there}/made/`],
    ["link.js", `${there}/a.js`],
  ] as const)
    await copyFile(folders.path(from), to, options());
  expect(await folders.there()).toEqual({
    "a.js": "new",
    "c.js": "new",
    "deep/": "",
    "deep/b.js": "two",
    "deep/new.js": "new",
    "made/": "",
    "made/new.js": "new",
  });
  await mkdir(folders.path("sub"));
  await copyFile(`${there}/deep/b.js`, folders.path("sub"), options());
  await copyFile(`${there}/deep/b.js`, folders.path("new.js"), options());
  expect([await readFile(folders.path("sub/b.js"), "utf8"), await readFile(folders.path("new.js"), "utf8")]).toEqual([
    "two",
    "two",
  ]);
});

test("cp refuses folders without -r, missing files, and two places on one side", async () => {
  for (const [from, to, code] of [
    [folders.local, folders.remote, "invalid"],
    [folders.path("none"), folders.remote, "not_found"],
    [`${folders.remote}/none`, folders.path("x"), "not_found"],
    [`${folders.remote}/deep`, folders.path("x"), "invalid"],
    [`${folders.remote}/a.js`, folders.path("no/folder/x"), "not_found"],
    [`${folders.remote}/a.js`, `${folders.remote}/x`, "invalid"],
    [folders.path("x"), folders.path("y"), "invalid"],
  ] as const)
    await expect(copyFile(from, to, options()), `${from} ${to}`).rejects.toMatchObject({ code });
  expect(await folders.here()).toEqual({});
});

test("rm removes a file, and a folder only with -r", async () => {
  await expect(removeEntry(`${folders.remote}/deep`, { ...options(), isTree: false })).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("add -r"),
  });
  await removeEntry(`${folders.remote}/a.js`, { ...options(), isTree: false });
  expect(Object.keys(await folders.there())).toEqual(["deep/", "deep/b.js"]);
  await removeEntry(`${folders.remote}/deep`, { ...options(), isTree: true });
  await expect(removeEntry(`${folders.remote}/deep`, { ...options(), isTree: true })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("mv gives a new path, or moves into a folder; it replaces nothing", async () => {
  const there = folders.remote;
  await moveEntry(`${there}/a.js`, `${there}/c.js`, options());
  await moveEntry(`${there}/c.js`, `${there}/deep/`, options());
  expect(Object.keys(await folders.there())).toEqual(["deep/", "deep/b.js", "deep/c.js"]);
  await expect(moveEntry(`${there}/deep/b.js`, `${there}/deep/c.js`, options())).rejects.toMatchObject({
    code: "conflict",
  });
});
