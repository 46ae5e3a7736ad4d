import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CHANGE_EVENTS_WAITING_MAX, CHANGE_FOREIGN_EVENTS_MAX } from "../../../../common/limits.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { StoppableStores, type HeldCall } from "../../../../test/helpers/engines/stoppable-stores.ts";
import type { Stores } from "../../../store/engine.ts";
import { ObjectService, type ClassSpec, type ObjectChangeEvent } from "../index.ts";

const admin = testPrincipal();
const HOST: ClassSpec = {
  path: "/matrix/cmdb/host",
  columns: [
    { name: "name", type: "varchar" },
    { name: "size", type: "int" },
  ],
  keys: ["name"],
};
const LOG: ClassSpec = { path: "/matrix/log", kind: "record", columns: [{ name: "line", type: "varchar" }] };
const GROW = [{ column: "size", operation: "set" as const, value: 2 }];

let engine: TestEngine;
let services: ObjectService[] = [];

beforeEach(async () => {
  engine = await openTestEngine();
});

afterEach(async () => {
  for (const service of services) await service.close();
  services = [];
  await engine[Symbol.asyncDispose]();
});

function newService(stores: Stores = engine): ObjectService {
  const service = new ObjectService({
    stores,
    runtime: { ...testRuntime(realClock), random: seededRandom(services.length + 1) },
  });
  services.push(service);
  return service;
}

/** A subscriber that keeps its events; `until` resolves when it has that many different ones. */
class Subscriber {
  readonly events: ObjectChangeEvent[] = [];
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  readonly deliver = (events: readonly ObjectChangeEvent[]): Promise<void> => {
    this.events.push(...events);
    for (const { count, resolve } of this.#waiting) if (this.#different().length >= count) resolve();
    return Promise.resolve();
  };

  #different(): readonly ObjectChangeEvent[] {
    return [...new Map(this.events.map((event) => [`${event.id} ${event.timeMs}`, event])).values()];
  }

  async until(count: number): Promise<string[]> {
    if (this.#different().length < count) await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
    return this.#different().map((event) => `${event.action} ${event.id}`);
  }

  async attach(service: ObjectService, name: string, classes: readonly string[]): Promise<this> {
    await service.subscribe(admin, { name, classes, deliver: this.deliver });
    return this;
  }
}

/** As one that crashes before it has taken anything. */
const deaf = (): Promise<void> => Promise.reject(new Error("not now"));

/** How many intents are stored. */
async function stored(): Promise<number> {
  const { objects } = await engine.tenant("matrix");
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await objects.scan({ limit: 1_000, ...(cursor === undefined ? {} : { cursor }) });
    count += page.items.filter(({ key }) => key.cid === 0 && key.id.startsWith("o")).length;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}

async function boxes(): Promise<number> {
  return (await (await engine.tenant("matrix")).kv.list("objectoutboxes/")).entries.length;
}

describe("a durable subscription", () => {
  test("is told of what happens to objects and records of its classes, and nothing stays behind", async () => {
    const a = newService();
    await a.createClass(admin, HOST);
    await a.createClass(admin, { path: `${HOST.path}/virtual`, columns: [] });
    await a.createClass(admin, LOG);
    const tree = await new Subscriber().attach(a, "tree", [`${HOST.path}/`, LOG.path]);
    const single = await new Subscriber().attach(a, "single", [HOST.path]);
    await a.createEdgeType(admin, { name: "contain", remedy: "" });
    await a.unrestricted.insert(admin, HOST.path, [
      { name: "a", size: 1 },
      { name: "b", contain: "host:a" },
    ]);
    await a.unrestricted.update(admin, { id: "host:a" }, GROW);
    await a.unrestricted.insert(admin, `${HOST.path}/virtual`, [{ name: "v" }]);
    const [line = ""] = await a.unrestricted.insert(admin, LOG.path, [{ line: "x" }]);
    await a.unrestricted.remove(admin, [{ id: "host:b" }, { id: line }]);
    const ofTree = [
      "INSERT host:a",
      "INSERT host:b",
      "UPDATE host:a",
      "INSERT virtual:v",
      `INSERT ${line}`,
      "DELETE host:b",
      `DELETE ${line}`,
    ];
    expect(await tree.until(7)).toEqual(ofTree);
    expect(await single.until(4)).toEqual(["INSERT host:a", "INSERT host:b", "UPDATE host:a", "DELETE host:b"]);
    expect(tree.events[0]).toMatchObject({ tenant: "matrix", class: HOST.path, fields: { name: "a", size: 1 } });
    expect(tree.events[1]?.fields).toEqual({ name: "b", contain: ["host:a"] });
    await a.close();
    expect([await stored(), await boxes(), a.changesWaiting]).toEqual([0, 0, 0]);
  });

  test("costs nothing where it does not reach, nor when it has ended", async () => {
    const a = newService();
    await a.createClass(admin, HOST);
    await a.createClass(admin, LOG);
    await a.subscribe(admin, { name: "logs", classes: [LOG.path], deliver: deaf });
    await a.unrestricted.insert(admin, HOST.path, [{ name: "a" }]);
    expect(await stored()).toBe(0);
    await a.unsubscribe(admin, "logs");
    await a.unrestricted.insert(admin, LOG.path, [{ line: "x" }]);
    expect(await stored()).toBe(0);
  });

  test("is told again what it did not take", async () => {
    const a = newService();
    await a.createClass(admin, HOST);
    const taken = new Subscriber();
    let attempts = 0;
    await a.subscribe(admin, {
      name: "s",
      classes: [HOST.path],
      deliver: (events) => (++attempts < 3 ? deaf() : taken.deliver(events)),
    });
    await a.unrestricted.insert(admin, HOST.path, [{ name: "a" }]);
    expect(await taken.until(1)).toEqual(["INSERT host:a"]);
    expect(attempts).toBe(3);
  });

  test("is refused with a wrong name, without the right, and twice in one controller", async () => {
    const a = newService();
    await expect(a.subscribe(admin, { name: "a b", classes: [], deliver: deaf })).rejects.toMatchObject({
      code: "invalid",
    });
    await expect(a.subscribe(testPrincipal("viewer"), { name: "s", classes: [], deliver: deaf })).rejects.toMatchObject(
      { code: "denied" },
    );
    await a.subscribe(admin, { name: "s", classes: [], deliver: deaf });
    await expect(a.subscribe(admin, { name: "s", classes: [], deliver: deaf })).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test.each(onCluster ? [] : [CHANGE_EVENTS_WAITING_MAX])(
    "that takes nothing stops the writes it would have to be told of after %i, and no others",
    async (limit) => {
      const a = newService();
      await a.createClass(admin, HOST);
      await a.createClass(admin, LOG);
      await a.subscribe(admin, { name: "s", classes: [LOG.path], deliver: deaf });
      await a.unrestricted.insert(
        admin,
        LOG.path,
        Array.from({ length: limit }, () => ({ line: "x" })),
      );
      expect(a.changesWaiting).toBe(limit);
      await expect(a.unrestricted.insert(admin, LOG.path, [{ line: "x" }])).rejects.toMatchObject({
        code: "unavailable",
        details: { limit: "CHANGE_EVENTS_WAITING_MAX" },
      });
      await a.unrestricted.insert(admin, HOST.path, [{ name: "a" }]);
      await a.unsubscribe(admin, "s");
      const next = await new Subscriber().attach(a, "s", [LOG.path]);
      await a.unrestricted.insert(admin, LOG.path, [{ line: "x" }]);
      expect(await next.until(1)).toHaveLength(1);
      expect(a.changesWaiting).toBeLessThanOrEqual(1);
    },
  );
});

describe("when a controller goes", () => {
  test("before it told of what it wrote, another one does", async () => {
    const a = newService();
    await a.createClass(admin, HOST);
    await a.subscribe(admin, { name: "s", classes: ["/"], deliver: deaf });
    await a.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }, { name: "b" }]);
    await a.unrestricted.update(admin, { id: "host:a" }, GROW);
    await a.unrestricted.remove(admin, [{ id: "host:b" }]);
    await a.close();
    expect(await stored()).toBe(3);
    const b = await new Subscriber().attach(newService(), "s", ["/"]);
    expect((await b.until(4)).sort()).toEqual(["DELETE host:b", "INSERT host:a", "INSERT host:b", "UPDATE host:a"]);
    expect(b.events.find((event) => event.action === "UPDATE")?.fields).toEqual({ size: 2 });
  });

  test("others tell each of what it left once, sharing the work", async () => {
    const a = newService();
    await a.createClass(admin, HOST);
    await a.subscribe(admin, { name: "s", classes: ["/"], deliver: deaf });
    await a.unrestricted.insert(admin, HOST.path, [{ name: "a" }]);
    const others = [newService(), newService()];
    const told = new Subscriber();
    for (const other of others) await told.attach(other, "s", ["/"]);
    await a.close();
    expect(await told.until(1)).toEqual(["INSERT host:a"]);
    await others[0]?.unrestricted.insert(admin, HOST.path, [{ name: "b" }]);
    expect(await told.until(2)).toEqual(["INSERT host:a", "INSERT host:b"]);
    expect(told.events).toHaveLength(2);
  });
});

/** Lets so many calls pass and holds the next. */
async function heldAfter(stores: StoppableStores, passing: number): Promise<HeldCall> {
  let call = await stores.hold("change");
  for (let passed = 0; passed < passing; passed++) {
    const next = stores.hold("change");
    call.goOn();
    call = await next;
  }
  return call;
}

test.each(onCluster ? [1] : [0, 1, 2, 3, 5])(
  "killed after %i calls of the store, what a controller answered is told by another",
  async (calls) => {
    const killed = new StoppableStores(engine);
    const a = newService(killed);
    await a.createClass(admin, HOST);
    await a.subscribe(admin, { name: "s", classes: ["/"], deliver: deaf });
    const answered: string[] = [];
    const write = async (): Promise<void> => {
      for (const name of ["a", "b"]) {
        await a.unrestricted.insert(admin, HOST.path, [{ name }]);
        answered.push(`INSERT host:${name}`);
        await a.unrestricted.update(admin, { id: `host:${name}` }, GROW);
        answered.push(`UPDATE host:${name}`);
      }
    };
    const holding = heldAfter(killed, calls);
    const writing = write();
    const held = await holding;
    const before = [...answered];
    await killed.stop();
    const b = await new Subscriber().attach(newService(), "s", ["/"]);
    expect((await b.until(before.length)).sort()).toEqual(before.sort());
    killed.goOn();
    held.goOn();
    await writing;
    await a.close();
    expect((await b.until(4)).sort()).toEqual(answered.sort());
  },
);

test("of the changes that other controllers have not told, no more than so many are looked at", async () => {
  const [a, b] = [newService(), newService()];
  await a.createClass(admin, HOST);
  await a.subscribe(admin, { name: "deaf", classes: [HOST.path], deliver: deaf });
  const insert = (from: number, to: number): Promise<unknown> =>
    a.unrestricted.insert(
      admin,
      HOST.path,
      Array.from({ length: to - from }, (_, at) => ({ name: `n${from + at}` })),
    );
  await insert(0, 100);
  expect([(await a.foreignChanges(admin)).size, (await b.foreignChanges(admin)).size]).toEqual([0, 100]);
  await insert(100, CHANGE_FOREIGN_EVENTS_MAX + 100);
  expect((await b.foreignChanges(admin)).size).toBe(CHANGE_FOREIGN_EVENTS_MAX);
});

describe("a controller that was stopped", () => {
  let stopped: StoppableStores;
  let a: ObjectService;
  let b: ObjectService;

  beforeEach(async () => {
    stopped = new StoppableStores(engine);
    a = newService(stopped);
    b = newService();
    await a.createClass(admin, HOST);
    await a.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
  });

  test("between its intent and its write is not told for by others, and stores anew what it has written", async () => {
    await a.subscribe(admin, { name: "s", classes: ["/"], deliver: deaf });
    const byB = await new Subscriber().attach(b, "s", ["/"]);
    const intending = stopped.hold("change");
    const updating = a.unrestricted.update(admin, { id: "host:a" }, GROW);
    const intent = await intending;
    const write = stopped.hold("change");
    intent.goOn();
    const held = await write;
    expect(await stored()).toBe(1);
    await stopped.stop();
    await b.unrestricted.insert(admin, HOST.path, [{ name: "b" }]);
    expect(await byB.until(1)).toEqual(["INSERT host:b"]);
    while ((await stored()) > 0) await new Promise((resolve) => setImmediate(resolve));
    stopped.goOn();
    held.goOn();
    expect(await updating).toBe(true);
    expect(byB.events).toHaveLength(1);
    await a.close();
    expect(await byB.until(2)).toEqual(["INSERT host:b", "UPDATE host:a"]);
  });

  test("after its write is told for by others, and may tell it once more", async () => {
    await a.subscribe(admin, { name: "s", classes: ["/"], deliver: deaf });
    const byB = await new Subscriber().attach(b, "s", ["/"]);
    await a.unrestricted.update(admin, { id: "host:a" }, GROW);
    await stopped.stop();
    expect(await byB.until(1)).toEqual(["UPDATE host:a"]);
    stopped.goOn();
  });

  test("while a subscription began stores who is to be told before it answers", async () => {
    const writing = stopped.hold("change");
    const updating = a.unrestricted.update(admin, { id: "host:a" }, GROW);
    const held = await writing;
    await stopped.stop();
    const byB = await new Subscriber().attach(b, "s", ["/"]);
    stopped.goOn();
    held.goOn();
    expect(await updating).toBe(true);
    await a.close();
    expect(await byB.until(1)).toEqual(["UPDATE host:a"]);
  });
});
