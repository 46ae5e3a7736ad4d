import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { PatientClock, realClock, seededRandom } from "../time/clock.ts";
import { MemoryAudit, outsideHostObject } from "./audit.ts";
import { bundle } from "../programs/bundle.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { Mortality, mortalStores } from "../engines/mortal.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { wrappedKv } from "../engines/wrapped-kv.ts";
import { TRIGGER_PATIENCE_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { partsOf } from "../../../controller/area.ts";
import { HostObjects, ThreadScripts } from "../../../controller/scripting/index.ts";
import { threadProcessorMs } from "../../../controller/workers/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../../../controller/areas/consolelog/index.ts";
import { ObjectService, type ObjectChange } from "../../../controller/areas/objects/index.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { queryArea, QueryService, SearchService, visibleObjects } from "../../../controller/areas/query/index.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { KvLease } from "../../../controller/store/kv.ts";
import { asideClass } from "../../../controller/areas/triggers/classes.ts";
import { triggerHost } from "../../../controller/areas/triggers/host.ts";
import { TriggerService } from "../../../controller/areas/triggers/service.ts";

export const admin = testPrincipal();
const CLASSES = `create class /matrix/box (name varchar, size int, notes list<varchar>, owner varchar, keys(name));
  create class /matrix/box/crate (depth int);
  create class /matrix/copy (of varchar, what varchar, size int, keys(of));
  create class /matrix/event (text varchar);
  create class /matrix/line (text varchar) with kind='record'`;

/** Stores of the running test. */
export let engine: TestEngine;
/** Controllers that are closed after the test. */
export const controllers: Controller[] = [];
let lives = 0;
let scripts: ThreadScripts;

/** Opens an engine for each test of the calling file, and script threads that all its tests share. */
export function openTriggers(): void {
  const patience = new PatientClock();
  beforeAll(async () => {
    const file = await bundle("controller/script-worker.ts", `triggers-${process.pid}.mjs`);
    const { clock, random, log } = testRuntime(patience);
    scripts = new ThreadScripts({
      file,
      languages: ["lua", "javascript"],
      functions: () => controllers[0]?.hostObjects.names ?? [],
      clock,
      random,
      log,
      processorMs: threadProcessorMs,
    });
  });
  beforeEach(async () => {
    engine = await openTestEngine();
  });
  afterEach(async () => {
    for (const controller of controllers) await controller.close();
    controllers.length = 0;
    await engine[Symbol.asyncDispose]();
  });
  afterAll(async () => {
    // Scripts of dead controllers that are not buried never get the answer of their call.
    patience.end();
    await scripts.close();
  });
}

/** A controller with the services that triggers need. `present`: the controllers that it believes to be running. */
export class Controller {
  readonly objects: ObjectService;
  readonly triggers: TriggerService;
  readonly query: QueryService;
  readonly hostObjects: HostObjects;
  readonly told: ObjectChange[] = [];
  readonly audit = new MemoryAudit();
  readonly authors = new Map<string, Principal | undefined>([["administrator", admin]]);
  #waiting: (() => void)[] = [];

  constructor(
    own: string,
    present: ReadonlySet<string> = new Set([own]),
    { stores = engine, clock = realClock }: { readonly stores?: Stores; readonly clock?: Clock } = {},
  ) {
    // Two lives with the same random numbers would have the same names, as of their outboxes.
    const runtime = { ...testRuntime(clock), random: seededRandom(++lives) };
    const objects = new ObjectService({
      visible: visibleObjects,
      stores,
      runtime,
      triggers: {
        before: (...call) => this.triggers.before(...call),
        after: (...call) => this.triggers.after(...call),
      },
    });
    for (const definition of [...CONSOLE_LOG_CLASSES, asideClass(objects)]) objects.registerSystemClass(definition);
    this.objects = objects;
    const among = { own, has: (id: string) => present.has(id) };
    this.query = new QueryService({ objects, runtime, batches: { stores, controllers: among, objects, runtime } });
    const search = new SearchService({ objects, runtime });
    const logs = new ConsoleLogService({ objects, clock: realClock });
    const areas = [queryArea({ query: this.query, search, objects }), consoleLogArea(logs)];
    this.hostObjects = new HostObjects([outsideHostObject(), ...partsOf(areas, (area) => area.hostObjects)]);
    this.triggers = new TriggerService({
      objects,
      engine: scripts,
      host: (author, log) => triggerHost(this.hostObjects, { author, log, audit: this.audit }),
      audit: this.audit,
      author: (_, user) => Promise.resolve(this.authors.get(user)),
      ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
      controllers: among,
      runtime,
      logs,
      announce: (changes) => {
        this.told.push(...changes);
        this.#changed();
      },
    });
    objects.unrestricted.onChange((events) => {
      this.told.push(...events.filter(({ announced }) => announced));
      this.#changed();
    });
    controllers.push(this);
  }

  #changed(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async put(
    name: string,
    script: string,
    { of = "/matrix/box", ...attr }: { of?: string } & Record<string, string> = {},
  ) {
    await this.triggers.put(admin, { class: of, name, script, attr });
  }

  mql(text: string, principal = admin) {
    return this.query.rows(principal, text);
  }

  /** Reads again after each change of this controller until the answer meets the condition. */
  async until<T>(read: () => Promise<T>, isMeant: (answer: T) => boolean): Promise<T> {
    for (;;) {
      const changed = new Promise<void>((resolve) => this.#waiting.push(resolve));
      const answer = await read();
      if (isMeant(answer)) return answer;
      await changed;
    }
  }

  /** Returns level and text of each log line of the trigger, once all its runs have ended. */
  async log(name: string): Promise<readonly (readonly unknown[])[]> {
    await this.triggers.settled();
    const rows = await this.mql(
      `select level, msg from /matrix/consolelog/trigger where name='${name}' order by vtime limit 1000`,
    );
    return rows.map(({ level, msg }) => [level, msg]);
  }

  async close(): Promise<void> {
    await this.triggers.close();
    await this.objects.close();
  }
}

/** Returns the first controller, with the classes of these tests. */
export async function opened(): Promise<Controller> {
  const controller = new Controller("first");
  await controller.mql(CLASSES);
  return controller;
}

/** Reads all boxes. Also loads the classes into a controller that is new. */
export const BOXES = "select name, size, notes, owner from /matrix/box/ order by name";

/** The controller and its methods as functions, for tests that use a single controller. */
export function bound(first: Controller) {
  return {
    first,
    mql: (text: string) => first.mql(text),
    put: (...of: Parameters<Controller["put"]>) => first.put(...of),
    log: (name: string) => first.log(name),
  };
}

export interface MortalOptions {
  /** The store makes the last write before the controller dies. */
  readonly isWritten: boolean;
  /** Its triggers store the changes that wait for them at once, not only when a run takes long. */
  readonly isHasty: boolean;
}

/**
 * Returns a controller that dies at a write of objects. `dieAt` sets the number of the write. Writes of keys stop as
 * well: the survivor takes over in two steps, and a write of the dead controller between them would prevent that.
 * `bury` ends its leases, as time would.
 */
export function mortalController({ isWritten, isHasty }: MortalOptions) {
  let mortality = new Mortality(Infinity, isWritten);
  const leases: KvLease[] = [];
  const { data } = mortalStores(engine, () => mortality);
  const tenant: Stores["tenant"] = async (name) => {
    const store = await data.tenant(name);
    const kv = wrappedKv(store.kv, {
      txn: (request) => mortality.call(() => store.kv.txn(request)),
      put: (...put) => mortality.call(() => store.kv.put(...put)),
      delete: (...gone) => mortality.call(() => store.kv.delete(...gone)),
      lease: (ttlMs) =>
        mortality.call(async () => {
          const granted = await store.kv.lease(ttlMs);
          leases.push(granted);
          return granted;
        }),
    });
    return { ...store, kv };
  };
  const own = `dying-${lives}`;
  const stores = { ...data, system: () => data.system(), tenant };
  const controller = new Controller(own, new Set([own]), { stores, clock: isHasty ? hasty : realClock });
  // Its calls do not return, so it cannot be closed like the others.
  controllers.pop();
  return {
    controller,
    dieAt(writes: number): Promise<void> {
      mortality = new Mortality(writes, isWritten);
      return mortality.died;
    },
    async bury(): Promise<void> {
      controller.close().catch(() => undefined);
      await mortality.bury();
      for (const lease of leases) await lease.revoke();
    },
  };
}

/** A clock on which the patience of triggers is over at once. */
const hasty: Clock = {
  ...realClock,
  after: (delayMs, callback) => realClock.after(delayMs === TRIGGER_PATIENCE_MS ? 0 : delayMs, callback),
};
