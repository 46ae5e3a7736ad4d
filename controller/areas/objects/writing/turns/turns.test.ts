import { beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../../common/errors.ts";
import { OBJECT_TURN_WAIT_MS } from "../../../../../common/limits.ts";
import { realClock } from "../../../../../test/helpers/time/clock.ts";
import { MemoryStores } from "../../../../../test/helpers/engines/memory/stores.ts";
import { TestClock, testRuntime } from "../../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../../test/helpers/engines/wrapped-kv.ts";
import type { KvLease, KvStore } from "../../../../store/kv.ts";
import { Retry } from "../../../../store/calls/retry.ts";
import { ObjectTurns } from "./turns.ts";

const OBJECT = "1:a";
/** A clock without waiting times. */
const hurried = { ...realClock, after: (_: number, call: () => void) => realClock.after(0, call) };

let kv: KvStore;
let clock: TestClock;
let controllers: number;

beforeEach(async () => {
  kv = (await new MemoryStores().tenant("matrix")).kv;
  clock = new TestClock();
  controllers = 0;
});

/** As one controller has them, with a lease of its own. */
async function controller(over: KvStore = kv) {
  const runtime = { ...testRuntime(clock), random: { next: () => 0.5, bytes: randomBytes(++controllers) } };
  const turns = new ObjectTurns({ kv: over, runtime, retry: new Retry({ clock: hurried, random: runtime.random }) });
  const lease = await kv.lease(60_000);
  const held = { isHeld: () => true, lease: lease.id };
  const by = { held, resumed: () => Promise.reject(new Error("It was held all the while.")) };
  const run = <T>(work: () => Promise<T>, object = OBJECT): Promise<T> => turns.run(object, by, work);
  return { turns, lease, run };
}

/** Keys that lie in another order than they come in. */
function randomBytes(of: number): (count: number) => Uint8Array {
  let calls = 0;
  return (count) => Uint8Array.from({ length: count }, (_, at) => (at === 0 ? 255 - of : at === 1 ? calls++ : 0));
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

async function entered(count: number): Promise<void> {
  await expect.poll(entries, { timeout: 30_000 }).toBe(count);
}

async function entries(): Promise<number> {
  return (await kv.list("objectturns/")).entries.length;
}

test("writes of one object come one after the other, in the order they asked; those of another do not wait", async () => {
  const [one, two, three] = [await controller(), await controller(), await controller()];
  const order: string[] = [];
  const first = gate();
  const a = one.run(async () => {
    order.push("a");
    await first.opened;
    order.push("end of a");
  });
  await entered(1);
  const b = two.run(() => Promise.resolve(void order.push("b")));
  await entered(2);
  const c = three.run(() => Promise.resolve(void order.push("c")));
  await entered(3);
  expect(await two.run(() => Promise.resolve("other"), "1:b")).toBe("other");
  expect(order).toEqual(["a"]);
  first.open();
  await Promise.all([a, b, c]);
  expect(order).toEqual(["a", "end of a", "b", "c"]);
});

test("a turn is given up when the work is done, and when it failed", async () => {
  const { run } = await controller();
  expect(await run(() => Promise.resolve(7))).toBe(7);
  await expect(run(() => Promise.reject(new Error("no such size")))).rejects.toThrow("no such size");
  expect(await entries()).toBe(0);
});

test("who gets no turn in time has written nothing, says which limit it was, and is out of the way", async () => {
  const [one, two] = [await controller(), await controller()];
  const first = gate();
  const a = one.run(() => first.opened);
  await entered(1);
  let written = false;
  const b = two.run(() => Promise.resolve((written = true)));
  const refused = expect(b).rejects.toMatchObject({
    code: "unavailable",
    details: { limit: "OBJECT_TURN_WAIT_MS" },
  });
  await entered(2);
  clock.advance(OBJECT_TURN_WAIT_MS);
  await refused;
  expect([written, await entries()]).toEqual([false, 1]);
  first.open();
  await a;
  expect(clock.waiting).toBe(0);
});

test("the turn of a controller that died ends with its lease", async () => {
  const [one, two] = [await controller(), await controller()];
  const first = gate();
  const a = one.run(() => first.opened);
  await entered(1);
  const b = two.run(() => Promise.resolve("written"));
  await entered(2);
  await one.lease.revoke();
  expect(await b).toBe("written");
  first.open();
  await a;
});

test("who lost its lease before its turn came writes nothing", async () => {
  const [one, two] = [await controller(), await controller()];
  const first = gate();
  const a = one.run(() => first.opened);
  await entered(1);
  let written = false;
  const refused = expect(two.run(() => Promise.resolve((written = true)))).rejects.toMatchObject({
    code: "unavailable",
  });
  await entered(2);
  await two.lease.revoke();
  first.open();
  await refused;
  await a;
  expect(written).toBe(false);
});

test("who lost its lease while it wrote cannot tell whether that stands; who lost it before takes a new one", async () => {
  const { turns, lease } = await controller();
  let held = true;
  const anew: KvLease[] = [];
  const resumed = async () => {
    anew.push(await kv.lease(60_000));
    return { isHeld: () => held, lease: anew.at(-1)?.id ?? "" };
  };
  const by = { held: { isHeld: () => false, lease: lease.id }, resumed };
  expect(await turns.run(OBJECT, by, () => Promise.resolve(1))).toBe(1);
  expect(anew).toHaveLength(1);
  const losing = turns.run(OBJECT, by, () => Promise.resolve(void (held = false)));
  await expect(losing).rejects.toMatchObject({ code: "unknown_outcome" });
  expect(await entries()).toBe(0);
});

test("a store that is away when the turn ends takes nothing from what was written; a fault of the program does", async () => {
  const failing = (error: Error) => wrappedKv(kv, { delete: () => Promise.reject(error) });
  const { run } = await controller(failing(new AppError("unavailable", "away")));
  expect(await run(() => Promise.resolve("written"))).toBe("written");
  const { run: other } = await controller(failing(new TypeError("a fault")));
  await expect(other(() => Promise.resolve("written"), "1:b")).rejects.toThrow("a fault");
});
