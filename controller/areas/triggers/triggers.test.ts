import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PatientClock, realClock, seededRandom } from "../../../test/helpers/clock.ts";
import { MemoryAudit, outsideHostObject } from "../../../test/helpers/audit.ts";
import { bundle } from "../../../test/helpers/bundle.ts";
import { testEntries } from "../../../test/helpers/config.ts";
import { EVERYTHING_SENT, GAPS, recordsEntry, RUNS, TEST_KEYS, TestOutbox } from "../../../test/helpers/ingest.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import { openTestHttp } from "../../../test/helpers/http-app.ts";
import { Mortality, mortalStores } from "../../../test/helpers/mortal.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/runtime.ts";
import { wrappedKv } from "../../../test/helpers/wrapped-kv.ts";
import { TIMES } from "../../../test/helpers/times.ts";
import { AppError } from "../../../common/errors.ts";
import { TRIGGER_LOG_LINES_MAX } from "../../../common/limits.ts";
import { partsOf } from "../../area.ts";
import { HostObjects, ThreadScripts } from "../../scripting/index.ts";
import { threadProcessorMs } from "../../workers/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../consolelog/index.ts";
import { ObjectService, type ObjectChange, type Objects, type TriggerDefinition } from "../objects/index.ts";
import type { DataRule, Principal } from "../permissions/index.ts";
import { queryArea, QueryService, SearchService } from "../query/index.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvLease } from "../../store/kv.ts";
import { Aside } from "./aside.ts";
import { asideClass } from "./classes.ts";
import { PIN_REFUSED } from "../hosts/index.ts";
import { IngestService, RecordWriter } from "../ingest/index.ts";
import { RuleService } from "../rules/index.ts";
import { triggerHost } from "./host.ts";
import { triggerRoutes } from "./routes.ts";
import { TriggerService } from "./service.ts";

const admin = testPrincipal();
const CLASSES = `create class /matrix/box (name varchar, size int, notes list<varchar>, owner varchar, keys(name));
  create class /matrix/box/crate (depth int);
  create class /matrix/copy (of varchar, what varchar, size int, keys(of));
  create class /matrix/event (text varchar);
  create class /matrix/line (text varchar) with kind='record'`;

const patience = new PatientClock();
let engine: TestEngine;
let scripts: ThreadScripts;
let controllers: Controller[] = [];

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
  controllers = [];
  await engine[Symbol.asyncDispose]();
});

afterAll(async () => {
  // Scripts of dead controllers never get the answer of their call.
  patience.end();
  await scripts.close();
});

class Controller {
  readonly objects: ObjectService;
  readonly triggers: TriggerService;
  readonly query: QueryService;
  readonly hostObjects: HostObjects;
  readonly told: ObjectChange[] = [];
  readonly audit = new MemoryAudit();
  readonly authors = new Map<string, Principal | undefined>([["administrator", admin]]);
  #waiting: (() => void)[] = [];

  constructor(own: string, present: ReadonlySet<string> = new Set([own]), stores: Stores = engine) {
    const runtime = { ...testRuntime(realClock), random: seededRandom(controllers.length + 1) };
    const objects = new ObjectService({
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
    objects.onChange((events) => {
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

async function opened(): Promise<Controller> {
  const controller = new Controller("first");
  await controller.mql(CLASSES);
  return controller;
}

const BOXES = "select name, size, notes, owner from /matrix/box/ order by name";

describe("the audit trail", () => {
  test("has one entry of each run that changed something, failed or not, with the author, and none of others", async () => {
    const controller = await opened();
    const { mql, put } = bound(controller);
    const { entries } = controller.audit;
    await put(
      "changing",
      "if OBJECT.size > 1 then outside.change() outside.change() end if OBJECT.size > 2 then error('no') end",
    );
    await mql("insert into /matrix/box name='a', size=1");
    expect(entries).toEqual([]);
    await mql("insert into /matrix/box name='b', size=2");
    await expect(mql("insert into /matrix/box name='c', size=3")).rejects.toThrow("no");
    expect(entries.map((entry) => entry.replace(/ \w+$/, ""))).toEqual(
      Array.from({ length: 2 }, () => "administrator TRIGGER /matrix/box#changing outside.change"),
    );
    expect(entries.map((entry) => entry.endsWith(" ok"))).toEqual([true, false]);
  });

  test("is asked before a change: without it the function is not called, and the write is refused", async () => {
    const controller = await opened();
    await controller.put("changing", "outside.change()");
    controller.audit.isAway = true;
    await expect(controller.mql("insert into /matrix/box name='a'")).rejects.toThrow("the trail is away");
    expect([controller.audit.entries, await controller.mql(BOXES)]).toEqual([[], []]);
  });
});

describe("a trigger before a write", () => {
  test.each([
    [
      "lua",
      "OBJECT.size = (OBJECT.size or 0) * 2; OBJECT.notes = {ACTION, OLD and OLD.size or 'new'}; OBJECT.owner = nil",
    ],
    [
      "javascript",
      "OBJECT.size = (OBJECT.size || 0) * 2; OBJECT.notes = [ACTION, typeof OLD === 'undefined' ? 'new' : String(OLD.size)]; delete OBJECT.owner",
    ],
  ])("changes what is written, in %s", async (language, script) => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("double", script, { language });
    await mql("insert into /matrix/box (name, size, owner) values ('a', 1, 'me'), ('b', 2, 'me')");
    await mql("update /matrix/box set size = 5 where name = 'a'");
    expect(await mql(BOXES)).toEqual([
      { name: "a", size: 10, notes: ["UPDATE", "2"], owner: null },
      { name: "b", size: 4, notes: ["INSERT", "new"], owner: null },
    ]);
  });

  test.each(["lua", "javascript"])("leaves what it does not touch as it is, in %s", async (language) => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("sized", "OBJECT.size = 2", { language });
    await mql("create class /matrix/box/free (any map, keys(name))");
    const any = { list: [null, { deep: ["x", null, null] }, []], n: 0.1, none: [null], text: "1" };
    for (const notes of [[null], [], ["a", null], [null, "a"], ["a", null, "b"], ["a"]]) {
      const values = `'a', ${JSON.stringify(notes)}, ${JSON.stringify(any)}`;
      await mql(`insert into /matrix/box/free (name, notes, any) values (${values})`);
      expect(await mql("select notes, any, size from /matrix/box/free")).toEqual([{ notes, any, size: 2 }]);
    }
    await controller.put("sized", `OBJECT.notes = ${language === "lua" ? '{"b"}' : '["b"]'}`, { language });
    await mql("update /matrix/box/free set size = 3");
    expect(await mql("select notes from /matrix/box/free")).toEqual([{ notes: ["b"] }]);
  });

  test.each([
    ["return OBJECT.size ~= 3", "The trigger /matrix/box#guard refused the write."],
    ["if OBJECT.size == 3 then error('three is too much', 0) end", "three is too much"],
    ["if OBJECT.size == 3 then local x = nil + 1 end", "lua"],
    ["if OBJECT.size == 3 then OBJECT.nothing = 1 end", "Field nothing Not Exist"],
    ["if OBJECT.size == 3 then OBJECT.size = 'many' end", "size"],
    ["if OBJECT.size == 3 then OBJECT.name = 'other' end", "cannot be changed"],
    ["if OBJECT.size == 3 then OBJECT = nil end", "left no OBJECT"],
  ])("refuses it: %s", async (script, text) => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("guard", script);
    await mql("insert into /matrix/box name='a', size=1");
    await expect(mql("insert into /matrix/box name='b', size=3")).rejects.toThrow(text === "lua" ? /arithmetic/ : text);
    await expect(mql("update /matrix/box set size=3 where name='a'")).rejects.toMatchObject({
      code: expect.any(String) as string,
    });
    expect(await mql("select name, size from /matrix/box")).toEqual([{ name: "a", size: 1 }]);
  });

  test("refuses a removal, and sees what goes; records have triggers too", async () => {
    const { mql, ...controller } = bound(await opened());
    await controller.put(
      "keep",
      "if ACTION == 'DELETE' then log.info(OLD.name, OBJECT.size) return OBJECT.size > 1 end",
    );
    await controller.put("line", "OBJECT.text = OBJECT.text .. '!'", { of: "/matrix/line" });
    await mql("insert into /matrix/box (name, size) values ('a', 1), ('b', 2); insert into /matrix/line text='x'");
    await expect(mql("delete from /matrix/box where name='a'")).rejects.toThrow("refused the write");
    await mql("delete from /matrix/box where name='b'");
    expect(await mql("select name from /matrix/box")).toEqual([{ name: "a" }]);
    expect(await mql("select text from /matrix/line")).toEqual([{ text: "x!" }]);
    expect((await controller.log("/matrix/box#keep")).filter(([level]) => level === 2)).toEqual([
      [2, "a 1"],
      [2, "b 2"],
    ]);
  });

  test("runs from the lowest level to the highest, also in subclasses that do not opt out, unless it is disabled", async () => {
    const { mql, ...controller } = bound(await opened());
    const add = (text: string): string => `OBJECT.notes = OBJECT.notes or {} table.insert(OBJECT.notes, '${text}')`;
    await controller.put("a", add("high"), { level: "10" });
    await controller.put("b", add("low"), { level: "-2" });
    await controller.put("c", add("off"), { disable: "true" });
    await controller.put("d", add("crate"), { of: "/matrix/box/crate", level: "1" });
    await mql("create class /matrix/box/own (x int) with inherittriggers=false");
    await mql(
      "insert into /matrix/box name='1'; insert into /matrix/box/crate name='2'; insert into /matrix/box/own name='3'",
    );
    expect((await mql(BOXES)).map(({ notes }) => notes)).toEqual([["low", "high"], ["low", "crate", "high"], null]);
  });

  test("may write other objects; not the one it was called for, nor a batch's rows, and no circle waits for ever", async () => {
    const { mql, ...controller } = bound(await opened());
    await controller.put(
      "copy",
      "if OBJECT.size == 1 then odb.mql('insert into /matrix/copy of=?, size=?', OBJECT.name, 7) end",
    );
    await mql("insert into /matrix/box name='a', size=1");
    expect(await mql("select of, size from /matrix/copy")).toEqual([{ of: "a", size: 7 }]);
    await controller.put("copy", "if OBJECT.size == 1 then odb.mql(\"insert into /matrix/box name='b', size=2\") end");
    await expect(mql("insert into /matrix/box name='b', size=1")).rejects.toThrow("may not write the object");
    await expect(mql("insert into /matrix/box (name, size) values ('c', 1), ('b', 5)")).rejects.toThrow(
      "may not write",
    );
    await controller.put("copy", "odb.mql('insert into /matrix/box name=?', OBJECT.name == 'x' and 'y' or 'x')");
    await expect(mql("insert into /matrix/box name='x'")).rejects.toThrow("may not write the object");
    await controller.put(
      "copy",
      "if OBJECT.size then odb.mql('insert into /matrix/box name=?', OBJECT.name == 'x' and 'y' or 'x') end",
    );
    const both = await Promise.allSettled(
      ["x", "y"].map((name) => mql(`insert into /matrix/box name='${name}', size=1`)),
    );
    expect(both.map(({ status }) => status)).toContain("fulfilled");
  });

  test("writes that wait for an object never hold the threads of those that have it", async () => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("sum", "OBJECT.size = (OLD and OLD.size or 0) + 1");
    await controller.put("count", "odb.mql(\"insert into /matrix/box name='sum'\")", { of: "/matrix/copy" });
    const writes = Array.from({ length: 6 }, (_, at) => [
      mql(`insert into /matrix/copy of='${at}'`),
      mql("insert into /matrix/box name='sum'"),
    ]);
    expect((await Promise.allSettled(writes.flat())).filter(({ status }) => status === "rejected")).toEqual([]);
    expect(await mql("select size from /matrix/box")).toEqual([{ size: 12 }]);
  });

  test("a chain ends after its steps", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("next", "odb.mql('insert into /matrix/box name=?', OBJECT.name .. 'x')");
    const chain = { id: "mine", steps: 15, holds: [] };
    const text = "insert into /matrix/box name='x'";
    await expect(first.mql(text, { ...admin, chain })).rejects.toThrow("A chain of triggers ends after 16 steps");
    await controller.put("next", "odb.mql('insert into /matrix/box name=?', OBJECT.name .. 'x')", { before: "false" });
    await mql(text);
    const aside = "select error, object from /matrix/system/triggerevent where state='failed'";
    const [refused] = await first.until(
      () => mql(aside),
      (rows) => rows.length === 1,
    );
    expect(refused).toEqual({ error: expect.stringContaining("16 steps") as string, object: `box:${"x".repeat(16)}` });
    expect(await mql("select name from /matrix/box")).toHaveLength(16);
  });

  test("that says more than is kept tells how much, and its failure", async () => {
    const { mql, ...controller } = bound(await opened());
    const script = `for line = 1, ${TRIGGER_LOG_LINES_MAX + 50} do log.info(line) end error('at last', 0)`;
    await controller.put("talks", script);
    await expect(mql("insert into /matrix/box name='a'")).rejects.toThrow("at last");
    const said = await controller.log("/matrix/box#talks");
    expect(said).toHaveLength(TRIGGER_LOG_LINES_MAX + 2);
    expect(said).toEqual(
      expect.arrayContaining([
        [2, String(TRIGGER_LOG_LINES_MAX)],
        [4, "at last"],
        [3, "50 more entries were left out."],
      ]),
    );
  });

  test("has the present rights of its author, and stands still without him", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("copy", "odb.mql('insert into /matrix/copy of=?', OBJECT.name)");
    first.authors.set("administrator", { ...admin, data: [{ class: "/matrix/box", access: "write" }] });
    await expect(mql("insert into /matrix/box name='a'")).rejects.toMatchObject({ code: "invalid" });
    first.authors.set("administrator", undefined);
    await mql("insert into /matrix/box name='b'");
    expect(await controller.log("/matrix/box#copy")).toContainEqual([
      4,
      "It does not run: its author administrator is not active.",
    ]);
  });

  test.each<[what: string, less: DataRule]>([
    ["rows", { class: "/matrix/box", access: "write", where: "owner = 'me'" }],
    ["columns", { class: "/matrix/box", access: "write", hidden: ["owner"] }],
    ["writing", { class: "/matrix/box", access: "read" }],
    ["a class below", { class: "/matrix/box/crate", access: "none" }],
  ])("stands still while its author is restricted in %s, and goes on after", async (_, less) => {
    const { mql, first, ...controller } = bound(await opened());
    const told = "DATACHANGE = true OBJECT.notes = {OBJECT.owner, OLD and OLD.owner or '-'}";
    await controller.put("tell", told);
    const made = async (name: string): Promise<unknown> => {
      await mql(`insert into /matrix/box/crate name='${name}', owner='secret'`);
      return (await mql(`select notes from /matrix/box/crate where name='${name}'`))[0]?.["notes"];
    };
    expect(await made("a")).toEqual(["secret", "-"]);
    first.authors.set("administrator", { ...admin, data: [...admin.data, less] });
    expect(await made("b")).toBeNull();
    expect(await controller.log("/matrix/box#tell")).toEqual([
      [4, expect.stringMatching(/^It does not run: its author administrator may not .*\/matrix\/box/)],
    ]);
    first.authors.set("administrator", admin);
    expect(await made("c")).toEqual(["secret", "-"]);
  });
});

describe("a trigger after a write", () => {
  const COPY = `local old = OLD and (OLD.size or 0) or -1
    odb.mql('insert into /matrix/copy of=?, what=?, size=?', OBJECT.name .. ACTION, old .. '>' .. OBJECT.size, OBJECT.size)`;

  test("gets the whole object and what it was, also of a removal, and cannot write it", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("copy", COPY, { before: "false" });
    await controller.put("self", "odb.mql('update /matrix/box set size=9 where name=?', OBJECT.name)", {
      before: "false",
      disable: "true",
    });
    await mql(
      "insert into /matrix/box name='a', size=1; update /matrix/box set owner='x', size=2; delete from /matrix/box",
    );
    const copies = await first.until(
      () => mql("select of, what from /matrix/copy order by of"),
      (rows) => rows.length === 3,
    );
    expect(copies.map(({ of, what }) => [of, what])).toEqual([
      ["aDELETE", "2>2"],
      ["aINSERT", "-1>1"],
      ["aUPDATE", "1>2"],
    ]);
  });

  test("that fails sets the change aside, to be run again; others go on", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("fails", "if OBJECT.size == 1 then error('not yet', 0) end", { before: "false" });
    await controller.put("copy", COPY, { before: "false" });
    await mql("insert into /matrix/box name='a', size=1");
    await first.until(
      () => mql("select of from /matrix/copy"),
      (rows) => rows.length === 1,
    );
    const aside = "select state, attempts, error, object from /matrix/system/triggerevent";
    const [failed] = await first.until(
      () => mql(aside),
      (rows) => rows[0]?.["state"] === "failed",
    );
    expect(failed).toMatchObject({ state: "failed", attempts: 5, error: "not yet", object: "box:a" });
    expect((await controller.log("/matrix/box#fails")).at(-1)?.[1]).toContain("set aside after 5 runs");
    await controller.put("fails", "odb.mql(\"insert into /matrix/event text='again'\")", { before: "false" });
    await mql("update /matrix/system/triggerevent set state='waiting'");
    await first.triggers.maintain("matrix");
    await first.until(
      () => mql("select text from /matrix/event"),
      (rows) => rows.length === 1,
    );
    await first.until(
      () => mql(aside),
      (rows) => rows.length === 0,
    );
  });

  test("of an author who is restricted is set aside unseen, and runs again when he is not any more", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("copy", "odb.mql('insert into /matrix/event text=?', OBJECT.owner)", { before: "false" });
    const data: readonly DataRule[] = [...admin.data, { class: "/matrix/box", access: "write", hidden: ["owner"] }];
    first.authors.set("administrator", { ...admin, data });
    await mql("insert into /matrix/box name='a', owner='secret'");
    const aside = "select state, error from /matrix/system/triggerevent";
    const [failed] = await first.until(
      () => mql(aside),
      (rows) => rows[0]?.["state"] === "failed",
    );
    expect(failed?.["error"]).toContain("its author administrator may not");
    expect(await mql("select text from /matrix/event")).toEqual([]);
    expect((await controller.log("/matrix/box#copy"))[0]?.[1]).toContain("It does not run: its author");
    first.authors.set("administrator", admin);
    await mql("insert into /matrix/box name='b', owner='open'; update /matrix/system/triggerevent set state='waiting'");
    await first.triggers.maintain("matrix");
    const texts = await first.until(
      () => mql("select text from /matrix/event order by text"),
      (rows) => rows.length === 2,
    );
    expect(texts.map(({ text }) => text)).toEqual(["open", "secret"]);
    await first.until(
      () => mql(aside),
      (rows) => rows.length === 0,
    );
  });

  test("changes of a controller that is gone reach the triggers by another one", async () => {
    const first = await opened();
    await first.put("copy", COPY, { before: "false" });
    first.triggers.after = () => Promise.reject(new Error("it ends before"));
    await first.mql("insert into /matrix/box name='a', size=1");
    await first.close();
    controllers = [];
    const second = new Controller("second");
    await second.triggers.maintain("matrix");
    const copies = await second.until(
      () => second.mql("select of from /matrix/copy"),
      (rows) => rows.length === 1,
    );
    expect(copies).toMatchObject([{ of: "aINSERT" }]);
  });
});

/**
 * A controller that dies at one of its writes of objects; `bury` ends its leases, as time would. Its writes of keys
 * stop as well. The survivor takes its work over in two steps; a write of the dead one between them would prevent that.
 */
function mortalController(isWritten: boolean) {
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
  const controller = new Controller("dying", undefined, { ...data, system: () => data.system(), tenant });
  // Its calls never return, so it cannot be closed like the others.
  controllers.pop();
  return {
    controller,
    dieAt(writes: number): Promise<void> {
      mortality = new Mortality(writes, isWritten);
      return mortality.died;
    },
    async bury(): Promise<void> {
      for (const lease of leases) await lease.revoke();
      controller.close().catch(() => undefined);
    },
  };
}

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, a change reaches its trigger by another one (that write came to pass: %j)",
  async (isWritten) => {
    const survivor = await opened();
    await survivor.put("copy", "odb.mql('insert into /matrix/copy of=?, size=?', OBJECT.name, OBJECT.size)", {
      before: "false",
    });
    const copies = "select of, size from /matrix/copy order by of";
    let deaths = 0;
    for (; ; deaths += 1) {
      const dying = mortalController(isWritten);
      const { controller } = dying;
      await controller.mql(BOXES);
      const died = dying.dieAt(deaths);
      const name = `box${deaths}`;
      const lived = controller
        .mql(`insert into /matrix/box name='${name}', size=${deaths}`)
        .then(() =>
          controller.until(
            () => controller.mql(copies),
            (rows) => rows.some(({ of }) => of === name),
          ),
        )
        .then(() => controller.close())
        .then(() => true);
      if (await Promise.race([lived, died.then(() => false)])) break;
      await dying.bury();
      const boxes = await survivor.mql(BOXES);
      const wanted = boxes.map(({ name, size }) => ({ of: name, size }));
      await survivor.until(
        () => survivor.mql(copies),
        (rows) => rows.length >= wanted.length,
      );
      expect(await survivor.mql(copies), `dead at write ${deaths}`).toEqual(wanted);
    }
    // At least: the intent, the object, the copy and the end of the intent.
    expect(deaths).toBeGreaterThanOrEqual(4);
    expect(await survivor.mql("select id from /matrix/system/triggerevent")).toEqual([]);
  },
);

/** On the cluster each life takes a second. */
const WRITES_BETWEEN = onCluster && TIMES === 1 ? 5 : 1;

test.each(onCluster ? [true] : [true, false])(
  "at whatever write its controller dies, a batch is counted once in each object, and told (that write came to pass: %j)",
  async (isWritten) => {
    const survivor = await opened();
    await survivor.put("count", 'if ACTION ~= "DELETE" then OBJECT.size = ((OLD and OLD.size) or 0) + 1 end');
    await survivor.put("tell", "odb.mql('insert into /matrix/copy of=?', ACTION .. OBJECT.name .. OBJECT.size)", {
      before: "false",
    });
    const copies = "select of from /matrix/copy limit 10000";
    const wanted: string[] = [];
    let deaths = 0;
    for (let lived = false; !lived; deaths += WRITES_BETWEEN) {
      const dying = mortalController(isWritten);
      const { controller } = dying;
      await controller.mql(BOXES);
      const died = dying.dieAt(deaths);
      const [a, b] = [`a${deaths}_`, `b${deaths}_`];
      const batch = `begin insert into /matrix/box (name) values ('${a}'), ('${b}');
        update /matrix/box set owner='x', notes = notes + ['n'] where name in ('${a}', '${b}'); delete from /matrix/box where name='${b}'; end`;
      const made = controller.mql(batch).then(() => true);
      lived = await Promise.race([made, died.then(() => false)]);
      await dying.bury();
      await survivor.query.maintain("matrix");
      expect(
        await survivor.mql(`select size, owner, notes from /matrix/box where name like '%${deaths}_'`),
        `dead at write ${deaths}`,
      ).toEqual([{ size: 2, owner: "x", notes: ["n"] }]);
      wanted.push(`INSERT${a}1`, `INSERT${b}1`, `UPDATE${a}2`, `UPDATE${b}2`, `DELETE${b}2`);
      await survivor.until(
        () => survivor.mql(copies),
        (rows) => wanted.every((name) => rows.some(({ of }) => of === name)),
      );
    }
    const told = (await survivor.mql(copies)).map(({ of }) => String(of));
    // An insert made before its controller died exists when it is repeated, so it is reported again as an update.
    expect(told.filter((one) => !/^UPDATE.*_1$/.test(one)).sort()).toEqual([...wanted].sort());
    expect(deaths).toBeGreaterThan(5);
  },
);

/** Reports the size that the previous run for the object saw. */
const SEQUENCE = `local last = odb.mql("select size from /matrix/copy where of=?", OBJECT.name).data[1]
  odb.mql('insert into /matrix/copy of=?, size=?', OBJECT.name, OBJECT.size)
  odb.mql('insert into /matrix/event text=?', (last and last.size or -1) .. '>' .. OBJECT.size)`;

test("of one object's many changes, made by two controllers, each is told once and in their order", async () => {
  const first = await opened();
  const second = new Controller("second", new Set(["first", "second"]));
  await second.mql(BOXES);
  await first.put("tell", SEQUENCE, { before: "false" });
  const sizes = Array.from({ length: onCluster ? 60 : TIMES > 1 ? 400 : 150 }, (_, at) => at);
  for (const size of sizes) await (size % 2 ? first : second).mql(`insert into /matrix/box name='one', size=${size}`);
  const rows = "select text from /matrix/event limit 10000";
  const half = (controller: Controller) =>
    controller.until(
      () => controller.mql(rows),
      (found) => found.length >= sizes.length,
    );
  await Promise.race([half(first), half(second)]);
  const told = (await first.mql(rows)).map(({ text }) => String(text));
  expect(told.sort()).toEqual(sizes.map((size) => `${size - 1}>${size}`).sort());
});

test("changes of one object within a millisecond are kept each by itself", async () => {
  const { objects } = await opened();
  const aside = new Aside({ objects, ospaceOf: (tenant) => Promise.resolve(`/${tenant}`) });
  const event = {
    tenant: "matrix",
    class: "/matrix/box",
    id: "box:a",
    action: "UPDATE",
    fields: {},
    traceparent: "",
  } as const;
  const trigger = { class: "/matrix/box", name: "tell" } as TriggerDefinition;
  const errands = [5.001, 5.002, 5.999].map((timeMs) => ({ event: { ...event, timeMs }, trigger }));
  const times = async (): Promise<readonly number[]> => {
    const kept: number[] = [];
    for await (const page of aside.waiting("matrix")) kept.push(...page.map((one) => one.event.timeMs));
    return kept.sort();
  };
  await aside.put(errands, { state: "waiting", owner: "first" });
  expect(await times()).toEqual([5.001, 5.002, 5.999]);
  await aside.remove(errands[1]!);
  expect(await times()).toEqual([5.001, 5.999]);
});

describe("a change that happened before its trigger was", () => {
  /** A controller that holds its changes back until the test lets them in. */
  async function waiting() {
    const controller = await opened();
    let isOpen = false;
    const after = controller.triggers.after.bind(controller.triggers);
    controller.triggers.after = (...given) => (isOpen ? after(...given) : Promise.reject(new Error("not yet")));
    const said = (word: string): string => `odb.mql('insert into /matrix/event text=?', '${word} ' .. OBJECT.name)`;
    const { mql, put } = bound(controller);
    await put("tell", said("first"), { before: "false" });
    await mql("insert into /matrix/box name='a'");
    /** Texts reported once the changes of all these objects were processed, which happens concurrently. */
    const told = async (...objects: readonly string[]): Promise<readonly unknown[]> => {
      isOpen = true;
      const rows = await controller.until(
        () => mql("select text from /matrix/event order by text"),
        (found) => objects.every((name) => found.some(({ text }) => String(text).endsWith(` ${name}`))),
      );
      return rows.map(({ text }) => text);
    };
    return { controller, mql, put, said, told };
  }

  test("changed, is run by the text that was stored then, and later ones by the later text", async () => {
    const { mql, put, said, told } = await waiting();
    await put("tell", said("second"), { before: "false", level: "3" });
    await put("tell", said("third"), { before: "false" });
    await mql("insert into /matrix/box name='b'");
    expect(await told("a", "b")).toEqual(["first a", "third b"]);
  });

  test("removed, is not run by another one of its name", async () => {
    const { controller, mql, put, said, told } = await waiting();
    await put("other", said("other"), { before: "false" });
    await put("tell", said("changed"), { before: "false" });
    await controller.triggers.remove(admin, { class: "/matrix/box", name: "tell" });
    await put("tell", said("second"), { before: "false" });
    await controller.triggers.remove(admin, { class: "/matrix/box", name: "other" });
    await mql("insert into /matrix/box name='b'");
    expect(await told("b")).toEqual(["second b"]);
  });

  test("disabled, is not run", async () => {
    const { mql, put, said, told } = await waiting();
    await put("other", said("other"), { before: "false" });
    await put("tell", said("second"), { before: "false", disable: "true" });
    await mql("insert into /matrix/box name='b'");
    expect(await told("b")).toEqual(["other b"]);
  });
});

test("a change waits for an earlier one of its object that a controller left which is gone", async () => {
  const first = await opened();
  await first.put("tell", SEQUENCE, { before: "false" });
  first.triggers.after = () => Promise.reject(new Error("it ends before"));
  await first.mql("insert into /matrix/box name='one', size=0");
  const second = new Controller("second");
  await second.mql(BOXES);
  await second.mql("insert into /matrix/box name='one', size=1");
  await second.until(
    () => second.mql("select id from /matrix/system/triggerevent"),
    (rows) => rows.length === 1,
  );
  expect(await second.mql("select text from /matrix/event")).toEqual([]);
  await second.put("tell", "odb.mql(\"insert into /matrix/event text='by a later text'\")", { before: "false" });
  await first.close();
  controllers = controllers.filter((one) => one !== first);
  const told = await second.until(
    () => second.mql("select text from /matrix/event order by text"),
    (rows) => rows.length === 2,
  );
  expect(told.map(({ text }) => text)).toEqual(["-1>0", "0>1"]);
});

test("before a write, one that counts counts every insert of batches that are made at the same time", async () => {
  const controller = await opened();
  await controller.put("count", "OBJECT.size = ((OLD and OLD.size) or 0) + 1");
  const insert = "begin insert into /matrix/box name='b'; insert into /matrix/box name='c' end";
  await Promise.all(Array.from({ length: 12 }, () => controller.mql(insert)));
  expect(await controller.mql("select size from /matrix/box limit 10")).toEqual([{ size: 12 }, { size: 12 }]);
});

describe("a batch that is repeated", () => {
  const BOX_RULE = "/matrix/rules/box";
  const LINE_RULE = "/matrix/rules/line";
  const RULES: readonly (readonly [string, string])[] = [
    [BOX_RULE, "--class=/matrix/box\n--parser=json\n"],
    [LINE_RULE, "--class=/matrix/line\n--parser=json\n"],
  ];
  const source = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };

  /** Ingest of the controller. `failing`: only the first rows of each class are stored, then the store fails. */
  function ingestOf({ objects }: Controller, rules: RuleService, failing = false): IngestService {
    const partly: Pick<Objects, "ingest"> = {
      ingest: async (principal, path, records, options) => {
        await objects.ingest(principal, path, records.slice(0, 5), options);
        throw new AppError("unavailable", "away");
      },
    };
    const over = failing ? partly : objects;
    const classes = { runs: RUNS.path, gaps: GAPS.path };
    return new IngestService({
      stores: engine,
      runtime: testRuntime(realClock),
      keys: TEST_KEYS,
      rules,
      records: new RecordWriter({ objects: over, classes, clock: realClock }),
      commands: { accept: () => Promise.resolve(new Set<string>()) },
      sent: EVERYTHING_SENT,
      ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
    });
  }

  async function ruled(controller: Controller): Promise<RuleService> {
    const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects: controller.objects });
    for (const [key, text] of RULES) await rules.put(admin, key, text);
    return rules;
  }

  const numbers = Array.from({ length: 12 }, (_, at) => String(at).padStart(2, "0"));
  const boxes = (letter: string) => numbers.map((at) => JSON.stringify({ name: letter + at, text: at, extra: "e" }));
  const lines = numbers.map((at) => JSON.stringify({ text: at }));

  test("makes the rows of the first time, whatever was edited meanwhile", async () => {
    const controller = await opened();
    const { mql } = bound(controller);
    await mql("alter class /matrix/box add column text varchar");
    await mql("alter class /matrix/box add column spare varchar");
    const rules = await ruled(controller);
    await controller.put("mark", "OBJECT.owner = 'z' OBJECT.size = 1 OBJECT.spare = 's'");
    await controller.put("add", "OBJECT.text = OBJECT.text .. ' first'");
    await controller.put("stamp", "OBJECT.text = OBJECT.text .. ' first'", { of: "/matrix/line" });
    await controller.put("tell", "odb.mql('insert into /matrix/copy of=?', OBJECT.name)", { before: "false" });
    const entries = [recordsEntry(1, boxes("b"), BOX_RULE), recordsEntry(2, lines, LINE_RULE)];
    const outbox = new TestOutbox(source);
    await expect(outbox.send(ingestOf(controller, rules, true), entries)).rejects.toThrow("away");
    const copied = (writer: Controller, count: number) =>
      writer.until(
        () => mql("select of from /matrix/copy limit 1000"),
        (rows) => rows.length === count,
      );
    await copied(controller, 5);

    await controller.put("mark", "OBJECT.owner = 'a' OBJECT.size = 2");
    await controller.triggers.remove(admin, { class: "/matrix/box", name: "add" });
    await controller.put("stamp", "OBJECT.text = OBJECT.text .. ' second'", { of: "/matrix/line" });
    await controller.put("note", "OBJECT.notes = {'new'}");
    await mql("alter class /matrix/box add column extra varchar");
    await mql("alter class /matrix/box drop column spare");
    await mql("alter class /matrix/box add key text");
    const second = new Controller("second");
    const ingest = ingestOf(
      second,
      new RuleService({ stores: engine, entries: testEntries(engine), objects: second.objects }),
    );
    await outbox.send(ingest, entries);
    await outbox.send(ingest, entries);

    const read = "select id, owner, size, text, notes, extra from /matrix/box order by id limit 1000";
    expect(await mql(read)).toEqual(
      numbers.map((at) => ({ id: `box:b${at}`, owner: "z", size: 1, text: `${at} first`, notes: null, extra: null })),
    );
    const told = await mql("select text from /matrix/line limit 1000");
    expect(told.map(({ text }) => String(text)).sort()).toEqual(numbers.map((at) => `${at} first`));
    expect(await mql("select msg from /matrix/consolelog/rule limit 10")).toEqual([]);
    await copied(second, numbers.length);

    await outbox.send(ingest, [recordsEntry(3, boxes("c").slice(0, 1), BOX_RULE)]);
    expect((await mql(read)).filter(({ id }) => String(id).startsWith("box:c"))).toEqual([
      { id: "box:c00:00", owner: "a", size: 2, text: "00", notes: ["new"], extra: "e" },
    ]);
  });

  test("is counted once in each object by a trigger before it; one with a time of its own is a write of its own", async () => {
    const controller = await opened();
    const { mql } = bound(controller);
    const rules = await ruled(controller);
    await controller.put("count", "OBJECT.size = ((OLD and OLD.size) or 0) + 1 OBJECT.notes = {tostring(OBJECT.size)}");
    const entries = [recordsEntry(1, boxes("b"), BOX_RULE)];
    const outbox = new TestOutbox(source);
    await expect(outbox.send(ingestOf(controller, rules, true), entries)).rejects.toThrow("away");
    for (let time = 0; time < 2; time += 1) await outbox.send(ingestOf(controller, rules), entries);
    const counted = () => mql("select size, notes from /matrix/box limit 1000");
    expect(await counted()).toEqual(numbers.map(() => ({ size: 1, notes: ["1"] })));
    await outbox.send(ingestOf(controller, rules), [recordsEntry(2, boxes("b"), BOX_RULE)]);
    expect(await counted()).toEqual(numbers.map(() => ({ size: 2, notes: ["2"] })));
  });

  test("is asked for anew where its class was dropped and made again", async () => {
    const controller = await opened();
    const { mql } = bound(controller);
    const rules = await ruled(controller);
    const entries = [recordsEntry(1, lines, LINE_RULE)];
    const outbox = new TestOutbox(source);
    const ingest = ingestOf(controller, rules);
    const pinned = await outbox.batches(ingest, entries);
    await mql("drop class /matrix/line; create class /matrix/line (text varchar) with kind='record'");
    await expect(ingest.accept(source, pinned)).rejects.toMatchObject({ details: { reason: PIN_REFUSED } });
    outbox.forget();
    await outbox.send(ingest, entries);
    expect(await mql("select text from /matrix/line limit 1000")).toHaveLength(numbers.length);
  });
});

test("only changes that a trigger wants told are told", async () => {
  const { mql, first, ...controller } = bound(await opened());
  await mql("insert into /matrix/box name='silent'");
  await controller.put("tell", "DATACHANGE = OBJECT.size == 1");
  await mql("insert into /matrix/box (name, size) values ('a', 1), ('b', 2)");
  await controller.put("tell", "DATACHANGE = true odb.mql('insert into /matrix/event text=?', ACTION)", {
    before: "false",
  });
  await mql("delete from /matrix/box where name='a'");
  await first.until(
    () => mql("select text from /matrix/event"),
    (rows) => rows.length === 1,
  );
  await first.until(
    () => Promise.resolve(first.told),
    (told) => told.length === 2,
  );
  expect(first.told.map(({ action, id }) => [action, id])).toEqual([
    ["INSERT", "box:a"],
    ["DELETE", "box:a"],
  ]);
});

test("every controller works by a trigger once it is stored", async () => {
  const first = await opened();
  const second = new Controller("second");
  await second.mql(BOXES);
  await first.put("guard", "return false");
  await expect(second.mql("insert into /matrix/box name='a'")).rejects.toThrow("refused");
  await first.triggers.remove(admin, { class: "/matrix/box", name: "guard" });
  await second.mql("insert into /matrix/box name='a'");
});

describe("the interface", () => {
  test("answers sources and attributes as texts, and removes what a query or a form names", async () => {
    const { triggers } = await opened();
    await using http = await openTestHttp({ endpoints: triggerRoutes(triggers) });
    const session = await http.signIn("admin");
    const attr = { disable: "false", before: "true", level: "5" };
    const payload = { class: "/matrix/box", name: "t", script: "-- nothing", attr };
    expect(await http.call(session, { url: "/mxobject/trigger", method: "PUT", payload })).toMatchObject({
      status: "ok",
    });
    const url = "/mxobject/trigger?class=/matrix/box";
    const listed = await http.call(session, { url });
    expect(listed).toMatchObject({
      message: [{ class: "/matrix/box", vtime: expect.any(Number) as number, script: { t: "-- nothing" } }],
    });
    const [entry] = (listed as { message: [{ attr: Record<string, string> }] }).message;
    expect(JSON.parse(entry.attr["t"] ?? "")).toEqual({ ...attr, language: "lua" });
    expect(await http.call(session, { url: `${url}&name=t`, method: "DELETE" })).toMatchObject({ status: "ok" });
    expect(await http.call(session, { url })).toMatchObject({ message: [{ script: {}, attr: {}, vtime: 0 }] });
    await http.call(session, { url: "/mxobject/trigger", method: "PUT", payload });
    const byForm = {
      url: "/mxobject/trigger",
      method: "DELETE",
      payload: new URLSearchParams({ class: "/matrix/box", name: "t" }).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded" },
    } as const;
    expect(await http.call(session, byForm)).toEqual({ status: "ok", message: "" });
    expect(await http.call(session, byForm)).toMatchObject({ code: "not_found" });
    expect(await http.call(session, { url: `${url}&name=t`, method: "DELETE" })).toMatchObject({ code: "not_found" });
  });

  test.each([
    [{ script: "x = (" }, "syntax"],
    [{ script: "while true do end return" }, undefined],
    [{ script: "// language: javascript\nvar x = (" }, "syntax"],
    [{ script: "x", attr: { language: "perl" } }, "invalid"],
    [{ script: "", attr: { before: "maybe" } }, "invalid"],
    [{ script: "", attr: { level: "high" } }, "invalid"],
    [{ script: "", name: "a/b" }, "invalid"],
    [{ script: "", class: "/matrix/none" }, "not_found"],
    [{ script: "", class: "/matrix/system/triggerevent" }, "denied"],
    [{ script: `--${"x".repeat(70_000)}` }, "too_large"],
  ])("%j is answered with %s", async (given, code) => {
    const { triggers } = await opened();
    const stored = triggers.put(admin, { class: "/matrix/box", name: "t", ...given });
    if (code === undefined) await stored;
    else await expect(stored).rejects.toMatchObject({ code });
  });

  test("that stop with a user are told to who deletes him, as far as they may be seen", async () => {
    const controller = await opened();
    await controller.put("keep", "", {});
    expect(await controller.triggers.endsWith(admin, "administrator")).toEqual([
      "Triggers stop until another user saves them: /matrix/box#keep.",
    ]);
    expect(await controller.triggers.endsWith(admin, "other")).toEqual([]);
    expect(await controller.triggers.endsWith({ ...admin, grants: ["users:write"] }, "administrator")).toEqual([]);
    expect(await controller.triggers.endsWith({ ...admin, data: [] }, "administrator")).toEqual([]);
  });

  test("takes unrestricted rights on the class and those below it, and the permission", async () => {
    const { triggers } = await opened();
    const input = { class: "/matrix/box", name: "t", script: "" };
    const narrow = { ...admin, data: [...admin.data, { class: "/matrix/box/crate", access: "read" } as const] };
    await expect(triggers.put(narrow, input)).rejects.toBeInstanceOf(AppError);
    await expect(triggers.put(testPrincipal("viewer"), input)).rejects.toMatchObject({ code: "denied" });
    await expect(triggers.put({ ...testPrincipal(), byToken: "part" }, input)).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("of which the token has a part") as string,
    });
    await expect(triggers.remove(narrow, { class: "/matrix/box", name: "t" })).rejects.toMatchObject({
      code: "denied",
    });
  });
});

function bound(first: Controller) {
  return {
    first,
    mql: (text: string) => first.mql(text),
    put: (...of: Parameters<Controller["put"]>) => first.put(...of),
    log: (name: string) => first.log(name),
  };
}
