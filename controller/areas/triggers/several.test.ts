import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { OBJECT_TURN_WAIT_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { UNAUDITED } from "../../../test/helpers/areas/audit.ts";
import { bundle } from "../../../test/helpers/programs/bundle.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { type HostObject, HostObjects, ThreadScripts } from "../../scripting/index.ts";
import { CONSOLE_LOG_CLASSES, ConsoleLogService } from "../consolelog/index.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService, SearchService, visibleObjects } from "../query/index.ts";
import { queryHostObject } from "../query/host-objects.ts";
import { asideClass } from "./classes.ts";
import { triggerHost } from "./host.ts";
import { TriggerService } from "./service.ts";

const admin = testPrincipal();
/** A limit that the test's own timeout always precedes. */
const FOR_EVER = { timeout: 3_600_000 };
const TEST_MAX_MS = 600_000;

let engine: TestEngine;
let scripts: ThreadScripts;
let controllers: Controller[] = [];

/** The point at which the triggers of one test wait for each other. */
let gate: Gate;

class Gate {
  readonly #opened: Promise<void>;
  #open = (): void => undefined;
  #left: number;

  /** Opens when `count` callers wait. */
  constructor(count: number) {
    this.#left = count;
    this.#opened = new Promise((resolve) => (this.#open = resolve));
  }

  pass(): Promise<void> {
    this.#left -= 1;
    if (this.#left === 0) this.#open();
    return this.#opened;
  }
}

const GATE: HostObject = {
  name: "gate",
  summary: "",
  functions: [
    {
      name: "pass",
      summary: "",
      parameters: [],
      returns: "",
      example: "",
      call: async () => {
        await gate.pass();
        return undefined;
      },
    },
  ],
};

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `triggers-several-${process.pid}.mjs`);
  const functions = () => controllers[0]?.hostObjects.names ?? [];
  scripts = new ThreadScripts({ ...testRuntime(realClock), file, languages: ["lua", "javascript"], functions });
});
beforeEach(async () => {
  engine = await openTestEngine();
});
afterEach(async () => {
  for (const controller of controllers) await controller.close();
  controllers = [];
  await engine[Symbol.asyncDispose]();
});
afterAll(() => scripts.close());

class Controller {
  readonly objects: ObjectService;
  readonly triggers: TriggerService;
  readonly query: QueryService;
  readonly hostObjects: HostObjects;

  constructor(own: string, present: ReadonlySet<string>, clock: Clock = realClock) {
    const runtime = { ...testRuntime(clock), random: seededRandom(controllers.length + 1) };
    const objects = new ObjectService({
      visible: visibleObjects,
      stores: engine,
      runtime,
      triggers: {
        before: (...call) => this.triggers.before(...call),
        after: (...call) => this.triggers.after(...call),
      },
    });
    for (const definition of [...CONSOLE_LOG_CLASSES, asideClass(objects)]) objects.registerSystemClass(definition);
    this.objects = objects;
    this.query = new QueryService({ objects, runtime });
    const odb = queryHostObject({ query: this.query, search: new SearchService({ objects, runtime }) });
    this.hostObjects = new HostObjects([odb, GATE]);
    this.triggers = new TriggerService({
      objects,
      // A loaded machine starts threads slowly, so only the test's own timeout detects a run that never ends.
      engine: { run: (call, host) => scripts.run({ ...call, timeoutMs: FOR_EVER.timeout }, host) },
      host: (author, log) => triggerHost(this.hostObjects, { author, log, audit: UNAUDITED }),
      audit: UNAUDITED,
      author: () => Promise.resolve(admin),
      ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
      controllers: { own, has: (id) => present.has(id) },
      runtime,
      logs: new ConsoleLogService({ objects, clock: realClock }),
      announce: () => undefined,
    });
    controllers.push(this);
  }

  mql(text: string) {
    return this.query.rows(admin, text);
  }

  async put(name: string, script: string, attr: Record<string, string> = {}): Promise<void> {
    await this.triggers.put(admin, { class: "/matrix/box", name, script, attr });
  }

  async close(): Promise<void> {
    await this.triggers.close();
    await this.objects.close();
  }
}

describe("two chains that wait for each other's objects, each on a controller of its own,", () => {
  const BOXES = "select name, size from /matrix/box order by name";

  /** Waits for turns end when the test says so. */
  class TurnClock implements Clock {
    readonly nowMs = realClock.nowMs;
    readonly monotonicMs = realClock.monotonicMs;
    readonly #waits = new Set<() => void>();

    after(delayMs: number, callback: () => void): () => void {
      if (delayMs !== OBJECT_TURN_WAIT_MS) return realClock.after(delayMs, callback);
      this.#waits.add(callback);
      return () => this.#waits.delete(callback);
    }

    get waiting(): number {
      return this.#waits.size;
    }

    waitedLongEnough(): void {
      for (const callback of this.#waits) callback();
    }
  }

  test(
    "end by OBJECT_TURN_WAIT_MS: one with an error, which lets the other one through",
    async () => {
      gate = new Gate(2);
      const present = new Set(["first", "second"]);
      const [clock, other] = [new TurnClock(), new TurnClock()];
      const [first, second] = [new Controller("first", present, clock), new Controller("second", present, other)];
      await first.mql("create class /matrix/box (name varchar, size int, owner varchar, keys(name))");
      await first.mql("insert into /matrix/box (name, size) values ('x', 0), ('y', 0)");
      await second.mql(BOXES);
      const nested = "update /matrix/box set size = size + 1, owner = 'trigger' where name = ?";
      await first.put(
        "other",
        `if OBJECT.owner == "user" then gate.pass() odb.mql("${nested}", OBJECT.name == "x" and "y" or "x") end`,
      );
      const write = (controller: Controller, name: string) =>
        controller.mql(`update /matrix/box set size = size + 1, owner = 'user' where name = '${name}'`);
      const failing = write(first, "x");
      const succeeding = write(second, "y");
      const failed = expect(failing).rejects.toThrow("Too many controllers write this object at once");
      const { kv } = await engine.tenant("matrix");
      // Each trigger holds its object and waits for the object of the other.
      await expect.poll(async () => (await kv.list("objectturns/")).entries.length, FOR_EVER).toBe(4);
      // The entry is stored before its writer continues and waits.
      await expect.poll(() => [clock.waiting, other.waiting], FOR_EVER).toEqual([1, 1]);
      clock.waitedLongEnough();
      await failed;
      await succeeding;
      expect(await first.mql(BOXES)).toEqual([
        { name: "x", size: 1 },
        { name: "y", size: 1 },
      ]);
      await write(first, "x");
      expect(await second.mql(BOXES)).toEqual([
        { name: "x", size: 2 },
        { name: "y", size: 2 },
      ]);
      expect((await kv.list("objectturns/")).entries).toEqual([]);
    },
    TEST_MAX_MS,
  );
});

test(
  "of very many writes of one object none is lost or doubled, before and after them",
  async () => {
    const writes = onCluster ? 60 : TIMES === 1 ? 200 : 1_000 * TIMES;
    const controller = new Controller("first", new Set(["first"]));
    await controller.mql(`create class /matrix/box (name varchar, size int, keys(name));
    create class /matrix/event (text varchar)`);
    await controller.put("count", "OBJECT.size = (OLD and OLD.size or 0) + 1");
    await controller.put("tell", 'odb.mql("insert into /matrix/event text=?", tostring(OBJECT.size))', {
      before: "false",
    });
    let left = writes;
    const writer = async (): Promise<void> => {
      while (left-- > 0) await controller.mql("insert into /matrix/box name='one'");
    };
    await Promise.all(Array.from({ length: 8 }, writer));
    expect(await controller.mql("select size from /matrix/box")).toEqual([{ size: writes }]);

    const told = (): Promise<readonly { readonly text?: unknown }[]> =>
      controller.mql(`select text from /matrix/event limit ${2 * writes}`);
    await expect
      .poll(async () => {
        // Changes beyond the bound wait as stored objects.
        await controller.triggers.maintain("matrix");
        const stored = await controller.mql("select id from /matrix/system/triggerevent");
        return [stored.length, (await told()).length];
      }, FOR_EVER)
      .toEqual([0, writes]);
    await controller.triggers.settled();
    const numbers = (await told()).map(({ text }) => Number(text)).sort((one, other) => one - other);
    expect(numbers).toEqual(Array.from({ length: writes }, (_, at) => at + 1));
  },
  TEST_MAX_MS * TIMES,
);
