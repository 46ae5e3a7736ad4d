import { beforeEach, describe, expect, test } from "vitest";
import { FILE_WORK_BATCH_MAX } from "../../../../common/limits.ts";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { encodeJson } from "../../../store/format.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";
import type { KeptTreeProgress, KeptTreeWork, OpenFileWork } from "../work-journal.ts";
import { snapshotKey, versionKey } from "./records.ts";

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

/**
 * Work by `rows`, who sees only files of ann, as it is found in the journal: another user has written an entry after the
 * user was let in. More entries than one batch come before it.
 */
describe("work that meets an entry which its user may not write", () => {
  /** Gives the files of a batch one content, in their rows. */
  const batch = async (text: string): Promise<void> => {
    await one.files.write(ann, place("/0"), { text });
    const { digest } = await one.files.read(admin, `${at}/0`);
    const { blobs } = await engine.tenant("matrix");
    const rows = Array.from({ length: FILE_WORK_BATCH_MAX - 1 }, (_, file) => {
      const [name, mark] = [String(file + 1), `file/${at.slice(1)}.${file}.${text}`];
      const path = { space: "user", fullname: `${at}/${name}`, name, parent: at };
      return { ...path, ftype: "", owner: "ann", size: text.length, digest, mark };
    });
    await Promise.all(rows.map(({ mark }) => blobs.mark(digest, mark)));
    await one.objects.unrestricted.insert(admin, FILES, rows);
    expect((await one.tree(admin, at)).length).toBeGreaterThan(FILE_WORK_BATCH_MAX);
  };
  beforeEach(async () => {
    await batch("old");
    await one.files.write(admin, place("/theirs"), { text: "theirs" });
  });
  const found = async (kind: KeptTreeWork, kept: KeptTreeProgress): Promise<void> => {
    const { tenant, ospace, user, traceparent } = rows;
    const open: OpenFileWork = {
      ...{ tenant, ospace, user, traceparent, id: `${kind}${at.slice(1)}`, owner: "gone", attempt: 0, startedMs: 0 },
      ...{ kind, space: "user", from: at, at, kept, rules: rows.data },
    };
    await (await engine.tenant("matrix")).kv.put(`files/open/${open.id}`, encodeJson(open));
    await using heir = fileController(engine, { own: "heir", gone: new Set(["gone"]) });
    await heir.files.maintain("matrix");
    await heir.files.settled();
    expect(await keysUnder(engine, "files/open/")).toEqual([]);
  };

  const versionHere = () => ({ name: "v", key: versionKey({ space: "user", fullname: at }, "v") });

  test("restores nothing", async () => {
    await push(admin);
    await batch("new");
    await found("restore", versionHere());
    expect((await one.files.read(admin, `${at}/0`)).text).toBe("new");
  });

  test("restores nothing if it would remove the entry", async () => {
    await one.files.remove(admin, place("/theirs"));
    await push(admin);
    await batch("new");
    await one.files.write(admin, place("/theirs"), { text: "theirs" });
    await found("restore", versionHere());
    const texts = ["/0", "/theirs"].map(async (name) => (await one.files.read(admin, at + name)).text);
    expect(await Promise.all(texts)).toEqual(["new", "theirs"]);
  });

  test.each(["keep", "release"] as const)("replaces and deletes nothing by %s", async (kind) => {
    await push(admin);
    await one.files.remove(admin, place("/theirs"));
    await found(kind, versionHere());
    await pull(admin);
    expect((await one.files.read(admin, `${at}/theirs`)).text).toBe("theirs");
  });

  test("removes no snapshot of a folder below", async () => {
    await one.files.write(admin, place("/below/theirs"), { text: "below" });
    await one.files.versions.snapshot(admin, place("/below"));
    for (const path of ["/below", "/theirs"]) await one.files.remove(admin, place(path));
    expect(await outcome(one.files.versions.snapshot(rows, place()))).toBe("denied");
    const snapshots = await keysUnder(engine, "files/snapshots/");
    expect(snapshots).toEqual([snapshotKey({ space: "user", fullname: `${at}/below` })]);
  });
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
