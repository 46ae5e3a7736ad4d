import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { RULE_RETRIES_COUNTED_MS } from "../../../common/limits.ts";
import { MemoryAudit, outsideHostObject } from "../../../test/helpers/audit.ts";
import { bundle } from "../../../test/helpers/bundle.ts";
import { realClock, seededRandom } from "../../../test/helpers/clock.ts";
import { testEntries } from "../../../test/helpers/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import {
  BASE_MS,
  EVERYTHING_SENT,
  GAPS,
  recordsEntry,
  RUNS,
  TEST_KEYS,
  TestOutbox,
} from "../../../test/helpers/ingest.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/runtime.ts";
import { HostObjects, ThreadScripts, type HostObject } from "../../scripting/index.ts";
import { threadProcessorMs } from "../../workers/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../consolelog/index.ts";
import { ObjectService, type Objects } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { QueryService, rowGate, SearchService } from "../query/index.ts";
import { queryHostObject } from "../query/host-objects.ts";
import { RuleBodies, RuleMemory, RuleService } from "../rules/index.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, WEBSOCKET_HOST_OBJECT } from "../rules/body-objects.ts";
import { Outbound } from "../../outbound/index.ts";
import { dialHostObject } from "../scripts/http.ts";
import { IngestService, RecordWriter, RuleRetries } from "./index.ts";
import { RETRY_PATH, retryClass } from "./retries.ts";

const ADMIN = testPrincipal();
const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };
const KEY = "/matrix/rules/body";
/** Enough for what ends, so that what never does costs little. */
const STEPS_MAX = 100;
const LINE = "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";

let engine: TestEngine;
let outbox: TestOutbox;
let scripts: ThreadScripts;
let objects: ObjectService;
let rules: RuleService;
let logs: ConsoleLogService;
let authors: Map<string, Principal>;
let objectsOfHost: HostObjects;
let audit: MemoryAudit;

const DIAL = dialHostObject(new Outbound({ networks: ["127.0.0.1/32"], clock: realClock }));
/** As the area of notifications has it. */
const MESSAGE: HostObject = {
  name: "message",
  summary: "",
  functions: [
    {
      name: "send",
      summary: "",
      parameters: [],
      returns: "",
      example: "",
      call: () => Promise.resolve(undefined),
    },
  ],
};

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `rule-bodies-${process.pid}.mjs`);
  const { clock, random, log } = testRuntime(realClock);
  scripts = new ThreadScripts({
    file,
    languages: ["lua", "javascript"],
    functions: () => objectsOfHost.names,
    clock,
    random,
    log,
    processorMs: threadProcessorMs,
  });
});
afterAll(() => scripts.close());

beforeEach(async () => {
  outbox = new TestOutbox(SOURCE);
  audit = new MemoryAudit();
  engine = await openTestEngine();
  const runtime = { ...testRuntime(realClock), random: seededRandom(1) };
  objects = new ObjectService({ stores: engine, runtime });
  for (const definition of [RUNS, GAPS, retryClass(objects), ...CONSOLE_LOG_CLASSES])
    objects.registerSystemClass(definition);
  authors = new Map([["administrator", ADMIN]]);
  logs = new ConsoleLogService({ objects, clock: realClock });
  rules = new RuleService({
    stores: engine,
    entries: testEntries(engine),
    objects,
    engine: scripts,
    tables: (_tenant, name) =>
      Promise.resolve(
        name === "owners"
          ? [
              { key: "a", val: "ann" },
              { key: "b", val: "bob" },
            ]
          : undefined,
      ),
  });
  objectsOfHost = new HostObjects([
    RECORD_HOST_OBJECT,
    RULE_LOCAL_OBJECT,
    WEBSOCKET_HOST_OBJECT,
    DIAL,
    queryHostObject({ query: new QueryService({ objects, runtime }), search: new SearchService({ objects, runtime }) }),
    MESSAGE,
    outsideHostObject(),
    ...(consoleLogArea(logs).hostObjects ?? []),
  ]);
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
    { name: "note", type: "varchar" },
  ] as const;
  for (const path of ["/matrix/line", "/matrix/other"])
    await objects.createClass(ADMIN, { path, kind: "record", columns });
  await objects.createClass(ADMIN, { path: "/matrix/keyed", columns, keys: ["name"] });
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

/** A controller: a second one stands for the controller after a restart. */
function controller(over: Pick<Objects, "ingest"> = objects): IngestService {
  return retrying(over).ingest;
}

/** The same, with its rounds over records that are tried again; `later`: by a clock that is ahead so much. */
function retrying(over: Pick<Objects, "ingest"> = objects, waitingMax?: number) {
  let laterMs = 0;
  const later = (): number => realClock.nowMs() + laterMs;
  const retries = new RuleRetries({
    objects,
    clock: { nowMs: later, monotonicMs: later },
    ...(waitingMax !== undefined && { waitingMax }),
  });
  const runtime = { ...testRuntime(realClock), random: seededRandom(2) };
  const bodies = new RuleBodies({
    engine: {
      // Without a bound of its own a series would have none here, either.
      runEach: ({ stepsMax = NaN, ...series }, host) =>
        scripts.runEach({ ...series, stepsMax: Math.min(stepsMax, STEPS_MAX) }, host),
    },
    hostObjects: () => objectsOfHost,
    author: (_tenant, user) => Promise.resolve(authors.get(user)),
    objects,
    rules,
    logs,
    audit,
    memory: new RuleMemory(realClock),
    runtime,
  });
  const records = new RecordWriter({
    retries,
    objects: over,
    classes: { runs: "/system/policyrun", gaps: "/system/policygap" },
    clock: realClock,
    bodies,
    gate: async (principal, path) =>
      rowGate({ principal, catalog: await objects.catalog(principal) }, path, { objects, clock: realClock }),
  });
  const round = async (afterMs: number): Promise<void> => {
    laterMs += afterMs;
    await retries.run(systemPrincipal("matrix", "/matrix", ""), { rules, write: (batch) => records.write([batch]) });
  };
  const ingest = new IngestService({
    stores: engine,
    runtime,
    rules,
    records,
    keys: TEST_KEYS,
    commands: { accept: () => Promise.resolve(new Set<string>()) },
    sent: EVERYTHING_SENT,
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
  });
  return { ingest, round, tick: (ms: number) => (laterMs += ms) };
}

async function rowsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const page of objects.read(ADMIN, { class: path, subtree: false }))
    rows.push(...page.map((row) => row.values));
  return rows.sort((a, b) => String(a["name"]).localeCompare(String(b["name"])));
}

async function idsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const page of objects.read(ADMIN, { class: path, subtree: false }))
    rows.push(...page.map(({ id, values }) => ({ id, ...values })));
  return rows.sort((a, b) => String(a["id"]).localeCompare(String(b["id"])));
}

async function said(name = KEY): Promise<readonly (string | undefined)[]> {
  return (await logs.read(ADMIN, { kind: "rule", name, levels: [] })).logs.map(({ msg }) => msg);
}

/** Stores the rule and takes lines by it; answers the rows of `/matrix/line`. */
async function take(text: string, lines: readonly string[], by = ADMIN) {
  await rules.put(by, KEY, text);
  await outbox.send(controller(), [recordsEntry(1, lines, KEY)]);
  return rowsOf("/matrix/line");
}

describe.each([
  ["lua", LINE],
  ["javascript", `${LINE}--language=javascript\n`],
])("a body in %s", (language, head) => {
  const isLua = language === "lua";
  const either = (lua: string, javascript: string): string => head + (isLua ? lua : javascript);

  test("sets columns by variables and by setvar, over what the options say", async () => {
    const body = either(
      '_note = OBJECT.name .. "!"\nsetvar("n", getvar("n") * 2)',
      'var _note = OBJECT.name + "!";\nsetvar("n", getvar("n") * 2);',
    );
    expect(await take(body, ["a,1", "b,2"])).toEqual([
      { name: "a", n: 2, note: "a!" },
      { name: "b", n: 4, note: "b!" },
    ]);
  });

  test("finds nothing of the record before it", async () => {
    const body = either(
      "seen = (seen or 0) + 1\nstring.mark = nil\n_note = tostring(seen)",
      'seen = (typeof seen === "undefined" ? 0 : seen) + 1; Array.prototype.mark = (Array.prototype.mark || 0) + 1;\n_note = String(seen + [].mark);',
    ).replace("string.mark = nil\n", "");
    const rows = await take(body, ["a,1", "b,2", "c,3"]);
    expect(new Set(rows.map(({ note }) => note))).toEqual(new Set([isLua ? "1" : "2"]));
  });

  test("makes several rows of a record that was cut, each of which says so", async () => {
    const body =
      '_note = "first"; setClass("/matrix/other"); _note = "second"; setClass("/matrix/other"); _name = "third"';
    await rules.put(ADMIN, KEY, head + body);
    const entry = recordsEntry(1, ["a,1", "b,2"], KEY);
    if (entry.body?.$case !== "records") throw new Error("records");
    entry.body.value.cut = [1];
    await outbox.send(controller(), [entry]);
    const marks = async (path: string) => (await rowsOf(path)).map((row) => row["marks"] ?? null);
    expect(await marks("/matrix/line")).toEqual([null, ["cut"]]);
    const ofOther = await marks("/matrix/other");
    expect(ofOther.filter((one) => one !== null)).toEqual([["cut"], ["cut"]]);
    expect(ofOther).toHaveLength(4);
  });

  test("makes several rows, in several classes, each once however often the batch comes", async () => {
    const text = either(
      '_note = "first"\nsetClass("/matrix/other")\n_note = "second"\nsetClass("/matrix/other")\n_name = "third"',
      '_note = "first";\nsetClass("/matrix/other");\n_note = "second";\nsetClass("/matrix/other");\n_name = "third";',
    );
    await rules.put(ADMIN, KEY, text);
    const entries = [recordsEntry(1, ["a,1", "b,2"], KEY), recordsEntry(2, ["c,3"], KEY)];
    let calls = 0;
    const dying = {
      ingest: (...[principal, path, records]: Parameters<Objects["ingest"]>) => {
        calls += 1;
        return calls === 2
          ? Promise.reject(new AppError("unavailable", "away"))
          : objects.ingest(principal, path, records);
      },
    };
    await expect(outbox.send(controller(dying), entries)).rejects.toMatchObject({ code: "unavailable" });
    // The text is another by now: what was begun goes on as it was.
    await rules.put(ADMIN, KEY, `${LINE}_note = "edited"`);
    const second = controller();
    await second.acknowledged(SOURCE);
    expect(await outbox.send(second, entries)).toBe(2);
    expect((await rowsOf("/matrix/line")).map(({ note }) => note)).toEqual(["first", "first", "first"]);
    expect((await rowsOf("/matrix/other")).map(({ name, note }) => note ?? name).sort()).toEqual([
      "second",
      "second",
      "second",
      "third",
      "third",
      "third",
    ]);
  });

  test("drops records, and its failure is an error of that record at its line", async () => {
    const body = either(
      'if OBJECT.name == "drop" then _IGNORE = true end\nif OBJECT.name == "bad" then error("no good") end',
      'if (OBJECT.name === "drop") _IGNORE = true;\nif (OBJECT.name === "bad") throw new Error("no good");',
    );
    expect(await take(body, ["a,1", "drop,2", "bad,3", "z,4"])).toMatchObject([{ name: "a" }, { name: "z" }]);
    expect(await said()).toEqual([expect.stringMatching(/^\/matrix\/rules\/body:(6|7):\d+: .*no good$/) as string]);
  });

  test("that never ends, grows or eats the memory fails its record alone", async () => {
    const body = either(
      'if OBJECT.name == "loop" then while true do end end\nif OBJECT.name == "grow" then _note = ("x"):rep(200000) end\n' +
        'if OBJECT.name == "eat" then local t, long = {}, ("x"):rep(1000000) while true do t[#t + 1] = long .. #t end end\n' +
        'if OBJECT.name == "rows" then for i = 1, 101 do setClass("/matrix/other") _n = i end end',
      'if (OBJECT.name === "loop") while (true) {}\nif (OBJECT.name === "grow") _note = "x".repeat(200000);\n' +
        'if (OBJECT.name === "eat") { var t = []; while (true) t.push(new Array(1000000).fill(t.length)); }\n' +
        'if (OBJECT.name === "rows") for (var i = 1; i < 102; i++) { setClass("/matrix/other"); _n = i; }',
    );
    const rows = await take(body, ["a,1", "loop,2", "grow,3", "eat,4", "rows,5", "z,6"]);
    expect(rows.map(({ name }) => name)).toEqual(["a", "z"]);
    expect(await said()).toHaveLength(4);
    expect(scripts.ended).toBe(0);
  });

  test("logs into the console log of kind rule, under the key of the rule", async () => {
    await take(either('log.info("saw", OBJECT.name)', 'log.info("saw", OBJECT.name);'), ["a,1"]);
    expect(await said()).toEqual([expect.stringContaining("saw a") as string]);
  });
});

describe("the audit trail", () => {
  const body = `${LINE}if OBJECT.name == "b" or OBJECT.name == "c" then outside.change() end
    if OBJECT.name == "c" then error("after it") end`;

  test("has one entry of a series whose bodies changed something, with the author, and none of others", async () => {
    await take(body, ["b,1", "b,2", "c,3"]);
    expect(audit.entries).toEqual([`administrator RULE ${KEY} outside.change ok`]);
    await outbox.send(controller(), [recordsEntry(2, ["a,1"], KEY)]);
    expect(audit.entries).toHaveLength(1);
  });

  test("is asked before a change: without it the function is not called, and its record is an error", async () => {
    audit.isAway = true;
    expect(await take(body, ["a,1", "b,2"])).toMatchObject([{ name: "a" }]);
    expect([audit.entries, await said()]).toEqual([[], [expect.stringContaining("the trail is away")]]);
  });
});

describe("a rule of options alone", () => {
  const bob = { ...ADMIN, user: "bob" };
  const reading = { ...bob, data: [{ class: "/matrix", access: "read" }] } as const;

  test("writes what its author may write at that moment, row by row", async () => {
    const own = { ...bob, data: [{ class: "/matrix/line", access: "write", where: "n < 3" }] } as const;
    authors.set("bob", own);
    await rules.put(own, KEY, LINE);
    const ingest = controller();
    await outbox.send(ingest, [recordsEntry(1, ["a,1", "b,3", "c,2"], KEY)]);
    expect((await rowsOf("/matrix/line")).map(({ name }) => name)).toEqual(["a", "c"]);
    expect(await said()).toEqual([
      "bob may not write this object of /matrix/line: it does not fulfil the row condition.",
    ]);
    authors.set("bob", reading);
    await outbox.send(ingest, [recordsEntry(2, ["d,1", "e,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toHaveLength(2);
    expect((await said()).slice(1)).toEqual([
      expect.stringContaining("bob may not"),
      expect.stringContaining("bob may not"),
    ]);
  });

  test("waits without an active author, says so, and is told to who deletes him", async () => {
    await rules.put(bob, KEY, LINE);
    const ingest = controller();
    await expect(outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).rejects.toMatchObject({ code: "unavailable" });
    expect(await said()).toEqual([`The rule ${KEY} stands still: its author bob is not active.`]);
    expect(await rules.endsWith(ADMIN, "bob")).toEqual([expect.stringContaining(KEY)]);
    expect(await rules.endsWith(ADMIN, "ann")).toEqual([]);
    authors.set("bob", bob);
    expect(await outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).toBe(1);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  test("has the rights of the platform where the platform stored it", async () => {
    await rules.put({ ...ADMIN, user: "" }, KEY, LINE);
    authors.clear();
    await outbox.send(controller(), [recordsEntry(1, ["a,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "a", n: 1 }]);
  });

  test("is pinned with its author: a batch that is repeated has his rights, whoever saved the same text since", async () => {
    authors.set("bob", reading);
    await rules.put(bob, KEY, LINE);
    const entries = [recordsEntry(1, ["a,1"], KEY)];
    const dying = { ingest: () => Promise.reject(new AppError("unavailable", "away")) };
    await expect(outbox.send(controller(dying), entries)).rejects.toMatchObject({ code: "unavailable" });
    await rules.put(ADMIN, KEY, LINE);
    const second = controller();
    await outbox.send(second, entries);
    expect([await rowsOf("/matrix/line"), (await said()).length]).toEqual([[], 1]);
    await outbox.send(second, [recordsEntry(2, ["b,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "b", n: 1 }]);
  });

  test("is stored by nobody who signed in by a token with a part of his rights", async () => {
    const part = { ...ADMIN, byToken: "part" } as const;
    const made = { class: "/matrix/line", type: "text", fields: ["name"] } as const;
    await expect(rules.put(part, KEY, LINE)).rejects.toMatchObject({ code: "denied" });
    await expect(rules.create(part, made)).rejects.toMatchObject({ code: "denied" });
    expect(await rules.put({ ...ADMIN, byToken: "whole" }, KEY, LINE)).toEqual([]);
  });
});

describe("rights", () => {
  test("a body writes what its author may write at that moment, row by row", async () => {
    const own = { ...ADMIN, user: "bob", data: [{ class: "/matrix/line", access: "write", where: "n < 3" }] } as const;
    authors.set("bob", own);
    await rules.put(own, KEY, `${LINE}if OBJECT.name == "c" then setClass("/matrix/other") _note = "x" end`);
    await outbox.send(controller(), [recordsEntry(1, ["a,1", "b,3", "c,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toMatchObject([{ name: "a" }]);
    expect(await rowsOf("/matrix/other")).toEqual([]);
    expect([...(await said())].sort()).toEqual([
      "bob may not write this object of /matrix/line: it does not fulfil the row condition.",
      "class : /matrix/other not find !",
    ]);
    authors.set("bob", { ...own, data: [{ class: "/matrix/line", access: "read" }] });
    await outbox.send(controller(), [recordsEntry(2, ["d,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  test("without an active author its records wait, and its log says so", async () => {
    await rules.put({ ...ADMIN, user: "gone" }, KEY, `${LINE}_note = "x"`);
    const ingest = controller();
    await expect(outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).rejects.toMatchObject({ code: "unavailable" });
    expect(await said()).toEqual([`The rule ${KEY} stands still: its author gone is not active.`]);
    authors.set("gone", ADMIN);
    expect(await outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).toBe(1);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  test("another tenant's keyspace is refused, and a text that does not parse, where it is stored", async () => {
    await expect(rules.put(ADMIN, KEY, `--keyspace=second\n${LINE}_n = 1`)).rejects.toMatchObject({ code: "denied" });
    expect(await rules.put(ADMIN, KEY, `--keyspace=matrix\n${LINE}_n = 1`)).toEqual([]);
    await expect(rules.put(ADMIN, KEY, `${LINE}if then`)).rejects.toMatchObject({
      code: "syntax",
      message: expect.stringContaining(`${KEY}:5:`) as string,
    });
    await expect(rules.put(ADMIN, KEY, `${LINE}--language=javascript\nvar = 1`)).rejects.toMatchObject({
      code: "syntax",
    });
    await expect(rules.put(ADMIN, KEY, `${LINE}--language=perl\nx`)).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("records that are passed on", () => {
  const next = "/matrix/rules/next";

  test("are parsed by the other rule as it was when the batch was begun, each once", async () => {
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name,n\n--var_note='old'\n");
    await rules.put(
      ADMIN,
      KEY,
      `--forward=${next}\n${LINE}if OBJECT.n > 1 then forward("${next}", OBJECT.name .. "2,9") end`,
    );
    let isAway = true;
    const dying = {
      ingest: (...[principal, path, records]: Parameters<Objects["ingest"]>) =>
        isAway && path === "/matrix/other"
          ? Promise.reject(new AppError("unavailable", "away"))
          : objects.ingest(principal, path, records),
    };
    const entries = [recordsEntry(1, ["a,1", "b,2"], KEY)];
    await expect(outbox.send(controller(dying), entries)).rejects.toMatchObject({ code: "unavailable" });
    isAway = false;
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name,n\n--var_note='new'\n");
    const second = controller();
    await second.acknowledged(SOURCE);
    await outbox.send(second, entries);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "a", n: 1 }]);
    expect(await rowsOf("/matrix/other")).toEqual([
      { name: "a", n: 1, note: "old" },
      { name: "b", n: 2, note: "old" },
      { name: "b2", n: 9, note: "old" },
    ]);
    await outbox.send(second, [recordsEntry(2, ["c,1"], KEY)]);
    expect((await rowsOf("/matrix/other")).at(-1)).toMatchObject({ name: "c", note: "new" });
  });

  test("never go in a circle, nor to a rule that does not stand in the text", async () => {
    await rules.put(ADMIN, next, `--class=/matrix/other\n--parser=csv\n--fields=name,n\n--forward=${KEY}\n`);
    expect(await take(`${LINE}--forward=${next}\n`, ["a,1"])).toMatchObject([{ name: "a" }]);
    expect(await rowsOf("/matrix/other")).toMatchObject([{ name: "a" }]);
    expect(await said()).toEqual([`${KEY} → ${next} → ${KEY}: records go in a circle.`]);
    await rules.put(ADMIN, KEY, `${LINE}cforward("/matrix" .. "/rules/next")`);
    await outbox.send(controller(), [recordsEntry(2, ["b,1"], KEY)]);
    expect((await said()).at(-1)).toContain("does not stand in the text");
  });

  test("get nowhere where the author may not write", async () => {
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name,n\n");
    const own = { ...ADMIN, user: "bob", data: [{ class: "/matrix/line", access: "write" }] } as const;
    authors.set("bob", own);
    expect(await take(`${LINE}cforward("${next}")`, ["a,1"], own)).toMatchObject([{ name: "a" }]);
    expect(await rowsOf("/matrix/other")).toEqual([]);
  });
});

describe("a record that is tried again", () => {
  const MINUTE = 60_000;
  const waits = async () =>
    (await rowsOf(`/matrix${RETRY_PATH}`)).map(({ rule, attempts, error }) => ({ rule, attempts, error }));
  const asks = (head: string) =>
    `${head}local rows = odb.mql("SELECT name FROM /matrix/keyed WHERE name = ?", OBJECT.name).data
    if #rows == 0 then retry("not there") end\n_note = "found"`;

  test("is kept before its batch is acknowledged, and is there once, with its neighbours in their order", async () => {
    await rules.put(ADMIN, KEY, asks(`${LINE}--retry_interval=30s\n`));
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "a" }, { name: "c" }]);
    const entries = [recordsEntry(1, ["a,1", "b,2", "c,3"], KEY)];
    const first = retrying();
    await outbox.send(first.ingest, entries);
    expect((await rowsOf("/matrix/line")).map(({ name }) => name)).toEqual(["a", "c"]);
    expect(await waits()).toEqual([{ rule: KEY, attempts: 0, error: "The rule asks for another try: not there." }]);
    expect(await said()).toEqual([]);
    await first.round(29_000);
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    await first.round(0);
    expect(await rowsOf("/matrix/line")).toHaveLength(2);
    // Another controller finds it due; an edit since then does not count; the batch comes once more.
    await rules.put(ADMIN, KEY, `${LINE}_note = "edited"`);
    const second = retrying();
    await second.round(31_000);
    expect(await waits()).toEqual([]);
    const ids = async () => (await idsOf("/matrix/line")).map(({ id, name, note }) => ({ id, name, note }));
    const once = await ids();
    expect(once.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    await outbox.send(second.ingest, entries);
    await first.round(2 * MINUTE);
    expect(await ids()).toEqual(once);
  });

  test("is an error when it was tried often enough, told once whoever tries", async () => {
    await rules.put(ADMIN, KEY, `${LINE}--retry\n--retry_total=2\nerror("never")`);
    const [first, second] = [retrying(), retrying()];
    await outbox.send(first.ingest, [recordsEntry(1, ["a,1"], KEY)]);
    await Promise.all([first.round(MINUTE), second.round(MINUTE)]);
    expect(await waits()).toMatchObject([{ attempts: 1 }]);
    expect(await said()).toEqual([]);
    await first.round(MINUTE);
    expect(await waits()).toEqual([]);
    expect(await said()).toEqual([expect.stringMatching(/never \(tried again 2 times\)$/) as string]);
    await second.round(MINUTE);
    expect(await said()).toHaveLength(1);
  });

  test("has no error of a rule it was passed on to while it waits, and one when it is done", async () => {
    const next = "/matrix/rules/next";
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name\n");
    await rules.put(ADMIN, KEY, asks(`${LINE}--forward=${next}\n`));
    const { ingest, round } = retrying();
    await outbox.send(ingest, [recordsEntry(1, ["b,2"], KEY)]);
    expect([(await waits()).length, await said(), await said(next)]).toEqual([1, [], []]);
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    await round(MINUTE);
    expect([await waits(), (await rowsOf("/matrix/line")).length]).toEqual([[], 1]);
    expect([...(await said()), ...(await said(next))]).toHaveLength(1);
  });

  test("goes on after a store that was away between its row and its end", async () => {
    await rules.put(ADMIN, KEY, asks(LINE));
    let isAway = true;
    const dying = {
      ingest: (...[principal, path, records]: Parameters<Objects["ingest"]>) =>
        isAway ? Promise.reject(new AppError("unavailable", "away")) : objects.ingest(principal, path, records),
    };
    const one = retrying(dying);
    await outbox.send(one.ingest, [recordsEntry(1, ["b,2"], KEY)]);
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    await one.round(MINUTE);
    expect(await waits()).toHaveLength(1);
    isAway = false;
    await one.round(0);
    expect([await waits(), await rowsOf("/matrix/line")]).toEqual([[], [{ name: "b", n: 2, note: "found" }]]);
  });

  test("waits among so many of its tenant, whichever controllers set them aside and look after them", async () => {
    await rules.put(ADMIN, KEY, asks(LINE));
    const [first, second] = [retrying(objects, 3), retrying(objects, 3)];
    const sent = ["a,1", "b,2", "c,3", "d,4"].map((line, at) => recordsEntry(at + 1, [line], KEY));
    await outbox.send(first.ingest, sent.slice(0, 2));
    await outbox.send(second.ingest, sent.slice(2));
    expect(await waits()).toHaveLength(3);
    expect(await said()).toEqual([expect.stringContaining("asks for another try") as string]);
    // A batch that comes once more finds the records that wait where they are.
    await outbox.send(second.ingest, sent.slice(0, 2));
    expect([await waits(), await said()]).toMatchObject([{ length: 3 }, { length: 1 }]);
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "a" }, { name: "b" }, { name: "c" }]);
    await second.round(MINUTE);
    expect(await waits()).toEqual([]);
    // The first has looked after none of them.
    first.tick(RULE_RETRIES_COUNTED_MS);
    await outbox.send(first.ingest, [recordsEntry(5, ["e,5", "f,6", "g,7"], KEY)]);
    expect(await waits()).toHaveLength(3);
    expect(await said()).toHaveLength(1);
  });

  test("waits while its author is not active, and has his rights of then", async () => {
    const bob = { ...ADMIN, user: "bob" };
    authors.set("bob", bob);
    await rules.put(bob, KEY, asks(LINE));
    const { ingest, round } = retrying();
    await outbox.send(ingest, [recordsEntry(1, ["b,2"], KEY)]);
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    authors.delete("bob");
    await round(MINUTE);
    expect(await waits()).toHaveLength(1);
    authors.set("bob", { ...bob, data: [{ class: "/matrix", access: "read" }] });
    await round(0);
    expect([await waits(), await rowsOf("/matrix/line")]).toEqual([[], []]);
    expect((await said()).at(-1)).toContain("bob may not write");
  });
});

describe("every function of rules", () => {
  const examples = [RULE_LOCAL_OBJECT, RECORD_HOST_OBJECT, WEBSOCKET_HOST_OBJECT, DIAL].flatMap(
    ({ functions }) => functions,
  );

  test.each(examples.map(({ name, example }) => [name, example] as const))(
    "%s does what its example shows",
    async (name, example) => {
      for (const [key, parser] of [
        ["next", "csv"],
        ["json", "json"],
      ])
        await rules.put(ADMIN, `/matrix/rules/${key}`, `--class=/matrix/other\n--parser=${parser}\n--fields=name,n\n`);
      await rules.put(ADMIN, "/matrix/rules/hosts", "");
      await rules.putExtension(ADMIN, "/matrix/rules/hosts", "key:web-1\tval:front\n");
      await objects.insert(ADMIN, "/matrix/keyed", [{ name: "a", note: "kept" }]);
      const rows = [...(await take(LINE + example, ["a,1"])), ...(await rowsOf("/matrix/other"))];
      expect(await said()).toEqual([]);
      const day = new Date(BASE_MS).toISOString().replace(/\D/g, "");
      const expected: Readonly<Record<string, unknown>> = {
        setvar: [{ name: "a", n: 1, note: "seen" }],
        getvar: [{ name: "a", n: 1, note: "a,1" }],
        setClass: [{ name: "b", n: 1 }],
        getattr: [{ name: "a", n: 1, note: "/var/log/a" }],
        hostname: [{ name: "a", n: 1, note: "web-1" }],
        gettimekey: [{ name: "a", n: 1, note: day.slice(0, 10) }],
        forward: [{ name: "a", n: 1 }],
        cforward: [
          { name: "a", n: 1 },
          { name: "x", n: 1 },
        ],
        dforward: [{ name: "a", n: 1 }, { name: "d" }],
        lookup: [{ name: "a", n: 1, note: "front" }],
        setcache: [{ name: "a", n: 1 }],
        getcache: [{ name: "a", n: 1 }],
        ipinfo: [{ name: "a", n: 1, note: "private" }],
        send: [{ name: "a", n: 1 }],
        classcache: [{ name: "a", n: 1, note: "kept" }],
        retry: [{ name: "a", n: 1 }],
        dial: [{ name: "a", n: 1, note: "false" }],
      };
      expect(rows).toEqual(expected[name]);
    },
  );

  test("they are in JavaScript what they are in Lua", async () => {
    await rules.put(ADMIN, "/matrix/rules/next", "--class=/matrix/other\n--parser=csv\n--fields=name,n\n");
    await rules.put(ADMIN, "/matrix/rules/hosts", "");
    await rules.putExtension(ADMIN, "/matrix/rules/hosts", "key:web-1\tval:front\n");
    const body = `var seen = [hostname(), getattr("source"), gettimekey("year").length, lookup("/matrix/rules/hosts", {key: hostname()}).val,
      lookup("owners", {key: "b"}).val, lookup("owners", {key: "none"}) === undefined, ipinfo("::1").scope, getcache("k") === undefined,
      omnibus.trim(" x "), omnibus.substr("abcd", 2, 2), omnibus.split("a,b", ",").length, omnibus.int("7.9")];
      setcache("k", {v: 1}); seen.push(getcache("k").v); setvar("note", seen.join(" ")); cforward("/matrix/rules/next", "x,1");
      setClass("/matrix/keyed"); setvar("n", 1); dforward("/matrix/rules/next", {}); _IGNORE = false;`;
    const rows = await take(`${LINE}--language=javascript\n${body}`, ["a,1"]);
    expect(rows).toEqual([{ name: "a", n: 1, note: "web-1 /var/log/a 4 front bob true loopback true x bc 2 7 1" }]);
    expect(await rowsOf("/matrix/keyed")).toEqual([{ name: "a", n: 1 }]);
    expect((await rowsOf("/matrix/other")).map(({ name }) => name)).toEqual(["{}", "x"]);
  });

  test("classcache finds what the author may see, of classes that the text names, and refuses others", async () => {
    await objects.insert(ADMIN, "/matrix/keyed", [
      { name: "a", n: 1, note: "one" },
      { name: "b", n: 2, note: "two" },
    ]);
    const bob = {
      ...ADMIN,
      user: "bob",
      data: [
        { class: "/matrix/line", access: "write" },
        { class: "/matrix/keyed", access: "read", where: "n < 2" },
      ],
    } as const;
    authors.set("bob", bob);
    const text = `${LINE}--cache_classes=/matrix/keyed\n_note = #classcache("/matrix/keyed") .. " " .. #classcache("/matrix/keyed", { n = OBJECT.n, name = OBJECT.name })`;
    const ingest = controller();
    await rules.put(bob, KEY, text);
    await outbox.send(ingest, [recordsEntry(1, ["a,1", "b,2"], KEY)]);
    expect((await rowsOf("/matrix/line")).map(({ note }) => note)).toEqual(["1 1", "1 0"]);
    await rules.put(ADMIN, KEY, `${text} if OBJECT.name == "d" then classcache("/matrix/other") end`);
    await outbox.send(ingest, [recordsEntry(2, ["b,2", "d,1"], KEY)]);
    expect((await rowsOf("/matrix/line")).map(({ note }) => note).sort()).toEqual(["1 0", "1 1", "2 1"]);
    expect(await said()).toEqual([
      expect.stringContaining("has no /matrix/other in its option --cache_classes") as string,
    ]);
  });

  test("a body reads raw records without any option line, and must name a class", async () => {
    await rules.put(
      ADMIN,
      KEY,
      'if getvar("_raw") ~= "none" then setClass("/matrix/other") _name = getvar("_raw") end',
    );
    await outbox.send(controller(), [recordsEntry(1, ["x y", "none"], KEY)]);
    expect(await rowsOf("/matrix/other")).toEqual([{ name: "x y" }]);
    expect(await said()).toEqual(["The rule has no option --class, and its body names no class."]);
  });
});
