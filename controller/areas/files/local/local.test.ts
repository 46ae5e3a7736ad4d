import { beforeEach, describe, expect, test } from "vitest";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { Principal } from "../../permissions/index.ts";

const admin = testPrincipal();

let engine: TestEngine;
let one: FileController;
let other: FileController;
useFileControllers((opened) => ({ engine, one, other } = opened));

let trees = 0;
let at: string;
const place = (name = "") => one.user(at + name);
const system = (name = "") => ({ path: at + name, space: "system" }) as const;
beforeEach(() => {
  at = `/local${trees++}`;
});

const write = (name: string, text: string) => one.files.write(admin, place(name), { text });
const snapshot = (name = "") => one.files.versions.snapshot(admin, place(name));

async function served(name: string, { as = admin, from = other } = {}): Promise<string> {
  const file = await from.files.versions.local.open(as, "matrix", at + name);
  const parts: Uint8Array[] = [];
  for await (const part of file.bytes) parts.push(part);
  return Buffer.concat(parts).toString();
}

test("every controller serves a snapshot as it was, whatever becomes of the files", async () => {
  await write("/index.html", "first");
  await write("/js/app.js", "app");
  await snapshot();
  await write("/index.html", "second");
  await one.files.remove(admin, place("/js"));
  await (await engine.tenant("matrix")).blobs.sweep(0);
  expect([await served("/index.html"), await served("/js/app.js")]).toEqual(["first", "app"]);
  await snapshot();
  expect(await served("/index.html")).toBe("second");
  await expect(served("/js/app.js")).rejects.toMatchObject({ code: "not_found" });
  await expect(served("/none")).rejects.toMatchObject({ code: "not_found" });
  await expect(served("")).rejects.toMatchObject({ code: "invalid" });
});

test("a snapshot of a path below or above replaces that part only, and the newest one decides", async () => {
  await write("/a/x", "1");
  await write("/b", "1");
  await snapshot();
  await write("/a/x", "2");
  await write("/b", "2");
  await snapshot("/a");
  expect([await served("/a/x"), await served("/b")]).toEqual(["2", "1"]);
  await write("/a/x", "1");
  await write("/b", "1");
  const before = (await keysUnder(engine, "files/snapshots/")).length;
  await snapshot();
  expect([await served("/a/x"), await served("/b")]).toEqual(["1", "1"]);
  expect((await keysUnder(engine, "files/snapshots/")).length).toBe(before - 1);
  await write("/b", "single");
  await snapshot("/b");
  expect(await served("/b")).toBe("single");
});

test("readers see the old tree or the new one while it is replaced", async () => {
  const round = async (text: string) => {
    for (const name of ["/1", "/2", "/3"]) await write(name, text);
    await snapshot();
  };
  await round("0");
  let isOver = false;
  const rounds = (async () => {
    for (let at = 1; at <= 5; at++) await round(String(at));
    isOver = true;
  })();
  let newest = 0;
  while (!isOver) {
    for (const name of ["/1", "/2", "/3"]) {
      const text = Number(await served(name));
      expect(text).toBeGreaterThanOrEqual(newest);
      newest = text;
    }
  }
  await rounds;
  expect(await served("/1")).toBe("5");
});

test("a removed snapshot is served no more, and its contents go", async () => {
  await write("/x", `only in ${at}`);
  const { digest } = await one.files.read(admin, `${at}/x`);
  await snapshot();
  await one.files.remove(admin, place());
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  expect(await served("/x")).toBe(`only in ${at}`);
  await expect(one.files.versions.removeSnapshot(admin, "other", place())).rejects.toMatchObject({ code: "not_found" });
  await one.files.versions.removeSnapshot(admin, "matrix", place());
  await blobs.sweep(0);
  expect(await blobs.stat(digest)).toBeUndefined();
  await expect(served("/x")).rejects.toMatchObject({ code: "not_found" });
  await expect(one.files.versions.removeSnapshot(admin, "matrix", place())).rejects.toMatchObject({
    code: "not_found",
  });
});

describe("who may read a snapshot:", () => {
  const ann: Principal = { ...admin, user: "ann" };

  test("the users' snapshot comes first, then the system's, unless no administrator made it", async () => {
    await one.files.write(admin, system("/x"), { text: "system" });
    await one.files.write(admin, system("/only"), { text: "only" });
    await one.files.versions.snapshot(admin, system());
    await one.files.write(admin, place("/x"), { text: "users" });
    const user: Principal = { ...ann, paths: [at] };
    await one.files.versions.snapshot(user, place());
    expect([await served("/x", { as: user }), await served("/only", { as: user })]).toEqual(["system", "only"]);
    await one.files.versions.snapshot(admin, place());
    expect(await served("/x", { as: user })).toBe("users");
    await expect(one.files.versions.snapshot(user, system())).rejects.toMatchObject({ code: "denied" });
  });

  test("paths that are closed, and rules on files, hold as for the files themselves", async () => {
    await one.files.write(ann, place("/mine"), { text: "mine" });
    await write("/theirs", "theirs");
    await snapshot();
    await expect(served("/mine", { as: { ...ann, paths: ["/elsewhere"] } })).rejects.toMatchObject({ code: "denied" });
    const rules = [{ class: "/matrix/filesystem", access: "write", where: "owner = 'ann'" }] as const;
    const ruled: Principal = { ...ann, data: [{ class: "/", access: "write" }, ...rules] };
    expect(await served("/mine", { as: ruled })).toBe("mine");
    await expect(served("/theirs", { as: ruled })).rejects.toMatchObject({ code: "not_found" });
    await expect(one.files.versions.snapshot(ruled, place("/theirs"))).rejects.toMatchObject({ code: "not_found" });
    const blind = [{ class: "/matrix/filesystem", access: "write", hidden: ["digest"] }] as const;
    const reader: Principal = { ...ann, data: [{ class: "/", access: "write" }, ...blind] };
    await expect(served("/mine", { as: reader })).rejects.toMatchObject({ code: "denied" });
  });

  test("no other tenant, under no keyspace", async () => {
    await write("/x", "x");
    await snapshot();
    const neighbour: Principal = { ...admin, tenant: "second", ospace: "/second" };
    for (const keyspace of ["matrix", "second", "", "..", "/matrix"])
      await expect(one.files.versions.local.open(neighbour, keyspace, `${at}/x`)).rejects.toMatchObject({
        code: "not_found",
      });
  });
});
