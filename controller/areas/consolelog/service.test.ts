import { withReplaced } from "../../../test/helpers/objects/replaced.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ulidOf } from "../../../common/ids.ts";
import {
  CONSOLE_LOG_NAME_MAX_CHARACTERS,
  CONSOLE_LOG_POSITION_MAX_IDS,
  CONSOLE_LOG_SETTLED_MS,
  CONSOLE_LOG_TTL_DAYS,
  DAY_SECONDS,
} from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService, type NewRecord, type UnrestrictedObjects } from "../objects/index.ts";
import type { DataRule, Principal } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "../query/index.ts";
import { CONSOLE_LOG_CLASSES, ConsoleLogService, consoleLogPath, levelOf } from "./index.ts";
import { BEGINNING, nextPosition, readPosition, writePosition } from "./position.ts";

const ADMIN = testPrincipal();
const OTHER = testPrincipal("administrator", "second");
const RULE = "/matrix/rules/access";
/** Deadline of tests that write thousands of entries to a real cluster while other suites run. */
const LONG_MS = 300_000;
const BEGAN_MS = Date.now() - 3_600_000;

let engine: TestEngine;
let objects: ObjectService;
let logs: ConsoleLogService;

beforeEach(async () => {
  engine = await openTestEngine();
  objects = openObjects();
  logs = new ConsoleLogService({ objects, clock: realClock });
});
afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function openObjects(): ObjectService {
  const opened = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  for (const definition of CONSOLE_LOG_CLASSES) opened.registerSystemClass(definition);
  return opened;
}

interface Said {
  readonly msg: string;
  readonly level?: number;
  readonly name?: string;
  readonly host?: string;
  readonly atMs?: number;
}

let said = 0;

function record({ msg, level = levelOf("error"), name = RULE, host = "web-1", atMs = BEGAN_MS }: Said): NewRecord {
  return { values: { name, level, msg, host }, timeMs: atMs, identity: `said/${said++}` };
}

async function say(...what: readonly Said[]): Promise<void> {
  const records = what.map(record);
  for (let at = 0; at < records.length; at += 1_000)
    await objects.unrestricted.ingest(ADMIN, `/matrix${consoleLogPath("rule")}`, records.slice(at, at + 1_000));
}

const ALL = { kind: "rule", name: RULE, levels: [] } as const;
const texts = (page: { readonly logs: readonly { readonly msg?: string }[] }) => page.logs.map(({ msg }) => msg);

/** All entries after the position, page by page, and the last position. */
async function readAll(options: { readonly limit?: number; readonly position?: string } = {}) {
  const found: (string | undefined)[] = [];
  let { position } = options;
  for (;;) {
    const page = await logs.read(ADMIN, ALL, { ...options, ...(position !== undefined && { position }) });
    position = page.position;
    if (page.logs.length === 0) return { found, position };
    found.push(...texts(page));
  }
}

function rightsOf(rule: Partial<DataRule>): Principal {
  return {
    ...testPrincipal("viewer"),
    grants: ["consolelog:read", "consolelog:write"],
    data: [{ class: "/matrix", access: "read", ...rule }],
  };
}

describe("reading", () => {
  test("answers an entry with its times, level and message, the oldest first", async () => {
    await say({ msg: "second", atMs: BEGAN_MS + 5 }, { msg: "first" });
    const { logs: found } = await logs.read(ADMIN, ALL);
    expect(found).toEqual([
      { edtime: BEGAN_MS, level: 4, msg: "first", host: "web-1" },
      { edtime: BEGAN_MS + 5, level: 4, msg: "second", host: "web-1" },
    ]);
  });

  test(
    "thousands of entries come in their order, each once",
    async () => {
      const count = onCluster ? 2_000 : 10_000;
      // Dense at first, sparse later.
      const all = Array.from({ length: count }, (_, at) => ({
        msg: String(at),
        atMs: BEGAN_MS + Math.floor((at * (10_000 / count)) ** 1.6),
      }));
      await say(...all);
      const { found } = await readAll({ limit: 500 });
      expect(found).toHaveLength(all.length);
      const late = count / 2;
      expect(found.slice(late)).toEqual(all.slice(late).map(({ msg }) => msg));
      expect(new Set(found).size).toBe(all.length);
    },
    LONG_MS,
  );

  test("keeps what is said with half of a character, and does not cut one in two", async () => {
    const name = `${"n".repeat(CONSOLE_LOG_NAME_MAX_CHARACTERS - 1)}\u{1F600}`;
    const entry = { level: levelOf("error"), msg: "a \ud800 b", timeMs: BEGAN_MS, about: { raw: "r\udc00" } };
    await logs.append(ADMIN, { kind: "rule", name, run: "half", beganMs: BEGAN_MS, entries: [entry] });
    const { logs: kept } = await logs.read(ADMIN, { kind: "rule", name: name.slice(0, -2), levels: [] });
    expect(kept).toMatchObject([{ msg: "a \\ud800 b", raw: "r\\udc00" }]);
  });

  test("without a limit takes 200 entries, and the next read the others", async () => {
    await say(...Array.from({ length: 203 }, (_, at) => ({ msg: String(at), atMs: BEGAN_MS + at })));
    const first = await logs.read(ADMIN, ALL);
    expect(texts(first)).toEqual(Array.from({ length: 200 }, (_, at) => String(at)));
    const rest = await logs.read(ADMIN, ALL, { position: first.position });
    expect(texts(rest)).toEqual(["200", "201", "202"]);
  });

  test("entries of one millisecond come each once, however many", async () => {
    const all = Array.from({ length: 1_500 }, (_, at) => ({ msg: String(at) }));
    await say(...all);
    const { found } = await readAll({ limit: 100 });
    expect(found).toHaveLength(all.length);
    expect(new Set(found).size).toBe(all.length);
  });

  test("levels are named by number or name in any case, times include their ends", async () => {
    await say(...[0, 1, 2, 3, 4, 5, 6].map((level) => ({ msg: String(level), level, atMs: BEGAN_MS + level })));
    const read = async (selection: object) => texts(await logs.read(ADMIN, { ...ALL, ...selection }));
    expect(await read({ levels: ["1", "ERROR", "4"] })).toEqual(["1", "4"]);
    expect(await read({ levels: ["panic"] })).toEqual(["6"]);
    expect(await read({ mintime: BEGAN_MS + 2, maxtime: BEGAN_MS + 4 })).toEqual(["2", "3", "4"]);
    expect(await read({ mintime: BEGAN_MS + 4, maxtime: BEGAN_MS + 2 })).toEqual([]);
    expect(await read({ name: "/matrix/rules/other" })).toEqual([]);
    for (const level of ["7", "-1", "loud", ""])
      await expect(read({ levels: [level] })).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("a position", () => {
  test("goes on with what is new, also with what comes late among what was read", async () => {
    const nowMs = Date.now();
    await say({ msg: "a", atMs: nowMs - 10 }, { msg: "b", atMs: nowMs });
    const { found, position } = await readAll();
    expect(found).toEqual(["a", "b"]);
    await say({ msg: "late", atMs: nowMs - 5 }, { msg: "c", atMs: nowMs + 5 });
    expect((await readAll({ position })).found).toEqual(["late", "c"]);
  });

  test("goes on with what is new after a removal", async () => {
    await say({ msg: "old", atMs: Date.now() });
    const { position } = await readAll();
    await logs.remove(ADMIN, ALL);
    await say({ msg: "new", atMs: Date.now() + 1 });
    expect((await readAll({ position })).found).toEqual(["new"]);
  });

  test("of another name, level, time, kind or tenant is refused, and so is what is none", async () => {
    await say({ msg: "a" });
    const { position } = await logs.read(ADMIN, ALL);
    const others = [{ name: "/matrix/rules/other" }, { levels: ["4"] }, { mintime: 1 }, { maxtime: 1 }];
    for (const other of [...others, { kind: "trigger" } as const])
      await expect(logs.read(ADMIN, { ...ALL, ...other }, { position })).rejects.toMatchObject({ code: "invalid" });
    await expect(logs.read(OTHER, ALL, { position })).rejects.toMatchObject({ code: "invalid" });
    for (const text of ["x", `${position}Z`, position + position, `${position}${"0".repeat(26 * 100)}`])
      await expect(logs.read(ADMIN, ALL, { position: text })).rejects.toMatchObject({ code: "invalid" });
    const same = { ...ALL, levels: ["0", "1", "2", "3", "4", "5", "6"] };
    expect(texts(await logs.read(ADMIN, same, { position }))).toEqual([]);
  });

  test("names a bounded number of entries, and loses none of those behind it", () => {
    const nowMs = BEGAN_MS;
    const ids = Array.from({ length: 500 }, (_, at) => ulidOf(nowMs - 500 + at, new Uint8Array(10)));
    let position = BEGINNING;
    const read: string[] = [];
    for (;;) {
      const left = ids.filter((id) => id > position.base && !position.told.includes(id));
      const page = left.slice(0, 90);
      read.push(...page);
      position = nextPosition({ from: position, ids: page, isFull: page.length === 90, nowMs });
      expect(position.told.length).toBeLessThanOrEqual(CONSOLE_LOG_POSITION_MAX_IDS);
      expect(readPosition(writePosition(position, "q"), "q")).toEqual(position);
      if (left.length === 0) break;
    }
    expect(read).toEqual(ids);
    const settled = nextPosition({ from: position, ids: [], isFull: false, nowMs: nowMs + CONSOLE_LOG_SETTLED_MS });
    expect(settled.told).toEqual([]);
  });
});

describe("removing", () => {
  test("takes the entries of one name, truncating all of the kind, and a repetition brings none back", async () => {
    const kept = record({ msg: "kept", name: "/matrix/rules/other" });
    const gone = record({ msg: "gone" });
    const write = () => objects.unrestricted.ingest(ADMIN, "/matrix/consolelog/rule", [gone, kept]);
    await write();
    expect(await logs.remove(ADMIN, ALL)).toBe(1);
    await write();
    expect((await readAll()).found).toEqual([]);
    expect(texts(await logs.read(ADMIN, { ...ALL, name: "/matrix/rules/other" }))).toEqual(["kept"]);
    expect(await logs.truncate(ADMIN, "trigger")).toBe(0);
    expect(await logs.truncate(ADMIN, "rule")).toBe(1);
    await write();
    expect(texts(await logs.read(ADMIN, { ...ALL, name: "/matrix/rules/other" }))).toEqual([]);
  });

  test("takes thousands of entries", async () => {
    const count = onCluster ? 1_500 : 5_000;
    await say(...Array.from({ length: count }, (_, at) => ({ msg: String(at), atMs: BEGAN_MS + at })));
    expect(await logs.truncate(ADMIN, "rule")).toBe(count);
    expect((await readAll()).found).toEqual([]);
  });
});

describe("an entry", () => {
  const ttlMs = CONSOLE_LOG_TTL_DAYS * DAY_SECONDS * 1_000;
  const asObjects = async (of: ObjectService) => {
    const found: unknown[] = [];
    for await (const page of of.unrestricted.read(ADMIN, { class: "/matrix/consolelog/rule", subtree: false }))
      found.push(...page.map(({ values }) => values["msg"]));
    return found.sort();
  };

  test("of less than 30 days is there, and of more is not, as an object neither", async () => {
    expect(CONSOLE_LOG_TTL_DAYS).toBe(30);
    const nowMs = Date.now();
    await say({ msg: "older", atMs: nowMs - ttlMs - 1_000 }, { msg: "younger", atMs: nowMs - ttlMs + 3_600_000 });
    expect((await readAll()).found).toEqual(["younger"]);
    expect(await asObjects(objects)).toEqual(["younger"]);
  });

  test.skipIf(onCluster)("goes when its 30 days are over, and those after it stay", async () => {
    let aheadMs = 0;
    const clock: Clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
    await using moved = await openTestEngine({ clock });
    const over = new ObjectService({ visible: visibleObjects, stores: moved, runtime: testRuntime(clock) });
    for (const definition of CONSOLE_LOG_CLASSES) over.registerSystemClass(definition);
    const read = async () => texts(await new ConsoleLogService({ objects: over, clock }).read(ADMIN, ALL));
    await over.unrestricted.ingest(ADMIN, "/matrix/consolelog/rule", [record({ msg: "first", atMs: clock.nowMs() })]);
    aheadMs = ttlMs - 60_000;
    await over.unrestricted.ingest(ADMIN, "/matrix/consolelog/rule", [record({ msg: "second", atMs: clock.nowMs() })]);
    expect([await read(), await asObjects(over)]).toEqual([
      ["first", "second"],
      ["first", "second"],
    ]);
    aheadMs = ttlMs + 60_000;
    expect([await read(), await asObjects(over)]).toEqual([["second"], ["second"]]);
    await over.close();
  });
});

describe("rights", () => {
  test("rows and columns that are hidden stay hidden, and are not removed", async () => {
    await say({ msg: "mine", host: "mine" }, { msg: "theirs", host: "theirs", atMs: BEGAN_MS + 1 });
    const few = rightsOf({ where: "host = 'mine'", hidden: ["msg"] });
    expect((await logs.read(few, ALL)).logs).toEqual([{ edtime: BEGAN_MS, level: 4, host: "mine" }]);
    expect(await logs.remove(few, ALL)).toBe(1);
    expect(await logs.truncate(few, "rule")).toBe(0);
    expect((await readAll()).found).toEqual(["theirs"]);
  });

  test("who may remove entries and read none removes those that the rules open", async () => {
    await say({ msg: "mine", host: "mine" }, { msg: "theirs", host: "theirs", atMs: BEGAN_MS + 1 });
    const remover = { ...rightsOf({ where: "host = 'mine'" }), grants: ["consolelog:write"] };
    await expect(logs.read(remover, ALL)).rejects.toMatchObject({ code: "denied" });
    expect(await logs.remove(remover, ALL)).toBe(1);
    expect((await readAll()).found).toEqual(["theirs"]);
  });

  test("a class that may not be read is refused, and so is what the permission does not cover", async () => {
    const blind = rightsOf({ access: "none" });
    const follow = () => logs.follow(blind, ALL, { signal: new AbortController().signal, present: () => never() });
    for (const call of [() => logs.read(blind, ALL), () => logs.truncate(blind, "rule"), follow])
      await expect(call()).rejects.toMatchObject({ code: "denied" });
    await expect(logs.truncate(testPrincipal("viewer"), "rule")).rejects.toMatchObject({ code: "denied" });
  });

  test("a neighbour reads, follows and removes nothing", async () => {
    await say({ msg: "mine" });
    expect((await logs.read(OTHER, ALL)).logs).toEqual([]);
    expect(await logs.truncate(OTHER, "rule")).toBe(0);
    expect((await readAll()).found).toEqual(["mine"]);
  });

  test("entries are objects for MQL, which changes none", async () => {
    await say({ msg: "a" }, { msg: "b", level: 2 });
    const query = new QueryService({ objects, runtime: testRuntime(realClock) });
    const found = await query.rows(
      rightsOf({ hidden: ["host"] }),
      "select * from /matrix/consolelog/rule where level = 4",
    );
    expect(found).toEqual([expect.objectContaining({ name: RULE, msg: "a", level: 4 })]);
    expect(found[0]).not.toHaveProperty("host");
    await expect(query.rows(ADMIN, "delete from /matrix/consolelog/rule")).rejects.toMatchObject({ code: "denied" });
  });
});

describe("following", () => {
  let ended: AbortController;
  beforeEach(() => (ended = new AbortController()));
  afterEach(() => ended.abort());

  async function followed(by: ConsoleLogService, present: () => Promise<Principal | undefined>, position?: string) {
    const reader = { signal: ended.signal, present, ...(position !== undefined && { position }) };
    return by.follow(ADMIN, ALL, reader);
  }
  const asAdmin = () => Promise.resolve(ADMIN);

  async function next(pages: AsyncGenerator<{ logs: readonly { msg?: string }[]; position: string }>) {
    const { value } = (await pages.next()) as { value: { logs: readonly { msg?: string }[]; position: string } };
    return { texts: texts(value), position: value.position };
  }

  test("tells what is there, then what is stored, and goes on from a position", async () => {
    await say({ msg: "past" });
    const pages = await followed(logs, asAdmin);
    expect((await next(pages)).texts).toEqual(["past"]);
    const waiting = next(pages);
    await say({ msg: "now", atMs: Date.now() });
    logs.stored("matrix", "rule");
    const { texts: told, position } = await waiting;
    expect(told).toEqual(["now"]);
    await say({ msg: "later", atMs: Date.now() + 1 });
    expect((await next(await followed(logs, asAdmin, position))).texts).toEqual(["later"]);
    ended.abort();
    expect(await pages.next()).toMatchObject({ done: true });
  });

  test("tells what another controller stores", async () => {
    const objectsOfOther = openObjects();
    try {
      const other = new ConsoleLogService({ objects: objectsOfOther, clock: realClock });
      const waiting = next(await followed(other, asAdmin));
      await say({ msg: "over there", atMs: Date.now() });
      expect((await waiting).texts).toEqual(["over there"]);
    } finally {
      ended.abort();
      await objectsOfOther.close();
    }
  });

  test("tells what is stored while it reads, though nothing wakes it later", async () => {
    let isStored = false;
    const reading = withReplaced(objects, { read: readThenStore });
    const quiet = new ConsoleLogService({ objects: reading, clock: { ...realClock, after: () => () => undefined } });
    async function* readThenStore(
      ...request: Parameters<UnrestrictedObjects["read"]>
    ): ReturnType<UnrestrictedObjects["read"]> {
      yield* objects.unrestricted.read(...request);
      if (isStored) return;
      isStored = true;
      await say({ msg: "meanwhile", atMs: Date.now() });
      quiet.stored("matrix", "rule");
    }
    // After this position all entries fit into one window, which is read once.
    const { position } = await logs.read(ADMIN, ALL);
    expect((await next(await followed(quiet, asAdmin, position))).texts).toEqual(["meanwhile"]);
  });

  test("has the rights of the moment, and ends with them", async () => {
    await say({ msg: "a", host: "mine", atMs: Date.now() }, { msg: "b", host: "theirs", atMs: Date.now() });
    let now: Principal | undefined = rightsOf({ where: "host = 'mine'" });
    const pages = await followed(logs, () => Promise.resolve(now));
    expect((await next(pages)).texts).toEqual(["a"]);
    now = rightsOf({ access: "none" });
    await expect(pages.next()).rejects.toMatchObject({ code: "denied" });
    now = undefined;
    await expect((await followed(logs, () => Promise.resolve(now))).next()).rejects.toMatchObject({ code: "denied" });
  });
});

function never(): Promise<undefined> {
  throw new Error("It is refused before.");
}
