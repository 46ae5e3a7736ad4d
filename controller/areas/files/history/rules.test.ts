import { beforeEach, expect, test } from "vitest";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";

/** Former files have the rights of files: open paths, spaces and rules on the class of files. */

const admin = testPrincipal();
const ann: Principal = { ...admin, user: "ann" };
const FILES = "/matrix/filesystem";
const ruled = (...data: readonly DataRule[]): Principal => ({
  ...ann,
  data: [{ class: "/", access: "write" }, ...data],
});
const rows = ruled({ class: FILES, access: "write", where: "owner = 'ann'" });
const blind = ruled({ class: FILES, access: "write", hidden: ["digest", "size", "modified"] });
const ownerless = ruled({ class: FILES, access: "write", hidden: ["owner"] });
const reader = ruled({ class: FILES, access: "read" });
const unseen = ruled({ class: FILES, access: "none" });

let engine: TestEngine;
let one: FileController;
useFileControllers((opened) => ({ engine, one } = opened), { history: { ageMs: 3_600_000, maxBytes: 1_000_000 } });

let folders = 0;
let at: string;
const place = (name = "") => one.user(at + name);
beforeEach(() => {
  at = `/ruled${folders++}`;
});
const outcome = (call: Promise<unknown>) =>
  call.then(
    (answer) => (Array.isArray(answer) ? answer.length : answer),
    (error: { code: string }) => error.code,
  );
const list = (as: Principal, name: string) => outcome(one.files.history.list(as, place(name)));
const trash = async (as: Principal, name = "") =>
  (await one.files.history.trash(as, place(name), { limit: 100 })).former.map(({ entry }) =>
    entry.fullname.slice(at.length),
  );
const restore = (as: Principal, name: string, key: string) => outcome(one.files.history.restore(as, place(name), key));
const purge = (as: Principal, name: string, key?: string) => outcome(one.files.history.purge(as, place(name), { key }));
const keyOf = async (name: string) => (await one.files.history.list(admin, place(name)))[0]?.key ?? "";

test("what a rule hides is not in the history, not in the trash, and not restored", async () => {
  for (const [as, name] of [
    [ann, "/mine"],
    [admin, "/theirs"],
  ] as const) {
    await one.files.write(as, place(name), { text: `${name} 1` });
    await one.files.write(as, place(name), { text: `${name} 2` });
    await one.files.remove(admin, place(name));
  }
  const calls = [admin, rows, reader, unseen];
  expect(await Promise.all(calls.map((as) => list(as, "/theirs")))).toEqual([2, "not_found", 2, "not_found"]);
  expect(await Promise.all(calls.map((as) => list(as, "/mine")))).toEqual([2, 2, 2, "not_found"]);
  expect(await trash(rows)).toEqual(["/mine"]);
  expect(await trash(unseen)).toEqual([]);
  const [mine, theirs] = [await keyOf("/mine"), await keyOf("/theirs")];
  const restores = [rows, unseen, reader, blind].map((as) => restore(as, "/theirs", theirs));
  expect(await Promise.all(restores)).toEqual(["not_found", "not_found", "denied", "denied"]);
  expect(await restore(rows, "/mine", mine)).toBe(1);
});

test("only what the rules let a user remove is purged, and of a folder all or nothing", async () => {
  await one.files.write(ann, place("/f/mine"), { text: "mine" });
  await one.files.makeFolder(ann, place("/f"));
  await one.files.write(admin, place("/f/theirs"), { text: "theirs" });
  await one.files.remove(admin, place("/f"));
  const { former } = await one.files.history.trash(admin, place(), { limit: 1 });
  const folder = former[0]?.key ?? "";
  const theirs = await keyOf("/f/theirs");
  for (const key of [undefined, theirs]) {
    const purges = [rows, unseen, reader].map((as) => purge(as, "/f/theirs", key));
    expect(await Promise.all(purges)).toEqual(["not_found", "not_found", "denied"]);
  }
  expect(await purge({ ...ann, paths: [`${at}/open`] }, "/f/mine")).toBe("denied");
  for (const as of [rows, reader]) expect(await purge(as, "/f", folder)).toBe("denied");
  expect([await list(admin, "/f/mine"), await list(admin, "/f/theirs")]).toEqual([1, 1]);
  expect(await purge(rows, "/f/mine")).toBe(1);
  expect(await purge(admin, "/f", folder)).toBe(1);
});

test("values that a rule hides are not answered", async () => {
  await one.files.write(admin, place("/a"), { text: "secret" });
  await one.files.write(ann, place("/a"), { text: "of ann" });
  const [former] = await one.files.history.list(blind, place("/a"));
  expect(former).toMatchObject({ user: "ann", entry: { size: 0, modifiedMs: former?.atMs } });
  const [nameless] = await one.files.history.list(ownerless, place("/a"));
  expect(nameless, "the owner now is the user who replaced it").toMatchObject({
    user: "",
    entry: { owner: "", size: 6 },
  });
});

test("a removed folder is not restored unless every entry may be written", async () => {
  await one.files.write(ann, place("/f/mine"), { text: "mine" });
  await one.files.makeFolder(ann, place("/f"));
  await one.files.write(admin, place("/f/theirs"), { text: "theirs" });
  await one.files.remove(admin, place("/f"));
  const { former } = await one.files.history.trash(admin, place(), { limit: 1 });
  const key = former[0]?.key ?? "";
  for (const as of [reader, blind]) expect(await restore(as, "/f", key)).toBe("denied");
  expect(await restore(rows, "/f", key)).toBe("denied");
  expect(await one.files.exists(admin, place("/f"))).toBe(false);
  expect(await keysUnder(engine, "files/open/")).toEqual([]);
});

test("closed paths are denied and not in the trash; the system's space is for administrators", async () => {
  for (const name of ["/open/a", "/shut/a"]) {
    await one.files.write(admin, place(name), { text: name });
    await one.files.remove(admin, place(name));
  }
  const user: Principal = { ...ann, paths: [`${at}/open`] };
  const key = await keyOf("/shut/a");
  expect(await list(user, "/shut/a")).toBe("denied");
  expect(await restore(user, "/shut/a", key)).toBe("denied");
  expect(await restore(user, "/open/a", key)).toBe("not_found");
  expect(await trash(user)).toEqual(["/open/a"]);
  const system = { path: `${at}/open/a`, space: "system" } as const;
  const { history } = one.files;
  expect(await outcome(history.list(user, system))).toBe("denied");
  expect(await outcome(history.restore(user, system, key))).toBe("denied");
  expect(await outcome(history.trash(user, system, { limit: 1 }))).toBe("denied");
});

test("a user restores no file that would hide one of the system's space", async () => {
  const user: Principal = { ...ann, paths: [at] };
  for (const name of ["/a", "/f/a"]) await one.files.write(user, place(name), { text: name });
  for (const name of ["/a", "/f"]) await one.files.remove(user, place(name));
  for (const name of ["/a", "/f/a"])
    await one.files.write(admin, { path: at + name, space: "system" }, { text: "system" });
  const { former } = await one.files.history.trash(user, place(), { limit: 10 });
  for (const { entry, key } of former) expect(await restore(user, entry.fullname.slice(at.length), key)).toBe("denied");
  expect(former).toHaveLength(2);
  expect(await one.files.exists(admin, place("/f"))).toBe(false);
});
