import { beforeEach, describe, expect, test } from "vitest";
import type { ErrorCode } from "../../../common/errors.ts";
import type { TestEngine } from "../../../test/helpers/engines/engine.ts";
import { useFileControllers } from "../../../test/helpers/areas/file-controllers.ts";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagRuntime } from "../../../test/helpers/objects/tags.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import type { DataRule, Principal } from "../permissions/index.ts";
import { FileWorkJournal } from "./work-journal.ts";

/** Rules on the class of files apply on every way to a file: rows, columns and the right to write. */

const FILES = "/matrix/filesystem";
const admin = testPrincipal();
const ann: Principal = { ...admin, user: "ann" };
const ruled = (...data: readonly DataRule[]): Principal => ({
  ...ann,
  data: [{ class: "/", access: "write" }, ...data],
});
const OWN: DataRule = { class: FILES, access: "write", where: "owner = 'ann'" };
const rows = ruled(OWN);
const columns = ruled({ class: FILES, access: "write", hidden: ["owner", "attr", "tags"] });
const blind = ruled({ class: FILES, access: "write", hidden: ["digest"] });
const nameless = ruled({ class: FILES, access: "write", hidden: ["fullname"] });
const reader = ruled({ class: FILES, access: "read" });
const unseen = ruled({ class: FILES, access: "none" });

let engine: TestEngine;
let one: FileController;
let files: FileController["files"];
useFileControllers((opened) => {
  ({ engine, one } = opened);
  ({ files } = one);
});

/** Each test has its own folder with one file of each user. */
let folders = 0;
let at: string;
const place = (name = "") => one.user(at + name);
beforeEach(async () => {
  at = `/ruled${folders++}`;
  await files.makeFolder(ann, place());
  await files.write(admin, place("/theirs.js"), { text: "theirs" }, { attr: '{"a":"secret"}', tags: ["secret"] });
  await files.write(ann, place("/mine.js"), { text: "mine" });
});

type Call = (principal: Principal, name: string) => Promise<unknown>;
const READS: Readonly<Record<string, Call>> = {
  read: (principal, name) => files.read(principal, at + name),
  open: (principal, name) => files.open(principal, at + name, "user"),
  about: (principal, name) => files.about(principal, place(name)),
};
const WRITES: Readonly<Record<string, Call>> = {
  write: (principal, name) => files.write(principal, place(name), { text: "other" }),
  keep: (principal, name) => files.write(principal, place(name), undefined, { attr: "{}" }),
  attr: (principal, name) => files.note(principal, place(name), { attr: "{}" }),
  tags: (principal, name) => files.note(principal, place(name), { tags: ["t"] }),
  copy: (principal, name) => files.copy(principal, place(name), `${at}/copied`),
  move: (principal, name) => files.move(principal, place(name), `${at}/moved`),
  rename: (principal, name) => files.rename(principal, place(name), `${at}/renamed.js`),
  remove: (principal, name) => files.remove(principal, place(name)),
};

async function codes(calls: Readonly<Record<string, Call>>, principal: Principal, name: string) {
  const answers: Record<string, ErrorCode | "ok"> = {};
  for (const [called, call] of Object.entries(calls))
    answers[called] = await call(principal, name).then(
      () => "ok",
      (error: { code: ErrorCode }) => error.code,
    );
  return answers;
}
const all = (calls: object, code: string) => Object.fromEntries(Object.keys(calls).map((name) => [name, code]));

/** Everything below the folder, as an administrator sees it. */
async function state() {
  const paths = (await one.tree(admin, at)).filter((path) => !path.endsWith("/"));
  return Promise.all(
    paths.map(async (path) => {
      const { attr, tags, owner } = await files.about(admin, one.user(path));
      return [path.slice(at.length), (await files.read(admin, path)).text, attr, tags, owner];
    }),
  );
}

async function listed(principal: Principal): Promise<readonly string[]> {
  return (await one.tree(principal, at)).map((path) => path.slice(at.length)).sort();
}

describe("a file that a row condition leaves out", () => {
  test("is nowhere to be read, and told of like one that was never there", async () => {
    expect(await codes(READS, rows, "/theirs.js")).toEqual(all(READS, "not_found"));
    expect(await codes(READS, rows, "/mine.js")).toEqual(all(READS, "ok"));
    expect(await files.exists(rows, place("/theirs.js"))).toBe(false);
    expect(await listed(rows)).toEqual(["/mine.js"]);
    await expect(listed(unseen)).rejects.toMatchObject({ code: "not_found" });
    for (const name of ["/theirs.js", "/none"])
      await expect(files.read(rows, at + name)).rejects.toThrow(`There is no file ${at}${name}.`);
  });

  test("is not changed, removed, moved, copied or written over", async () => {
    const before = await state();
    const answers = await codes(WRITES, rows, "/theirs.js");
    expect(answers).toEqual({ ...all(WRITES, "not_found"), write: "denied", keep: "denied" });
    await files.write(ann, place("/to/theirs.js"), { text: "of ann" });
    const to = await state();
    await expect(files.copy(rows, place("/to/theirs.js"), at)).rejects.toMatchObject({ code: "denied" });
    await expect(files.rename(rows, place("/to/theirs.js"), `${at}/theirs.js`)).rejects.toMatchObject({
      code: "conflict",
    });
    expect(await state()).toEqual(to);
    expect(to).toEqual(expect.arrayContaining(before));
  });

  test("is not written by who may write files and read none either", async () => {
    const writer = { ...rows, grants: ["files:write"] };
    await files.note(writer, place("/mine.js"), { attr: "{}" });
    await expect(files.note(writer, place("/theirs.js"), { attr: "{}" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("is not made either, while others are written as ever", async () => {
    const places = ruled({ class: FILES, access: "write", where: `fullname like '${at}/open*'` });
    await expect(files.write(places, place("/closed.js"), { text: "x" })).rejects.toMatchObject({ code: "denied" });
    await expect(files.makeFolder(places, place("/closed"))).rejects.toMatchObject({ code: "denied" });
    await files.write(places, place("/open.js"), { text: "x" });
    await expect(files.rename(places, place("/open.js"), `${at}/closed.js`)).rejects.toMatchObject({ code: "denied" });
    await files.rename(places, place("/open.js"), `${at}/open/er.js`);
    expect(await codes(WRITES, rows, "/mine.js")).toMatchObject({ write: "ok", keep: "ok", tags: "ok", move: "ok" });
    await files.remove(rows, place("/moved"));
    expect(await listed(admin)).toEqual(expect.arrayContaining(["/copied/mine.js", "/open/er.js", "/theirs.js"]));
  });
});

describe("columns that are hidden", () => {
  test("are told as if they were not set, and not written", async () => {
    expect(await files.about(columns, place("/theirs.js"))).toMatchObject({ attr: "", tags: [], owner: "" });
    for await (const page of files.list(columns, place()))
      for (const { owner, attr, size } of page) expect([owner, attr, size > 0]).toEqual(["", "", true]);
    expect(await codes(WRITES, columns, "/theirs.js")).toEqual({
      ...all(WRITES, "denied"),
      write: "ok",
      remove: "ok",
    });
  });

  test("hide the content with its digest, and the file with its path", async () => {
    const { read, open, about } = await codes(READS, blind, "/theirs.js");
    expect([read, open, about]).toEqual(["denied", "denied", "ok"]);
    expect(await codes(WRITES, blind, "/theirs.js")).toMatchObject({ write: "denied", copy: "denied", attr: "ok" });
    for await (const page of files.list(blind, place()))
      for (const { values, size } of page) expect([values["digest"], size > 0]).toEqual([undefined, true]);
    expect(await codes(READS, nameless, "/mine.js")).toEqual(all(READS, "not_found"));
  });
});

test("a class that is open for reading is not written", async () => {
  const before = await state();
  expect(await codes(READS, reader, "/theirs.js")).toEqual(all(READS, "ok"));
  expect(await codes(WRITES, reader, "/theirs.js")).toEqual(all(WRITES, "denied"));
  expect(await state()).toEqual(before);
});

describe("a folder with a file that is closed to the caller somewhere below", () => {
  test("is neither copied, moved nor removed, and nothing in it is", async () => {
    for (const name of ["/all", "/all/deep/er"]) await files.makeFolder(ann, place(name));
    await files.write(ann, place("/all/1"), { text: "1" });
    await files.write(admin, place("/all/deep/er/2"), { text: "2" });
    const before = await state();
    for (const call of [WRITES["copy"], WRITES["move"], WRITES["rename"], WRITES["remove"]])
      await expect(call?.(rows, "/all")).rejects.toMatchObject({ code: "denied" });
    expect(await state()).toEqual(before);
    await files.write(ann, place("/own/1"), { text: "1" });
    await files.rename(rows, place("/own"), `${at}/new`);
    await files.remove(rows, place("/new"));
    expect(await state()).toEqual(before);
  });

  test("stays where that file came after the beginning, and the controller that continues has the rights of then", async () => {
    await files.write(ann, place("/all/1"), { text: "1" });
    const controllers = { own: "gone", has: () => true };
    const journal = new FileWorkJournal({ stores: engine, runtime: tagRuntime(), controllers });
    await journal.beginAlone({
      ...{ id: "ruled", tenant: "matrix", ospace: "/matrix", user: "ann", traceparent: "", startedMs: 0 },
      ...{ kind: "remove", space: "user", from: `${at}/all`, at: `${at}/all`, rules: [OWN] },
    });
    await files.write(admin, place("/all/late"), { text: "late" });
    const heir = fileController(engine, { own: "heir", gone: new Set(["gone"]) });
    await heir.files.maintain("matrix");
    await heir.files.settled();
    expect((await state()).map(([path]) => path)).toContain("/all/late");
    const { kv } = await engine.tenant("matrix");
    for await (const entry of entriesUnder(kv, "files/open/")) expect(entry).toBeUndefined();
    await heir[Symbol.asyncDispose]();
  });
});

test.each([
  ["none", []],
  ["those of other classes", [{ class: "/matrix/box", access: "none" }]],
  ["those that open nothing above", [{ class: "/", access: "none" }]],
  ["rows of whatever has the field", [{ class: "/", access: "read", where: "owner = 'ann'", rowsOnly: true }]],
] as const)("where no rule speaks of files the permission alone decides: %s", async (_, data) => {
  const caller: Principal = { ...ann, data };
  expect(await codes(READS, caller, "/theirs.js")).toEqual(all(READS, "ok"));
  expect(await codes(WRITES, caller, "/theirs.js")).toMatchObject({ write: "ok", tags: "ok", move: "ok" });
});
