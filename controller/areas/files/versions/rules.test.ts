import { beforeEach, expect, test } from "vitest";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";

/** Rules on the class of files, open paths, and the system's space apply to versions as to the files themselves. */

const FILES = "/matrix/filesystem";
const admin = testPrincipal();
const ann: Principal = { ...admin, user: "ann" };
const ruled = (...data: readonly DataRule[]): Principal => ({
  ...ann,
  data: [{ class: "/", access: "write" }, ...data],
});
const rows = ruled({ class: FILES, access: "write", where: "owner = 'ann'" });
const columns = ruled({ class: FILES, access: "write", hidden: ["attr"] });
const blind = ruled({ class: FILES, access: "write", hidden: ["digest"] });
const reader = ruled({ class: FILES, access: "read" });
const unseen = ruled({ class: FILES, access: "none" });

let engine: TestEngine;
let one: FileController;
useFileControllers((opened) => ({ engine, one } = opened));

let folders = 0;
let at: string;
const place = (name = "") => one.user(at + name);
beforeEach(async () => {
  at = `/ruled${folders++}`;
  await one.files.makeFolder(ann, place());
  await one.files.write(ann, place("/mine"), { text: "mine" });
});

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => "ok",
    (error: { code: string }) => error.code,
  );
const push = (as: Principal, name = "", version = "v") => one.files.versions.push(as, place(name), version);
const pull = (as: Principal, name = "") => one.files.versions.pull(as, place(name), "v");
const remove = (as: Principal) => one.files.versions.remove(as, place(), "v");
const list = (as: Principal) => one.files.versions.list(as, place(), { limit: 10 });

test("a tree with one entry that is not fully visible is not kept", async () => {
  expect(await outcome(push(rows))).toBe("ok");
  await one.files.write(admin, place("/theirs"), { text: "theirs" });
  const codes = await Promise.all([rows, columns, blind, unseen].map((as) => outcome(push(as, "", "w"))));
  expect(codes).toEqual(["denied", "denied", "denied", "not_found"]);
  expect(await outcome(push(rows, "/theirs"))).toBe("not_found");
  expect((await list(admin)).versions.map(({ name }) => name)).toEqual(["v"]);
  expect(await keysUnder(engine, "files/open/")).toEqual([]);
});

const DENIED = ["denied", "denied"];

test("a version is neither restored, replaced nor deleted unless every entry may be written", async () => {
  await one.files.write(admin, place("/theirs"), { text: "theirs" });
  await push(admin);
  const codes = (call: (as: Principal) => Promise<unknown>, ...as: Principal[]) =>
    Promise.all(as.map((one) => outcome(call(one))));
  expect(await codes(pull, rows, columns, blind, reader, unseen)).toEqual([...DENIED, "denied", "denied", "not_found"]);
  expect(await codes(remove, rows, reader, unseen)).toEqual([...DENIED, "not_found"]);
  await one.files.remove(admin, place("/theirs"));
  expect(await outcome(pull(rows))).toBe("denied");
  expect(await outcome(push(rows))).toBe("denied");
  expect(await one.tree(admin, at)).toEqual([`${at}/mine`]);
  expect(await pull(admin)).toBe(1);
  expect(await one.tree(admin, at)).toEqual([`${at}/mine`, `${at}/theirs`]);
});

test("a pull removes no entry that the user may not write", async () => {
  expect(await outcome(push(rows))).toBe("ok");
  await one.files.write(admin, place("/theirs"), { text: "theirs" });
  expect(await outcome(pull(rows))).toBe("denied");
  expect(await one.tree(admin, at)).toEqual([`${at}/mine`, `${at}/theirs`]);
  await one.files.remove(admin, place("/theirs"));
  expect(await outcome(pull(rows))).toBe("ok");
});

test("the list shows only versions whose root is visible, and no counts of what rules hide", async () => {
  await push(admin);
  expect((await list(reader)).versions).toMatchObject([{ name: "v", entries: 2, bytes: 4 }]);
  for (const as of [rows, columns]) {
    const [version] = (await list(as)).versions;
    expect(version).toEqual({ name: "v", user: admin.user, timeMs: expect.any(Number) });
  }
  expect(await outcome(list(unseen))).toBe("not_found");
  await one.files.remove(admin, place());
  expect(await outcome(list(unseen))).toBe("not_found");
  expect((await list(rows)).versions).toHaveLength(1);
});

test("a pull by a user makes no file that would hide one of the system's space", async () => {
  const user: Principal = { ...ann, paths: [at] };
  await one.files.versions.push(user, place(), "v");
  await one.files.remove(admin, place("/mine"));
  await one.files.write(admin, { path: `${at}/mine`, space: "system" }, { text: "system" });
  await one.files.write(admin, place("/kept"), { text: "kept" });
  expect(await outcome(pull(user))).toBe("denied");
  expect(await one.tree(admin, at)).toEqual([`${at}/kept`]);
  expect(await outcome(pull(admin))).toBe("ok");
});

test("closed paths and the system's space are denied", async () => {
  const closed: Principal = { ...ann, paths: ["/elsewhere"] };
  await push(admin);
  for (const call of [push, pull, remove, list]) expect(await outcome(call(closed))).toBe("denied");
  const system = { path: at, space: "system" } as const;
  const user: Principal = { ...ann, paths: [at] };
  const { versions } = one.files;
  for (const call of [
    () => versions.push(user, system, "v"),
    () => versions.pull(user, system, "v"),
    () => versions.remove(user, system, "v"),
    () => versions.list(user, system, { limit: 1 }),
  ])
    expect(await outcome(call())).toBe("denied");
});

test("the root folder has no versions", async () => {
  expect(await outcome(one.files.versions.push(admin, one.user("/"), "v"))).toBe("invalid");
});
