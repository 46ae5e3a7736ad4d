import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  CONFIG_FAULTS_MAX,
  CONFIG_IMPORT_MAX_BYTES,
  CONFIG_TXN_MAX_KEYS,
  CONFIG_VALUE_MAX_BYTES,
} from "../../../common/limits.ts";
import { uploadFolder } from "../../../test/helpers/runs/archives.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores, TenantStore } from "../../store/engine.ts";
import { decodeStored } from "../../store/format.ts";
import type { KvTxn } from "../../store/kv.ts";
import type { Principal } from "../permissions/index.ts";
import { fileOf } from "./file.ts";
import { ConfigHistory } from "./history.ts";
import { ConfigImport } from "./import.ts";
import { MASK } from "./rights.ts";
import { ConfigService } from "./service.ts";
import { sealContext } from "./stored.ts";

const admin = testPrincipal();

let engine: TestEngine;
let uploads: Awaited<ReturnType<typeof uploadFolder>>;
let world: ReturnType<typeof configWorld>;
let config: ConfigService;
let base = "";
let count = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  uploads = await uploadFolder();
  world = configWorld(engine);
  config = new ConfigService(world);
});
beforeEach(() => {
  base = `/matrix/i${(count += 1)}`;
});
afterAll(async () => {
  await uploads.remove();
  await world[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const signal = new AbortController().signal;

async function exported(key: string, relative = false, by: Principal = admin): Promise<string> {
  let text = "";
  for await (const piece of fileOf(await config.exported(by, key, signal), { key, relative })) text += piece;
  return text;
}

interface Options {
  readonly key?: string;
  readonly plan?: boolean;
  readonly by?: Principal;
  readonly at?: ReturnType<typeof configWorld>;
}

async function imported(file: unknown, { key, plan = false, by = admin, at = world }: Options = {}) {
  const text = typeof file === "string" ? file : JSON.stringify(file);
  const { path } = await uploads.upload("config.json", Buffer.from(text));
  return new ConfigImport(at).run(by, { path, size: Buffer.byteLength(text), key, plan });
}

const many = (n: number, value = "v") =>
  Array.from({ length: n }, (_, at) => ({ key: `${base}/${String(at).padStart(6, "0")}`, value: `${value}${at}` }));

async function valuesUnder(key: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { value = "" } of await config.exported(admin, key, signal)) found.push(value);
  return found;
}

test("what is exported, imported and exported again is the same file, at its place and elsewhere", async () => {
  for (const [key, value] of [
    ["a", "plain"],
    ["a/b", 'quotes " and \\ and 二\nlines'],
    ["a-b", ""],
    ["z/ttl", "ends"],
    ["z/secret", "hunter2"],
  ] as const)
    await config.set(admin, {
      key: `${base}/${key}`,
      value,
      ...(key === "z/ttl" && { ttlSeconds: 1_000 }),
      ...(key === "z/secret" && { secret: true }),
    });
  const whole = await exported(base);
  expect(JSON.parse(whole)).toMatchObject([
    { key: `${base}/a` },
    { key: `${base}/a-b` },
    { key: `${base}/a/b` },
    { key: `${base}/z/secret`, value: MASK, secret: true },
    { key: `${base}/z/ttl`, expires: expect.stringMatching(/Z$/) as string },
  ]);
  expect(await imported(whole)).toMatchObject({ total: 5, unchanged: 5, created: 0, updated: 0 });
  await config.set(admin, { key: `${base}/a`, value: "changed" });
  await config.remove(admin, `${base}/a/b`);
  expect(await imported(whole)).toMatchObject({ created: 1, updated: 1, unchanged: 3 });
  expect(await exported(base)).toBe(whole);
  const secret = await world.entries.get("matrix", `${base}/z/secret`);
  expect(world.secrets.open(secret?.sealed ?? "", sealContext("matrix", `${base}/z/secret`))).toBe("hunter2");

  const relative = await exported(base, true);
  const { skipped, warnings } = await imported(relative, { key: `${base}-copy` });
  expect([skipped, warnings]).toEqual([
    1,
    [expect.stringContaining("z/secret is a secret that the file does not hold")],
  ]);
  const kept = JSON.parse(relative) as readonly { secret?: boolean }[];
  expect(JSON.parse(await exported(`${base}-copy`, true))).toEqual(kept.filter(({ secret: isSecret }) => !isSecret));
  expect(await exported("/matrix/nothing").catch((error: unknown) => error)).toMatchObject({ code: "not_found" });
});

test("nodes, as a client read them from the tree, are imported too", async () => {
  await config.set(admin, { key: `${base}/from/a`, value: "1" });
  await config.set(admin, { key: `${base}/from/a/b`, value: "2", ttlSeconds: 500 });
  const tree = await config.tree(admin, `${base}/from`);
  await config.remove(admin, `${base}/from`);
  expect(await imported(tree)).toMatchObject({ created: 2 });
  expect(await config.tree(admin, `${base}/from`)).toEqual(tree);
});

test("entries that do not lie below the given key are placed below it, in place of their longest common folder", async () => {
  const [from, to] = [`${base}/from`, `${base}/to`];
  const placed = async (keys: readonly string[]) => {
    const file = keys.map((key, at) => ({ key, value: String(at) }));
    const { changes = [] } = await imported(file, { key: to, plan: true });
    return changes.map(({ key }) => key);
  };
  for (const [keys, expected] of [
    [[`${from}/a/b`], [`${to}/b`]],
    [
      [`${from}/a/b`, `${from}/a/c/d`],
      [`${to}/b`, `${to}/c/d`],
    ],
    // An entry that is also a folder is not its own folder.
    [
      [`${from}/a`, `${from}/a/b`],
      [`${to}/a`, `${to}/a/b`],
    ],
    // A common beginning of two names is no common folder.
    [
      [`${from}/ab/x`, `${from}/abc/x`],
      [`${to}/ab/x`, `${to}/abc/x`],
    ],
    [[`${to}-other/x`], [`${to}/x`]],
    // Keys of other tenants, with no common folder.
    [
      ["/ns/etc/x", "/other/y"],
      [`${to}/ns/etc/x`, `${to}/other/y`],
    ],
    [["//ns//etc/./x/"], [`${to}/x`]],
    // Relative keys, and keys at and below the target, stay where they are.
    [
      [to, `${to}/in`, `${from}/a/out`, "relative"],
      [to, `${to}/in`, `${to}/out`, `${to}/relative`],
    ],
  ] as const)
    expect(await placed(keys), keys.join()).toEqual(expected);
  await expect(placed([`${from}/a/x`, `${to}/x`])).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining(`entry 2: ${to}/x stands there twice`) as string,
  });
  await expect(placed(["/"])).rejects.toMatchObject({ code: "invalid" });

  const tree = {
    key: from,
    dir: true,
    nodes: [{ key: `${from}/a`, value: "1", nodes: [{ key: `${from}/a/b`, value: "2" }] }],
  };
  expect(await imported(tree, { key: to })).toMatchObject({ created: 2 });
  expect(JSON.parse(await exported(base))).toEqual([
    { key: `${to}/a`, value: "1" },
    { key: `${to}/a/b`, value: "2" },
  ]);
  expect(await imported(await exported(to), { key: to })).toMatchObject({ unchanged: 2, created: 0 });
});

test("a plan tells what would be done and does nothing", async () => {
  await config.set(admin, { key: `${base}/there`, value: "old" });
  const file = [
    { key: `${base}/new`, value: "n" },
    { key: `${base}/there`, value: "new" },
    { key: `${base}/gone`, value: "x", expires: "2001-01-01T00:00:00Z" },
  ];
  const report = { total: 3, created: 1, updated: 1, skipped: 1, unchanged: 0 };
  expect(await imported(file, { plan: true })).toMatchObject({
    ...report,
    changes: [
      { key: `${base}/new`, action: "create" },
      { key: `${base}/there`, action: "update" },
      { key: `${base}/gone`, action: "skip" },
    ],
  });
  expect(await valuesUnder(base)).toEqual(["old"]);
  expect(await imported(file)).toMatchObject(report);
  expect(await valuesUnder(base)).toEqual(["n", "new"]);
});

test("an import with a fault anywhere imports nothing, and tells the faults together", async () => {
  const good = { key: `${base}/good`, value: "x" };
  const faulty: readonly (readonly [unknown, RegExp])[] = [
    ["no json", /Not valid JSON/],
    ["{", /Not valid JSON/],
    ["5", /JSON list/],
    [[good, 5], /JSON list/],
    [[good, { value: "x" }, { key: `${base}/b` }], /entry 2: It has no key[^]*entry 3: .* has no value/],
    [[good, good], /stands there twice/],
    [[good, { key: "relative", value: "x" }], /no key is given/],
    [[good, { key: "/second/x", value: "x" }], /begins with \/matrix\//],
    [[good, { key: `${base}/../../../x`, value: "x" }], /leaves its folder/],
    [[good, { key: `${base}/t`, value: "x", ttl: "soon" }], /whole number of seconds/],
    [[good, { key: `${base}/t`, value: "x", expires: "soon" }], /ISO 8601/],
    [[good, { key: `${base}/t`, value: "x", secret: "yes" }], /neither true nor false/],
    [[good, { key: `${base}/t`, value: { a: 1 } }], /has no value/],
    [[good, { key: `${base}/t`, value: "x".repeat(CONFIG_VALUE_MAX_BYTES + 1) }], /at most/],
    [[good, { key: "/matrix/rules/imported", value: "--parser=xml\n" }], /imported: .*parser/],
    [`${"[".repeat(200)}${"]".repeat(200)}`, /nested deeper/],
  ];
  for (const [file, message] of faulty)
    await expect(imported(file), String(message)).rejects.toMatchObject({
      message: expect.stringMatching(message) as string,
    });
  await expect(imported([good], { by: testPrincipal("viewer") })).rejects.toMatchObject({ code: "denied" });
  await expect(config.tree(admin, base)).rejects.toMatchObject({ code: "not_found" });
  const allFaulty = await imported(many(1_000).map(({ key }) => ({ key }))).catch(
    (error: unknown) => error as AppError,
  );
  expect(String(allFaulty).split("\n").length).toBe(CONFIG_FAULTS_MAX + 1);
  const { path } = await uploads.upload("huge.json", Buffer.from("[]"));
  const huge = { path, size: CONFIG_IMPORT_MAX_BYTES + 1, plan: false };
  await expect(new ConfigImport(world).run(admin, huge)).rejects.toMatchObject({ code: "too_large" });
});

test("a member that would reach a prototype does no harm", async () => {
  await imported(
    `[{"key":"${base}/__proto__","value":"a"},{"key":"${base}/b","value":"b","__proto__":{"secret":true}}]`,
  );
  expect(await config.tree(admin, base)).toEqual({
    key: base,
    dir: true,
    nodes: [
      { key: `${base}/__proto__`, value: "a" },
      { key: `${base}/b`, value: "b" },
    ],
  });
});

test("what takes more than one transaction is imported and deleted whole, with a version of each key and no trace else", async () => {
  const file = many(CONFIG_TXN_MAX_KEYS * 4 + 3);
  expect(await imported(file)).toMatchObject({ created: file.length });
  expect(await valuesUnder(base)).toEqual(file.map(({ value }) => value));
  const large = "x".repeat(CONFIG_VALUE_MAX_BYTES);
  await imported(
    [0, 1, 2, 3, 4].map((at) => ({ key: `${base}-large/${at}`, value: `${at}${large.slice(1)}`, secret: true })),
  );
  expect(await config.remove(admin, `${base}-large`)).toBe(5);
  expect(await config.remove(admin, base)).toBe(file.length);
  const versions = await new ConfigHistory(world).history(admin, file.at(-1)?.key ?? "");
  expect(versions).toMatchObject([{ version: 2, deleted: true }, { version: 1 }]);
  await expectNothingOpen();
});

async function expectNothingOpen(): Promise<void> {
  const { kv } = await engine.tenant("matrix");
  expect((await kv.list("config-change/")).entries).toEqual([]);
}

/** True if the transaction writes a part of a recorded change. */
function isPart({ then }: KvTxn): boolean {
  return then.some(
    (one) =>
      one.kind === "put" && one.key.startsWith("config-change/") && decodeStored<{ done: number }>(one.value).done > 0,
  );
}

/** Stores of a controller that dies before it writes its n-th part. */
function dyingStores(stores: Stores, beforeTxn: number, isAnswerLost: boolean): Stores {
  let made = 0;
  const dead = (): AppError => new AppError("cancelled", "dead");
  const txn = async (store: TenantStore, request: KvTxn) => {
    made += isPart(request) ? 1 : 0;
    if (made < beforeTxn) return store.kv.txn(request);
    if (made === beforeTxn && isAnswerLost) await store.kv.txn(request);
    throw dead();
  };
  return {
    system: () => stores.system(),
    async tenant(name) {
      const store = await stores.tenant(name);
      return { ...store, kv: wrappedKv(store.kv, { txn: (request) => txn(store, request) }) };
    },
  };
}

test.each([false, true])(
  "a controller that dies between two transactions (answer lost: %s): another goes on, and each key is written once",
  async (isAnswerLost) => {
    const file = many(CONFIG_TXN_MAX_KEYS * 4);
    const dying = configWorld(dyingStores(engine, 3, isAnswerLost), { controllers: { own: "dying", has: () => true } });
    await expect(imported(file, { at: dying })).rejects.toMatchObject({ code: "deadline" });
    const done = (await valuesUnder(base)).length;
    expect(done).toBe(CONFIG_TXN_MAX_KEYS * (isAnswerLost ? 3 : 2));
    await config.set(admin, { key: file[0]?.key ?? "", value: "later" });

    const looking = configWorld(engine, { controllers: { own: "looking", has: () => true } });
    await looking.changes.maintain("matrix");
    await looking.changes.settled();
    expect((await valuesUnder(base)).length).toBe(done);

    const alive = ["one", "two"].map((own) =>
      configWorld(engine, { controllers: { own, has: (id) => id !== "dying" } }),
    );
    await Promise.all(alive.map(({ changes }) => changes.maintain("matrix")));
    await Promise.all(alive.map(({ changes }) => changes.settled()));
    expect(await valuesUnder(base)).toEqual(["later", ...file.slice(1).map(({ value }) => value)]);
    const history = new ConfigHistory(world);
    for (const { key } of file.slice(1)) expect((await history.history(admin, key)).length, key).toBe(1);
    await expectNothingOpen();
    for (const one of [dying, looking, ...alive]) await one[Symbol.asyncDispose]();
    prove("config-change-whole", { engine: engine.kind, keys: file.length, cases: ["dies between transactions"] });
  },
);

/** Stores that call `instead` for the n-th part written through them. */
function interrupted(
  n: number,
  instead: (txn: () => ReturnType<TenantStore["kv"]["txn"]>) => Promise<never> | ReturnType<TenantStore["kv"]["txn"]>,
): Stores {
  let made = 0;
  return {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      const txn = (request: KvTxn) =>
        isPart(request) && (made += 1) === n ? instead(() => store.kv.txn(request)) : store.kv.txn(request);
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
}

test("a change of many keys gives way while it is planned, and while its content is encoded and decoded", async () => {
  const pausesOf = async (plan: boolean): Promise<number> => {
    using pauses = new CountedPauses();
    await imported(many(2_000, "v".repeat(200)), { plan });
    return pauses.count;
  };
  const planning = await pausesOf(true);
  // 31 pauses while it looks up the file's keys, 31 for its report.
  expect(planning).toBeGreaterThan(245);
  // 63 pauses of the encoder, 11 of the decoder.
  expect((await pausesOf(false)) - planning).toBeGreaterThan(70);
});

test("a part whose answer is lost is written once, and the import goes on", async () => {
  const file = many(CONFIG_TXN_MAX_KEYS * 3);
  const stores = interrupted(2, async (txn) => {
    await txn();
    throw new AppError("unknown_outcome", "lost");
  });
  await using losing = configWorld(stores);
  expect(await imported(file, { at: losing })).toMatchObject({ created: file.length });
  const history = new ConfigHistory(world);
  for (const { key } of file) expect((await history.history(admin, key)).length, key).toBe(1);
  await expectNothingOpen();
});

test("what a controller works on it does not take up a second time", async () => {
  const file = many(CONFIG_TXN_MAX_KEYS * 3);
  const stores = interrupted(2, async (txn) => {
    await same.changes.maintain("matrix");
    return txn();
  });
  await using same = configWorld(stores);
  expect(await imported(file, { at: same })).toMatchObject({ created: file.length });
  await expectNothingOpen();
});

test("a change that is over does not begin again with a controller that wakes", async () => {
  const file = many(CONFIG_TXN_MAX_KEYS * 3);
  // The second part has nothing left to write; the controller that continues does not touch its keys.
  const stores = interrupted(1, async (txn) => {
    for (const { key, value } of file.slice(CONFIG_TXN_MAX_KEYS)) await config.set(admin, { key, value });
    return txn();
  });
  const other = configWorld(engine, { controllers: { own: "other", has: (id) => id !== "slow" } });
  let made = 0;
  const asleep: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await stores.tenant(name);
      const txn = async (request: KvTxn) => {
        if (isPart(request) && (made += 1) === 2) {
          await other.changes.maintain("matrix");
          await other.changes.settled();
        }
        return store.kv.txn(request);
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  await using slow = configWorld(asleep, { controllers: { own: "slow", has: () => true } });
  await expect(imported(file, { at: slow })).rejects.toMatchObject({ code: "deadline" });
  expect(await valuesUnder(base)).toEqual(file.map(({ value }) => value));
  await expectNothingOpen();
  await other[Symbol.asyncDispose]();
});

test("a controller that wakes after another went on writes nothing any more", async () => {
  const file = many(CONFIG_TXN_MAX_KEYS * 3);
  let wake = (): void => undefined;
  const asleep = new Promise<void>((resolve) => (wake = resolve));
  let stopped = (): void => undefined;
  const sleeping = new Promise<void>((resolve) => (stopped = resolve));
  let made = 0;
  const stores: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      const txn = async (request: KvTxn) => {
        if (isPart(request) && (made += 1) === 2) {
          stopped();
          await asleep;
        }
        return store.kv.txn(request);
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  const slow = configWorld(stores, { controllers: { own: "slow", has: () => true } });
  const importing = imported(file, { at: slow });
  await sleeping;
  const other = configWorld(engine, { controllers: { own: "other", has: (id) => id !== "slow" } });
  await other.changes.maintain("matrix");
  await other.changes.settled();
  await config.set(admin, { key: file.at(-1)?.key ?? "", value: "later" });
  wake();
  await expect(importing).rejects.toMatchObject({ code: "deadline" });
  expect((await valuesUnder(base)).at(-1)).toBe("later");
  const history = new ConfigHistory(world);
  for (const { key } of file.slice(0, -1)) expect((await history.history(admin, key)).length, key).toBe(1);
  await expectNothingOpen();
  for (const one of [slow, other]) await one[Symbol.asyncDispose]();
});
