import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { CONFIG_HISTORY_MAX_ENTRIES, CONFIG_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { ConfigHistory } from "./history.ts";
import { MASK } from "./rights.ts";
import { ConfigService } from "./service.ts";
import { sealContext } from "./stored.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");
const neighbour = testPrincipal("administrator", "second");

let engine: TestEngine;
let world: ReturnType<typeof configWorld>;
let config: ConfigService;
let history: ConfigHistory;
/** Key prefix of one test. */
let base = "";
let count = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  world = configWorld(engine);
  config = new ConfigService(world);
  history = new ConfigHistory(world);
});
beforeEach(() => {
  base = `/matrix/t${(count += 1)}`;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const set = (key: string, value: string, more: { ttlSeconds?: number; secret?: boolean } = {}, by = admin) =>
  config.set(by, { key, value, ...more });

test("an entry is read as it was last written, and gone when it was deleted", async () => {
  await set(`${base}/a`, "one");
  await set(`${base}/a`, "two 二");
  expect(await config.tree(admin, `${base}/a`)).toEqual({ key: `${base}/a`, value: "two 二" });
  expect(await config.remove(admin, `${base}/a`)).toBe(1);
  await expect(config.tree(admin, `${base}/a`)).rejects.toMatchObject({ code: "not_found" });
  await expect(config.remove(admin, `${base}/a`)).rejects.toMatchObject({ code: "not_found" });
});

test("a tree has directories in the order of names, and a key may be an entry and a directory", async () => {
  for (const key of ["b", "a/x", "a-b", "a/x/deep", "a"]) await set(`${base}/${key}`, key);
  expect(await config.tree(admin, `${base}/`)).toEqual({
    key: base,
    dir: true,
    nodes: [
      {
        key: `${base}/a`,
        value: "a",
        dir: true,
        nodes: [
          { key: `${base}/a/x`, value: "a/x", dir: true, nodes: [{ key: `${base}/a/x/deep`, value: "a/x/deep" }] },
        ],
      },
      { key: `${base}/a-b`, value: "a-b" },
      { key: `${base}/b`, value: "b" },
    ],
  });
  expect(await config.tree(neighbour, "/")).toEqual({
    key: "/",
    dir: true,
    nodes: [{ key: "/second", dir: true, nodes: [] }],
  });
  expect(await config.tree(neighbour, "/second")).toEqual({ key: "/second", dir: true, nodes: [] });
});

test("a directory is deleted with all below it, and with nothing beside it", async () => {
  for (const key of ["d", "d/one", "d/two/three", "d-other", "dd"]) await set(`${base}/${key}`, key);
  expect(await config.remove(admin, `${base}/d/`)).toBe(3);
  const { records } = await config.list(admin, { key: base, limit: 100 });
  expect(records.map(({ key }) => key)).toEqual([`${base}/d-other`, `${base}/dd`]);
  for (const whole of ["/", "/matrix", "/matrix/"])
    await expect(config.remove(admin, whole)).rejects.toMatchObject({ code: "invalid" });
});

test("versions have their author and time; they go on through deletes and are set back to", async () => {
  const key = `${base}/versioned`;
  const beganMs = Date.now();
  await set(key, "one\ntwo\n");
  await set(key, "one\nthree\n", {}, { ...admin, user: "ann" });
  await config.remove(admin, key);
  await set(key, "four\n");
  const versions = await history.history(admin, key);
  expect(versions).toMatchObject([
    { version: 4, author: "administrator", value: "four\n" },
    { version: 3, author: "administrator", deleted: true },
    { version: 2, author: "ann", value: "one\nthree\n" },
    { version: 1, author: "administrator", value: "one\ntwo\n" },
  ]);
  for (const { changed } of versions) expect(changed).toBeGreaterThanOrEqual(beganMs - 1);
  const { patch } = await history.diff(admin, { key, from: 1, to: 2 });
  expect(patch).toContain("-two\n+three\n");
  expect((await history.diff(admin, { key, from: 0, to: 1 })).patch).toContain("+one\n+two\n");
  await history.rollback(admin, key, 2);
  expect(await config.tree(admin, key)).toMatchObject({ value: "one\nthree\n" });
  await history.rollback(admin, key, 3);
  await expect(config.tree(admin, key)).rejects.toMatchObject({ code: "not_found" });
  expect(await history.history(admin, key)).toMatchObject([
    { version: 6, deleted: true },
    { version: 5 },
    {},
    {},
    {},
    {},
  ]);
  await expect(history.rollback(admin, key, 99)).rejects.toMatchObject({ code: "not_found" });
});

test("of a key the latest versions are kept, and no more, however often it changes", async () => {
  const key = `${base}/aged`;
  const changes = CONFIG_HISTORY_MAX_ENTRIES * 2 + 7;
  for (let n = 1; n <= changes; n += 1) await set(key, `v${n}`);
  const versions = await history.history(admin, key);
  expect(versions.map(({ version }) => version)).toEqual(
    Array.from({ length: CONFIG_HISTORY_MAX_ENTRIES }, (_, at) => changes - at),
  );
  expect(versions[0]?.value).toBe(`v${changes}`);
  const { kv } = await engine.tenant("matrix");
  expect((await kv.list(`config-history${key}`)).entries.length).toBe(CONFIG_HISTORY_MAX_ENTRIES);
});

test("a secret is sealed, and shown nowhere; its mask keeps it", async () => {
  const key = `${base}/password`;
  const { kv } = await engine.tenant("matrix");
  const sealed = async (): Promise<string> => {
    const entry = await world.entries.get("matrix", key);
    return world.secrets.open(entry?.sealed ?? "", sealContext("matrix", key));
  };
  await set(key, "hunter2", { secret: true });
  expect(await config.tree(admin, key)).toEqual({ key, value: MASK, secret: true });
  await set(key, MASK);
  expect(await sealed()).toBe("hunter2");
  await set(key, "hunter3");
  expect(await sealed()).toBe("hunter3");
  await set(key, MASK, { secret: true });
  await history.rollback(admin, key, 1);
  expect(await sealed()).toBe("hunter2");
  expect(JSON.stringify(await history.history(admin, key))).not.toMatch(/hunter/);
  expect((await history.diff(admin, { key, from: 1, to: 3 })).patch).not.toMatch(/hunter/);
  for (const { value } of (await kv.list("config")).entries)
    expect(Buffer.from(value).toString()).not.toContain("hunter");
  for (const [other, secret] of [
    [key, false],
    [`${base}/none`, true],
  ] as const)
    await expect(set(other, MASK, { secret })).rejects.toMatchObject({ code: "invalid" });
  await set(key, "readable", { secret: false });
  expect(await config.tree(admin, key)).toEqual({ key, value: "readable" });
});

test("a ttl counts in seconds, is told with what is left of it, and ends with the next write without one", async () => {
  const key = `${base}/short`;
  await set(key, "x", { ttlSeconds: 100 });
  const { ttl } = await config.tree(admin, key);
  expect(ttl).toBeGreaterThan(90);
  expect(ttl).toBeLessThanOrEqual(100);
  for (const ttlSeconds of [0, -1]) {
    await set(key, "x", { ttlSeconds });
    expect(await config.tree(admin, key)).toEqual({ key, value: "x" });
  }
  for (const ttlSeconds of [-2, 1e15])
    await expect(set(key, "x", { ttlSeconds })).rejects.toMatchObject({ code: "invalid" });
});

test("pages follow each other in the order of keys, without a gap and without a key twice", async () => {
  const keys = Array.from({ length: 23 }, (_, at) => `${base}/${String(at).padStart(2, "0")}/v`);
  for (const key of keys) await set(key, "v");
  await set(base, "own");
  const found: string[] = [];
  let after: string | undefined;
  do {
    const { records, next } = await config.list(admin, { key: base, limit: 5, after });
    expect(records.length).toBeLessThanOrEqual(6);
    found.push(...records.map(({ key }) => key));
    after = next;
  } while (after !== undefined);
  expect(found).toEqual([base, ...keys]);
});

test("pages depend on no entry that their reader does not see", async () => {
  const keys = ["a", "b", "hidden", "hidden2", "m", "z-hidden"].map((name) => `${base}/${name}`);
  for (const key of keys) await set(key, "v");
  const narrowed: Principal = {
    ...admin,
    data: [{ class: "/", access: "read", where: `key in ('${base}/a', '${base}/b', '${base}/m')` }],
  };
  const pages: unknown[] = [];
  let after: string | undefined;
  do {
    const { records, next } = await config.list(narrowed, { key: base, limit: 1, after });
    pages.push([records.map(({ key }) => key), next]);
    after = next;
  } while (after !== undefined);
  expect(pages).toEqual([
    [[`${base}/a`], `${base}/a`],
    [[`${base}/b`], `${base}/b`],
    [[`${base}/m`], undefined],
  ]);
  expect(await config.list(narrowed, { key: base, limit: 3 })).not.toHaveProperty("next");
});

test("keys that are none are refused", async () => {
  const keys = [
    "",
    "/",
    "/matrix",
    "relative",
    "matrix/a",
    "/other/a",
    "/matrix/../other/a",
    "/matrix/a/../../second/x",
    "/matrixother/a",
    "/matrix/a\u0000b",
    "/matrix/a\\b",
    "/matrix/\ud800",
    `/matrix/${"x".repeat(300)}`,
    `/matrix${"/x".repeat(40)}`,
    `/matrix${`/${"x".repeat(200)}`.repeat(5)}`,
  ];
  for (const key of keys)
    await expect(set(key, "x"), key).rejects.toMatchObject({
      code: expect.stringMatching(/invalid|too_large/) as string,
    });
  expect((await config.tree(neighbour, "/")).nodes).toEqual([{ key: "/second", dir: true, nodes: [] }]);
});

test("the largest value passes, also sealed and of signs that are escaped; a larger one is refused by its limit", async () => {
  const key = `${base}/large`;
  const largest = "x".repeat(CONFIG_VALUE_MAX_BYTES);
  await set(key, largest);
  await set(key, largest, { secret: true });
  await set(`${base}/quotes`, '"'.repeat(CONFIG_VALUE_MAX_BYTES - 200));
  await expect(set(key, `${largest}x`)).rejects.toMatchObject({ code: "too_large" });
  await expect(set(key, "\u0001".repeat(CONFIG_VALUE_MAX_BYTES), { secret: false })).rejects.toMatchObject({
    code: "too_large",
  });
});

test("a neighbour's configuration is another one", async () => {
  await set(`${base}/mine`, "matrix");
  await expect(config.tree(neighbour, `${base}/mine`)).rejects.toMatchObject({ code: "not_found" });
  await expect(config.set(neighbour, { key: `${base}/mine`, value: "x" })).rejects.toMatchObject({ code: "invalid" });
  await expect(config.remove(neighbour, `${base}/mine`)).rejects.toMatchObject({ code: "invalid" });
});

test("few rights: reading alone writes nothing, and without a data rule nothing is there", async () => {
  const key = `${base}/kept`;
  await set(key, "kept");
  for (const work of [
    () => set(key, "x", {}, viewer),
    () => config.remove(viewer, key),
    () => history.rollback(viewer, key, 1),
    () => config.set({ ...admin, data: [{ class: "/", access: "read" }] }, { key, value: "x" }),
  ])
    await expect(work()).rejects.toMatchObject({ code: "denied" });
  expect(await config.tree(viewer, key)).toEqual({ key, value: "kept" });
  const blind: Principal = { ...viewer, data: [] };
  await expect(config.tree(blind, key)).rejects.toMatchObject({ code: "not_found" });
  await expect(history.history(blind, key)).rejects.toMatchObject({ code: "not_found" });
  const { records } = await config.list(blind, { key: base, limit: 10 });
  expect(records).toEqual([]);
  await expect(config.tree({ ...viewer, grants: [] }, key)).rejects.toMatchObject({ code: "denied" });
});

test("a row condition takes entries away from every way to them, and hidden columns are left out", async () => {
  const narrowed: Principal = {
    ...admin,
    data: [{ class: "/", access: "write", where: `parent='${base}/own'`, hidden: ["author"] }],
  };
  await set(`${base}/own/a`, "a");
  await set(`${base}/other`, "secret of others");
  expect(await config.tree(narrowed, base)).toEqual({
    key: base,
    dir: true,
    nodes: [{ key: `${base}/own`, dir: true, nodes: [{ key: `${base}/own/a`, value: "a" }] }],
  });
  for (const work of [
    () => config.set(narrowed, { key: `${base}/other`, value: "x" }),
    () => config.set(narrowed, { key: `${base}/new`, value: "x" }),
  ])
    await expect(work()).rejects.toMatchObject({ code: "denied" });
  await expect(history.history(narrowed, `${base}/other`)).rejects.toMatchObject({ code: "not_found" });
  expect(await config.remove(narrowed, base)).toBe(1);
  expect(await config.tree(admin, `${base}/other`)).toMatchObject({ value: "secret of others" });
  await config.set(narrowed, { key: `${base}/own/a`, value: "again" });
  expect((await history.history(narrowed, `${base}/own/a`))[0]).not.toHaveProperty("author");
  const otherCase: Principal = { ...admin, data: [{ class: "/", access: "write", hidden: ["Author"] }] };
  expect((await history.history(otherCase, `${base}/own/a`))[0]).not.toHaveProperty("author");
  for (const name of ["key", "Key"]) {
    const keyless: Principal = { ...admin, data: [{ class: "/", access: "write", hidden: [name] }] };
    await expect(config.tree(keyless, base)).rejects.toMatchObject({ code: "denied" });
  }
});

test("below /rules nothing is stored or shown that the rules' own interface refuses", async () => {
  const key = `/matrix/rules/${base.slice(8)}`;
  await expect(set(key, "--parser=xml\n")).rejects.toMatchObject({ code: "invalid" });
  await expect(set(key, "-- x\n", { secret: true })).rejects.toMatchObject({ code: "invalid" });
  await expect(config.tree(admin, key)).rejects.toMatchObject({ code: "not_found" });
  expect((await set(key, "--class=/matrix/hidden\n--parser=csv\n--nonsense=1\n")).warnings).toEqual([
    "There is no class /matrix/hidden now. Until there is, records of the rule are errors.",
    "Line 3: --nonsense is no option and was ignored.",
  ]);
  const others: Principal = { ...admin, data: [...admin.data, { class: "/matrix/hidden", access: "none" }] };
  await expect(config.tree(others, key)).rejects.toMatchObject({ code: "not_found" });
  await expect(config.set(others, { key, value: "-- mine\n" })).rejects.toMatchObject({ code: "denied" });
  const withoutRules: Principal = { ...admin, grants: ["config:read", "config:write"] };
  await expect(config.set(withoutRules, { key, value: "-- mine\n" })).rejects.toMatchObject({ code: "denied" });
  await expect(config.remove(withoutRules, key)).rejects.toMatchObject({ code: "denied" });
  await expect(config.tree(withoutRules, key)).rejects.toMatchObject({ code: "not_found" });
  await world.rules.put({ ...admin, user: "ann" }, key, "-- by its own interface\n");
  expect(await history.history(admin, key)).toMatchObject([{ version: 2, author: "ann" }, { version: 1 }]);
});

test("an entry from before there were versions is read, and its first version is that of the next write", async () => {
  const key = `${base}/old`;
  const { kv } = await engine.tenant("matrix");
  await kv.put(`config${key}`, Buffer.from(`\u0001"from before"`));
  expect(await config.tree(admin, key)).toEqual({ key, value: "from before" });
  await set(key, "now");
  expect(await history.history(admin, key)).toMatchObject([{ version: 1, value: "now" }]);
});
