import { beforeEach, describe, expect, test } from "vitest";
import { mapLimited } from "../../../../common/concurrency.ts";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { Stores } from "../../../store/engine.ts";

const admin = testPrincipal();

let engine: TestEngine;
let one: FileController;
let other: FileController;
useFileControllers((opened) => ({ engine, one, other } = opened));

let trees = 0;
let at: string;
const place = (name = "") => one.user(at + name);
beforeEach(() => {
  at = `/kept${trees++}`;
});

const write = (name: string, text: string) => one.files.write(admin, place(name), { text });
const push = (version: string, from = one) => from.files.versions.push(admin, place(), version);
const pull = (version: string, from = one) => from.files.versions.pull(admin, place(), version);
const names = async () =>
  (await one.files.versions.list(admin, place(), { limit: 100 })).versions.map(({ name }) => name);

/** Everything of the tree that a pull restores, by path. */
async function state(): Promise<Readonly<Record<string, readonly unknown[]>>> {
  await (await engine.tenant("matrix")).blobs.sweep(0);
  const found: [string, readonly unknown[]][] = [];
  for (const path of await one.tree(admin, at)) {
    const name = one.user(path.replace(/\/$/, ""));
    const { attr, tags, ftype, owner, content } = await one.files.about(admin, name);
    const text = content && (await one.files.read(admin, path)).text;
    found.push([path.slice(at.length), [text, ftype, attr, [...tags].sort(), owner]]);
  }
  return Object.fromEntries(found);
}

describe("a pull", () => {
  test("restores contents, folders, attributes, types and tags, and removes what the version lacks", async () => {
    await one.files.write(admin, place("/a.js"), { text: "a" }, { attr: '{"title":"A"}', tags: ["x", "y"] });
    await one.files.write({ ...admin, user: "maker" }, place("/b"), { text: "b" }, { ftype: "txt" });
    await write("/deep/er/c", "c");
    await one.files.makeFolder(admin, place("/empty"), { tags: ["kept"], attr: '{"icon":"i"}' });
    expect(await push("1")).toBe(3);
    const before = await state();
    await write("/a.js", "changed");
    await one.files.note(admin, place("/b"), { attr: '{"other":1}', tags: ["z"] });
    await one.files.remove(admin, place("/deep"));
    await one.files.remove(admin, place("/empty"));
    await write("/added/below/d", "d");
    expect(await pull("1")).toBe(3);
    expect(await state()).toEqual(before);
    expect(await pull("1")).toBe(0);
    expect(await push("1")).toBe(0);
  });

  test("puts a folder where a file came, and a file where a folder came", async () => {
    await write("/f", "file");
    await write("/d/in", "in");
    await push("1");
    const before = await state();
    await one.files.remove(admin, place("/f"));
    await one.files.remove(admin, place("/d"));
    await write("/f/now/folder", "x");
    await write("/d", "now a file");
    expect(await pull("1")).toBe(4);
    expect(await state()).toEqual(before);
  });

  test("brings back a tree that was removed, and a single file", async () => {
    await write("/dir/x", "x");
    await push("1");
    await one.files.versions.push(admin, place("/dir/x"), "file");
    await write("/dir/x", "y");
    expect(await one.files.versions.pull(admin, place("/dir/x"), "file")).toBe(1);
    expect((await one.files.read(admin, `${at}/dir/x`)).text).toBe("x");
    await one.files.remove(admin, place());
    expect(await pull("1")).toBe(1);
    expect(Object.entries(await state()).map(([path, [text]]) => [path, text])).toEqual([
      ["/dir/", undefined],
      ["/dir/x", "x"],
    ]);
  });

  test("of attributes alone answers 0, and restores them", async () => {
    await write("/a", "a");
    await push("1");
    await one.files.note(admin, place("/a"), { tags: ["t"] });
    expect(await pull("1")).toBe(0);
    expect((await one.files.about(admin, place("/a"))).tags).toEqual([]);
  });
});

/** The engine, counting the marks that are set. */
function counting(marked: { count: number }): Stores {
  return {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const get = (target: BlobStore, name: keyof BlobStore): unknown => {
        if (name === "mark") marked.count += 1;
        return target[name].bind(target);
      };
      return {
        ...store,
        blobs: new Proxy(store.blobs, { get: (target, name) => get(target, name as keyof BlobStore) }),
      };
    },
  };
}

describe("a push", () => {
  test("marks only contents that the version did not have at their path", async () => {
    const marked = { count: 0 };
    await using counted = fileController(counting(marked), { own: "counted" });
    for (const name of ["/1", "/2", "/3"]) await write(name, "same");
    await push("1", counted);
    expect(marked.count).toBe(3);
    await write("/2", "changed");
    await push("1", counted);
    expect(marked.count).toBe(4);
  });

  test("replaces a version as a whole; a second one of the same tree answers 0 and changes nothing", async () => {
    await write("/same", "same");
    await write("/gone", "gone");
    expect(await push("1")).toBe(2);
    const [first] = (await one.files.versions.list(admin, place(), { limit: 1 })).versions;
    expect(await other.files.versions.push({ ...admin, user: "second" }, place(), "1")).toBe(0);
    expect((await one.files.versions.list(admin, place(), { limit: 1 })).versions).toEqual([first]);
    await one.files.remove(admin, place("/gone"));
    await write("/new", "new");
    expect(await other.files.versions.push({ ...admin, user: "second" }, place(), "1")).toBe(2);
    const [second] = (await one.files.versions.list(admin, place(), { limit: 1 })).versions;
    expect(second).toMatchObject({ name: "1", user: "second", entries: 3, bytes: 7 });
    await write("/same", "other");
    await pull("1");
    expect(Object.keys(await state())).toEqual(["/new", "/same"]);
  });

  test("keeps contents that files lose, until the version is deleted", async () => {
    await write("/a", `only in ${at}`);
    const { digest } = await one.files.read(admin, `${at}/a`);
    await push("1");
    await push("2");
    await one.files.remove(admin, place());
    const { blobs } = await engine.tenant("matrix");
    await blobs.sweep(0);
    await one.files.versions.remove(admin, place(), "1");
    await blobs.sweep(0);
    expect(await pull("2")).toBe(1);
    await one.files.versions.remove(admin, place(), "2");
    await one.files.remove(admin, place());
    await blobs.sweep(0);
    expect(await blobs.stat(digest)).toBeUndefined();
    await expect(names()).rejects.toMatchObject({ code: "not_found" });
  });

  test("of a path that is not there is refused, like a version that is not there", async () => {
    await expect(push("1")).rejects.toMatchObject({ code: "not_found" });
    await write("/a", "a");
    await push("release-12");
    await expect(pull("release-13")).rejects.toMatchObject({
      code: "not_found",
      message: `There is no version release-13 of ${at}; did you mean release-12?`,
    });
    await expect(one.files.versions.remove(admin, place(), "none")).rejects.toMatchObject({ code: "not_found" });
    expect(await names()).toEqual(["release-12"]);
  });

  test.each(["", " ", "a/b", "..", ".", "a\\b", "a\nb", "\u202Eb", "\uD800", "x".repeat(129), "C:"])(
    "under the name %j is refused",
    async (version) => {
      await write("/a", "a");
      for (const call of [push, pull]) await expect(call(version)).rejects.toMatchObject({ code: "invalid" });
      expect(await names()).toEqual([]);
    },
  );

  test("under names in any writing is listed by them, page by page", async () => {
    await write("/a", "a");
    const given = ["1.0", "2026-01-01 12:00", "版本", "Ωmega", "%2e%2e", "a?b#c", "__proto__"];
    for (const version of given) await push(version);
    const found: string[] = [];
    let after: string | undefined;
    do {
      const page = await one.files.versions.list(admin, place(), { limit: 2, after });
      found.push(...page.versions.map(({ name }) => name));
      after = page.next;
    } while (after !== undefined);
    expect(found.sort()).toEqual([...given].sort());
    for (const version of given) expect(await pull(version)).toBe(0);
  });

  test("keeps names of files as they are", async () => {
    const hostile = [
      "/__proto__",
      "/a\u2028b",
      '/"quoted"',
      "/ä",
      "/a\u0308",
      "/ space ",
      "/%2e%2e",
      "/a.b/c",
      "/a/b",
      "/a b",
    ];
    for (const name of hostile) await write(name, name);
    await push("1");
    const before = await state();
    for (const name of hostile) await write(name, "changed");
    expect(await pull("1")).toBe(hostile.length);
    expect(await state()).toEqual(before);
  });
});

test("versions of a path are its own: other paths, spaces and tenants have others", async () => {
  await write("/a", "a");
  await one.files.write(admin, { path: `${at}/a`, space: "system" }, { text: "system" });
  await push("1");
  const system = { path: at, space: "system" } as const;
  await expect(one.files.versions.pull(admin, system, "1")).rejects.toMatchObject({ code: "not_found" });
  await expect(one.files.versions.pull(admin, place("/a"), "1")).rejects.toMatchObject({ code: "not_found" });
  const neighbour = { ...admin, tenant: "second" };
  await expect(one.files.versions.pull(neighbour, place(), "1")).rejects.toMatchObject({ code: "not_found" });
  await expect(one.files.versions.list(neighbour, place(), { limit: 1 })).rejects.toMatchObject({ code: "not_found" });
  expect(await one.files.versions.push(admin, system, "1")).toBe(1);
});

test("work on overlapping paths excludes a push and a pull, on whichever controller it runs", async () => {
  for (const name of ["/a/1", "/a/2", "/b/3"]) await write(name, name);
  await push("1");
  const calls = [push("2"), pull("1", other), one.files.copy(admin, place("/a"), `${at}/copied`)];
  const outcomes = await Promise.allSettled(calls);
  const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(3);
  for (const error of refused) expect(error).toMatchObject({ code: "conflict" });
  expect(await keysUnder(engine, "files/open/")).toEqual([]);
});

test("a tree whose list does not fit in memory at once is sorted in runs", async () => {
  // The attributes make the list larger than a run, so that a few entries suffice.
  const attr = JSON.stringify({ filling: "x".repeat(60_000) });
  const files = Array.from({ length: 25 }, (_, n) => `/${(n * 7) % 25}/${n}`);
  await mapLimited(files, 8, (name) => one.files.write(admin, place(name), { text: name }, { attr }));
  expect(await push("1")).toBe(25);
  const before = await state();
  for (const name of files.slice(0, 3)) await one.files.remove(admin, place(name));
  for (const name of files.slice(3, 6)) await write(name, "changed");
  expect(await push("2")).toBe(25 - 3);
  expect(await pull("1")).toBe(6);
  expect(await state()).toEqual(before);
});
