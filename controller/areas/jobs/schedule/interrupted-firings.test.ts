import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import type { KvTxn } from "../../../store/kv.ts";
import {
  admin,
  MINUTE_MS,
  engine,
  clock,
  jobs,
  sent,
  present,
  name,
  useFirings,
  type Controller,
  controller,
  define,
  rows,
  told,
  fireAll,
  over,
} from "../../../../test/helpers/jobs/firing-world.ts";

useFirings();

/** The stores of a controller, with `look` called before each of its transactions. */
const before = (look: (txn: KvTxn) => Promise<void>): Stores => ({
  system: () => engine.system(),
  tenant: async (tenant) => {
    const store = await engine.tenant(tenant);
    const txn: typeof store.kv.txn = async (request) => {
      await look(request);
      return store.kv.txn(request);
    };
    return { ...store, kv: wrappedKv(store.kv, { txn }) };
  },
});

test("who read what is due and wakes after another one fired it fires nothing", async () => {
  await define("every 1m;overlap=allow");
  const other = controller("b");
  let slept = false;
  const late = controller(
    "a",
    before(async () => {
      if (slept) return;
      slept = true;
      await fireAll(other);
      await over();
    }),
  );
  clock.advance(MINUTE_MS);
  await late.attend();
  expect(slept).toBe(true);
  await over();
  expect(await told()).toEqual(["1 ok"]);
  expect(sent).toHaveLength(1);
});

test("a definition that changes between the look and the firing is not fired as it was", async () => {
  await define("every 1m");
  let changed = false;
  const one = controller(
    "a",
    before(async () => {
      if (changed) return;
      changed = true;
      await jobs.edit(admin, { name, host: ["h2"] });
    }),
  );
  clock.advance(MINUTE_MS);
  await one.attend();
  expect(sent).toEqual([]);
  await fireAll(one);
  await over();
  expect(sent.map(({ host }) => host)).toEqual(["h2"]);
});

test.each([0, 1, 2, 3])(
  "a controller that dies after %i of the transactions that open 100 hosts leaves them to another, and each runs once",
  async (portions) => {
    const hosts = Array.from({ length: 100 }, (_, at) => `h${at}`);
    await define("every 1m", { host: hosts, timeout: 3_600 });
    let opened = -1;
    const dying = controller(
      "a",
      before(({ then }) => {
        if (!then.some(({ key }) => key.startsWith("jobs/execution/"))) return Promise.resolve();
        opened += 1;
        return opened > portions ? Promise.reject(new AppError("internal", "it died")) : Promise.resolve();
      }),
    );
    const began = clock.nowMs();
    clock.advance(MINUTE_MS);
    await dying.attend();
    // No controller carries out the runs that it had opened, either.
    await expect.poll(() => opened > portions || sent.length === 100, { timeout: 30_000 }).toBe(true);
    await dying.runs.close();
    present.delete("a");
    const next = controller("b");
    await expect
      .poll(
        async () => {
          clock.advance(1_000);
          await next.runs.maintain("matrix");
          return (await rows()).filter(({ status }) => status === "ok").length;
        },
        { timeout: 60_000 },
      )
      .toBe(100);
    // An execution checks from time to time if hosts that were taken over have ended.
    await over(() => clock.advance(1_000));
    expect(clock.nowMs()).toBeGreaterThan(began);
    expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(100);
    expect(new Set((await rows()).map(({ runid }) => runid)).size).toBe(1);
  },
);

test("a run on an only host is on record with the write that decides it, and who dies then leaves it to another", async () => {
  await define("every 1m", { timeout: 3_600 });
  const written: (readonly string[])[] = [];
  const dying = controller(
    "a",
    before(({ then }) => {
      written.push(then.map(({ key }) => key.split("/", 2).join("/")));
      return written.length > 1 ? Promise.reject(new AppError("internal", "it died")) : Promise.resolve();
    }),
  );
  clock.advance(MINUTE_MS);
  await dying.attend();
  await expect.poll(() => written.length, { timeout: 30_000 }).toBeGreaterThan(1);
  expect([...written[0]!].sort()).toEqual(["jobs/open", "jobs/output", "jobs/schedule"]);
  await dying.runs.close();
  present.delete("a");
  await controller("b").runs.maintain("matrix");
  await over();
  expect(await told()).toEqual(["1 ok"]);
  expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(1);
});

/** The stores of a controller, with `look` called before it gets the answer to a firing's transaction. */
const after = (look: () => Promise<void>): Stores => ({
  system: () => engine.system(),
  tenant: async (of) => {
    const store = await engine.tenant(of);
    const txn: typeof store.kv.txn = async (request) => {
      const answer = await store.kv.txn(request);
      if (request.then.some(({ key }) => key.startsWith("jobs/schedule/"))) await look();
      return answer;
    };
    return { ...store, kv: wrappedKv(store.kv, { txn }) };
  },
});

test("a firing whose answer is lost is not fired again", async () => {
  await define("every 1m;overlap=allow");
  let lost = 0;
  const one = controller(
    "a",
    after(() => (lost++ === 0 ? Promise.reject(new AppError("unknown_outcome", "done, not told")) : Promise.resolve())),
  );
  clock.advance(MINUTE_MS);
  await fireAll(one);
  await over();
  expect(lost).toBeGreaterThan(0);
  expect(await told()).toEqual(["1 ok"]);
});

test("a run on an only host that was written and not begun yet is not taken over by its own controller", async () => {
  await define("every 1m", { timeout: 3_600 });
  const one: Controller = controller(
    "a",
    after(() => one.runs.maintain("matrix")),
  );
  clock.advance(MINUTE_MS);
  await one.attend();
  await over();
  expect(await told()).toEqual(["1 ok"]);
  expect(sent).toHaveLength(1);
});
