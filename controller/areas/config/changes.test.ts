import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { CONFIG_TXN_MAX_KEYS, CONFIG_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores, TenantStore } from "../../store/engine.ts";
import { decodeStored } from "../../store/format.ts";
import type { KvTxn } from "../../store/kv.ts";
import { ConfigHistory } from "./history.ts";
import {
  admin,
  engine,
  world,
  config,
  base,
  useConfigTransfer,
  imported,
  many,
  valuesUnder,
} from "../../../test/helpers/areas/config-transfer.ts";

useConfigTransfer();

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
