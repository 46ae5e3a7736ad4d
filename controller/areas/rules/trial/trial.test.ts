import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { RECENT_POLICY_MAX_CHARACTERS, RULE_TRIAL_MAX_LINES } from "../../../../common/limits.ts";
import { outsideHostObject } from "../../../../test/helpers/areas/audit.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { HostObjects, ThreadScripts } from "../../../scripting/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../../consolelog/index.ts";
import { ObjectService } from "../../objects/index.ts";
import { messageHostObjects } from "../../notifications/host-objects.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, WEBSOCKET_HOST_OBJECT } from "../bodies/body-objects.ts";
import { PolicySamples, RecentRecords, RuleService, RuleTrials, type RecentOfPolicy } from "../index.ts";
import type { TrialResult } from "./trial.ts";
import { visibleObjects } from "../../query/index.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/tried";
const LINE = "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";

let engine: TestEngine;
let scripts: ThreadScripts;
let objects: ObjectService;
let rules: RuleService;
let trials: RuleTrials;
let logs: ConsoleLogService;
const recent = new RecentRecords();
/** Recent records that other controllers have. */
let others: (RecentOfPolicy | undefined)[] = [];
const changed: string[] = [];

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `rule-trials-${process.pid}.mjs`);
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  for (const definition of CONSOLE_LOG_CLASSES) objects.registerSystemClass(definition);
  logs = new ConsoleLogService({ objects, clock: realClock });
  const host = new HostObjects([
    RECORD_HOST_OBJECT,
    RULE_LOCAL_OBJECT,
    WEBSOCKET_HOST_OBJECT,
    outsideHostObject(() => changed.push("change")),
    ...messageHostObjects({ publish: () => changed.push("told") }),
    ...(consoleLogArea(logs).hostObjects ?? []),
  ]);
  scripts = new ThreadScripts({ ...runtime, file, languages: ["lua", "javascript"], functions: () => host.names });
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects, engine: scripts });
  const policies = {
    get: (_by: Principal, name: string) =>
      name === "p" ? Promise.resolve({ rule: KEY }) : Promise.reject(new AppError("not_found", "There is no policy.")),
  };
  const samples = new PolicySamples({ recent, policies, others: () => Promise.resolve(others) });
  trials = new RuleTrials({ samples, engine: scripts, hostObjects: () => host, objects, rules, runtime });
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  for (const path of ["/matrix/line", "/matrix/other"])
    await objects.createClass(ADMIN, { path, kind: "record", columns });
  await objects.createClass(ADMIN, { path: "/matrix/thing", columns, keys: ["name"] });
});
afterAll(async () => {
  await scripts.close();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const tried = (text: string, lines: readonly string[], by: Principal = ADMIN): Promise<TrialResult> =>
  trials.run(by, { text, lines, signal: new AbortController().signal });

async function stored(path: string): Promise<number> {
  let rows = 0;
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false })) rows += page.length;
  return rows;
}

describe("a trial of a rule", () => {
  test("tells a nested member that no line has", async () => {
    const rule = "--class=/matrix/line\n--parser=json\n--var_name=field user.nam\n--var_n=field user.n\n";
    const { warnings } = await tried(rule, ['{"user":{"name":"a","n":1}}', '{"user":{"name":"b","n":2}}']);
    expect(warnings).toEqual(["--var_name: none of 2 records has a value at user.nam."]);
    expect((await tried(rule, ['{"user":{"nam":"a"}}', '{"user":{"n":1}}'])).warnings).toEqual([]);
  });

  test("takes the first of the given lines for the heading line", async () => {
    const rule = "--class=/matrix/line\n--parser=csv\n--header=true\n";
    const { records } = await tried(rule, ["n,name", "1,a"]);
    expect(records).toMatchObject([
      { line: 1, rows: [], errors: [] },
      { line: 2, rows: [{ values: { n: 1, name: "a" } }] },
    ]);
  });

  test("answers the rows of each line as they would be stored, and stores none", async () => {
    const body = 'if OBJECT.n > 1 then setClass("/matrix/other") setvar("name", "big") end log.info("seen", OBJECT.n)';
    const { class: path, records, log, msPerRecord } = await tried(LINE + body, ["a,1", "", "b,2", "c,x"]);
    expect(path).toBe("/matrix/line");
    expect(records).toEqual([
      { line: 1, rows: [{ class: "/matrix/line", values: { name: "a", n: 1 } }], errors: [] },
      { line: 2, rows: [], errors: [] },
      { line: 3, rows: [{ class: "/matrix/other", values: { name: "big", n: 2 } }], errors: [] },
      { line: 4, rows: [], errors: [{ message: expect.stringContaining("INT") }] },
    ]);
    expect(log).toEqual([expect.objectContaining({ level: "info" }), expect.objectContaining({ level: "info" })]);
    expect(msPerRecord).toBeGreaterThan(0);
    expect([await stored("/matrix/line"), await stored("/matrix/other")]).toEqual([0, 0]);
    expect((await logs.read(ADMIN, { kind: "rule", name: KEY, levels: [] })).logs).toEqual([]);
  });

  test.each([
    ["lua", "\n\nlocal x = OBJECT.none.deeper", { line: 7 }],
    ["javascript", "--language=javascript\n\n\nvar x = OBJECT.none.deeper", { line: 8, column: 9 }],
  ])("tells where a body in %s went wrong", async (_language, body, place) => {
    const { records } = await tried(LINE + body, ["a,1"]);
    expect(records).toEqual([{ line: 1, rows: [], errors: [expect.objectContaining(place)] }]);
  });

  test("tells that objects have no time of their own, which a body chooses as it runs", async () => {
    const rule = "--parser=json\n--time=at\n";
    const tell = async (path: string) =>
      (await tried(`${rule}setClass("/matrix/" .. OBJECT.to)`, [`{"to":"${path}","name":"a","at":"2026-01-01"}`]))
        .warnings;
    expect(await tell("thing")).toEqual([
      expect.stringContaining("objects of /matrix/thing have the time of their last"),
    ]);
    expect(await tell("other")).toEqual([]);
  });

  test.each(["lua", "javascript"])(
    "setClass in %s sends the row to a class, and begins another row when a value is set after it",
    async (language) => {
      const [line, other] = ["/matrix/line", "/matrix/other"];
      const parsed = { name: "a", n: 1 };
      for (const [body, expected] of [
        [`_name = "x"; setClass("${other}");`, [[other, { name: "x", n: 1 }]]],
        [`setvar("name", "x"); setClass("${other}");`, [[other, { name: "x", n: 1 }]]],
        [`setClass("${other}");`, [[other, parsed]]],
        // The last one holds where nothing is set after several.
        [`_name = "x"; setClass("${line}"); setClass("${other}");`, [[other, { name: "x", n: 1 }]]],
        [`setClass("${other}"); _name = "x"; setClass("${line}");`, [[line, { name: "x", n: 1 }]]],
        [
          `_name = "x"; setClass("${other}"); _name = "y";`,
          [
            [line, { name: "x", n: 1 }],
            [other, { name: "y", n: 1 }],
          ],
        ],
        [
          `setClass("${other}"); setvar("n", 2); setClass("${line}"); setvar("n", 3);`,
          [
            [other, { name: "a", n: 2 }],
            [line, { name: "a", n: 3 }],
          ],
        ],
        [
          `setClass("${line}"); setClass("${other}"); _name = "y";`,
          [
            [line, parsed],
            [other, { name: "y", n: 1 }],
          ],
        ],
      ] as const) {
        const { records } = await tried(`${LINE}--language=${language}\n${body}`, ["a,1"]);
        const rows = expected.map(([path, values]) => ({ class: path, values }));
        expect(records, body).toEqual([{ line: 1, rows, errors: [] }]);
      }
    },
  );

  test("a body changes nothing, and what it would tell others is named", async () => {
    for (const object of ["websocket", "nats"]) {
      const silent = await tried(`${LINE}${object}.send("rules", "news", "t", 1)`, ["a,1"]);
      expect(silent).toMatchObject({ notCalled: [`${object}.send`], records: [{ rows: [{}], errors: [] }] });
    }
    const refused = await tried(`${LINE}outside.change()`, ["a,1"]);
    expect(refused.records[0]?.errors[0]?.message).toContain("changes nothing");
    expect(changed).toEqual([]);
  });

  test("a stored rule is tried with the rights of its caller, not of its author", async () => {
    await rules.put(ADMIN, KEY, `${LINE}setvar("n", 1)`);
    const request = { key: KEY, lines: ["a,1"], signal: new AbortController().signal };
    expect((await trials.run(ADMIN, request)).records[0]?.rows).toHaveLength(1);
    const data = [{ class: "/matrix", access: "read" }] as const;
    const { records } = await trials.run({ ...ADMIN, user: "bob", data }, request);
    expect(records).toMatchObject([{ rows: [], errors: [{ message: expect.stringContaining("/matrix/line") }] }]);
    const blind = { ...ADMIN, user: "eve", data: [{ class: "/matrix", access: "none" }] } as const;
    await expect(trials.run(blind, request)).rejects.toMatchObject({ code: "not_found" });
  });

  test("a text that cannot be used, a rule that is not there and too many lines are refused", async () => {
    await expect(tried(`${LINE}setvar(`, ["a"])).rejects.toMatchObject({ code: "syntax" });
    await expect(tried("--class=/matrix/none\n--parser=json", ["{}"])).rejects.toMatchObject({ code: "not_found" });
    const many = Array.from({ length: RULE_TRIAL_MAX_LINES + 1 }, () => "a,1");
    await expect(tried(LINE, many)).rejects.toMatchObject({ details: { limit: "RULE_TRIAL_MAX_LINES" } });
    const signal = new AbortController().signal;
    await expect(trials.run(ADMIN, { key: KEY + "x", lines: [], signal })).rejects.toMatchObject({ code: "not_found" });
    await expect(trials.run(ADMIN, { lines: [], signal })).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("a trial on the latest raw records of a policy", () => {
  const signal = new AbortController().signal;
  const of = (policy: string, more: { text?: string; pattern?: string; last?: number } = {}, by: Principal = ADMIN) =>
    trials.run(by, { policy, signal, ...more });
  const raw = (text: string, timeMs: number) => ({ text, timeMs, host: "web-1", source: "/var/log/a", groups: {} });
  const take = async (id: string, records: ReturnType<typeof raw>[], tenant = "matrix") =>
    recent.take(tenant, { id, policy: "p", rule: await rules.load(ADMIN, KEY), raw: records });

  beforeEach(async () => {
    recent.leave("matrix");
    others = [];
    await rules.put(ADMIN, KEY, LINE);
  });

  test("takes none of them for a heading line: they come from any place of the log", async () => {
    await take("web-1/s/1", [raw("n,name", 1), raw("1,a", 1)]);
    const { records } = await of("p", { text: "--class=/matrix/line\n--parser=csv\n--header=true\n" });
    const error = { message: expect.stringContaining("name the fields by --fields") as string };
    expect(records.map(({ errors }) => errors)).toEqual([[error], [error]]);
  });

  test("takes those of all controllers, each once, and stores nothing", async () => {
    await take("web-1/s/1", [raw("a,1", 1), raw("b,2", 1)]);
    const theirs = new RecentRecords();
    const rule = await rules.load(ADMIN, KEY);
    theirs.take("matrix", { id: "web-1/s/1", policy: "p", rule, raw: [raw("a,1", 1), raw("b,2", 1)] });
    theirs.take("matrix", { id: "web-2/s/1", policy: "p", rule, raw: [raw("c,3", 3)] });
    others = [theirs.of("matrix", "p"), undefined];
    const { records, warnings } = await of("p");
    expect(records.map(({ raw: one, rows }) => [one?.text, rows[0]?.values])).toEqual([
      ["a,1", { name: "a", n: 1 }],
      ["b,2", { name: "b", n: 2 }],
      ["c,3", { name: "c", n: 3 }],
    ]);
    expect(records[2]?.raw).toEqual({ text: "c,3", time: 3, host: "web-1", source: "/var/log/a" });
    expect(warnings).toEqual([expect.stringContaining("did not answer")]);
    const tried = await of("p", { text: `${LINE}setvar("n", 9)`, last: 2 });
    expect(tried.records.map(({ rows }) => rows[0]?.values)).toEqual([
      { name: "b", n: 9 },
      { name: "c", n: 9 },
    ]);
    expect(await stored("/matrix/line")).toBe(0);
  });

  test("takes a grok pattern alone, and shows it to nobody else than before", async () => {
    await take("web-1/s/1", [raw("a,1", 1), raw("b", 2)]);
    const { class: path, records } = await of("p", { pattern: "%{WORD:name},%{INT:n:int}" });
    expect([path, records]).toEqual([
      "",
      [
        { line: 1, raw: expect.objectContaining({ text: "a,1" }), fields: { name: "a", n: 1 }, rows: [], errors: [] },
        { line: 2, raw: expect.objectContaining({ text: "b" }), rows: [], errors: [expect.anything()] },
      ],
    ]);
    const some: DataRule = { class: "/matrix/line", access: "read", hidden: ["n"] };
    const by: Principal = { ...ADMIN, user: "bob", data: [{ class: "/matrix", access: "write" }, some] };
    await expect(of("p", { pattern: "%{WORD:name}" }, by)).rejects.toMatchObject({ code: "denied" });
  });

  test("says that none is there, and what was too long to be kept", async () => {
    expect(await of("p")).toMatchObject({ records: [], warnings: [expect.stringContaining("from their start")] });
    await take("web-1/s/1", [raw("x".repeat(RECENT_POLICY_MAX_CHARACTERS + 1), 1)]);
    const { warnings } = await of("p");
    expect(warnings.at(-1)).toContain("which are not kept: 1");
  });

  test("shows them to who may read all that becomes of them, and to nobody else", async () => {
    await take("web-1/s/1", [raw("a,secret", 1)]);
    await take("web-1/s/1", [raw("z,1", 1)], "second");
    const text = "--parser=text\n--fields=name\n--class=/matrix/other";
    for (const restriction of [{ where: "n = 1" }, { hidden: ["n"] }, { access: "none" }] as const) {
      const some: DataRule = { class: "/matrix/line", access: "read", ...restriction };
      const by: Principal = { ...ADMIN, user: "bob", data: [{ class: "/matrix", access: "write" }, some] };
      await expect(of("p", { text }, by)).rejects.toMatchObject({ code: "denied" });
    }
    const reader: Principal = { ...ADMIN, user: "eve", data: [{ class: "/matrix/line", access: "read" }] };
    expect((await of("p", {}, reader)).records).toHaveLength(1);
    // All rows of one group and all columns of another one: together they leave out cells.
    const halves = [
      { class: "/matrix", access: "read", hidden: ["n"], group: "rows" },
      { class: "/matrix", access: "read", where: "n = 1", group: "columns" },
    ] as const;
    await expect(of("p", {}, { ...reader, data: halves })).rejects.toMatchObject({ code: "denied" });
    await expect(of("none")).rejects.toMatchObject({ code: "not_found" });
    const few: Principal = { ...ADMIN, user: "max", grants: ["rules:write"] };
    await expect(of("p", {}, few)).rejects.toMatchObject({ code: "denied" });
  });

  test("of a rule that could not be used are shown to who may read and write everything", async () => {
    recent.take("matrix", { id: "web-1/s/1", policy: "p", rule: undefined, raw: [raw("a,1", 1)] });
    expect((await of("p")).records).toHaveLength(1);
    const reader: Principal = { ...ADMIN, user: "eve", data: [{ class: "/matrix/line", access: "write" }] };
    await expect(of("p", {}, reader)).rejects.toMatchObject({ code: "denied" });
  });
});

describe("times", () => {
  const DATED = "--class=/matrix/dated\n--parser=csv\n--fields=at,note\n--time_zone=Europe/Berlin\n--time=at\n";
  const at = Date.parse("2026-07-01T10:00:00Z");
  beforeAll(() =>
    objects.createClass(ADMIN, {
      path: "/matrix/dated",
      kind: "record",
      columns: [
        { name: "at", type: "timestamp" },
        { name: "note", type: "varchar" },
      ],
    }),
  );

  test("of columns and of the record itself are shown, and where a record would have that of its reading", async () => {
    const { records, warnings } = await tried(DATED, ["2026-07-01 12:00:00,x", ",y", "2099-01-01,z"]);
    expect(records.map(({ rows }) => rows)).toEqual([
      [{ class: "/matrix/dated", values: { at, note: "x" }, time: at }],
      [{ class: "/matrix/dated", values: { at: null, note: "y" } }],
      [],
    ]);
    expect(records[2]?.errors).toEqual([{ message: expect.stringContaining("ahead of the controller's clock") }]);
    expect(warnings).toEqual(["Line 2 has the time of reading: It has no field at with its time."]);
  });

  test("that a body sets are read as texts and taken as numbers, in other classes, too", async () => {
    const body = `${DATED}if OBJECT.note == "n" then setvar("at", 5) else setvar("at", "1 Jul 2026 12:00:00") end`;
    const { records } = await tried(body, ["soon,n", "soon,t"]);
    expect(records.map(({ rows }) => rows[0]?.values["at"])).toEqual([5, at]);
    const { warnings } = await tried(body, ["soon,t"]);
    expect(warnings).toEqual([expect.stringContaining('Line 1 has the time of reading: The field at: "soon"')]);
    const other = `--parser=csv\n--fields=at,note\n--time_zone=Europe/Berlin\nsetClass("/matrix/dated")`;
    const { records: sent } = await tried(other, ["2026-07-01 12:00:00,x", "Mai 1 12:00:00,x"]);
    expect(sent[0]?.rows).toEqual([{ class: "/matrix/dated", values: { at, note: "x" } }]);
    expect(sent[1]?.errors[0]?.message).toContain('"Mai"');
  });
});
