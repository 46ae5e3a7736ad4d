import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RULE_TRIAL_MAX_LINES } from "../../../common/limits.ts";
import { bundle } from "../../../test/helpers/bundle.ts";
import { realClock } from "../../../test/helpers/clock.ts";
import { testEntries } from "../../../test/helpers/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/runtime.ts";
import { HostObjects, ThreadScripts, type HostObject } from "../../scripting/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../consolelog/index.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, WEBSOCKET_HOST_OBJECT } from "./body-objects.ts";
import { RuleService, RuleTrials } from "./index.ts";
import type { TrialResult } from "./trial.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/tried";
const LINE = "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";

let engine: TestEngine;
let scripts: ThreadScripts;
let objects: ObjectService;
let rules: RuleService;
let trials: RuleTrials;
let logs: ConsoleLogService;
const changed: string[] = [];

/** Changes something, as functions of other areas do. */
const CHANGING: HostObject = {
  name: "outside",
  summary: "",
  functions: [
    {
      name: "change",
      summary: "",
      parameters: [],
      returns: "",
      example: "",
      changes: true,
      call: () => {
        changed.push("change");
        return Promise.resolve(undefined);
      },
    },
  ],
};

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `rule-trials-${process.pid}.mjs`);
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ stores: engine, runtime });
  for (const definition of CONSOLE_LOG_CLASSES) objects.registerSystemClass(definition);
  logs = new ConsoleLogService({ objects, clock: realClock });
  const host = new HostObjects([
    RECORD_HOST_OBJECT,
    RULE_LOCAL_OBJECT,
    WEBSOCKET_HOST_OBJECT,
    CHANGING,
    ...(consoleLogArea(logs).hostObjects ?? []),
  ]);
  scripts = new ThreadScripts({ ...runtime, file, languages: ["lua", "javascript"], functions: () => host.names });
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects, engine: scripts });
  trials = new RuleTrials({ engine: scripts, hostObjects: () => host, objects, rules, runtime });
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  for (const path of ["/matrix/line", "/matrix/other"])
    await objects.createClass(ADMIN, { path, kind: "record", columns });
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
  for await (const page of objects.read(ADMIN, { class: path, subtree: false })) rows += page.length;
  return rows;
}

describe("a trial of a rule", () => {
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

  test("a body changes nothing, and what it would tell others is named", async () => {
    const silent = await tried(`${LINE}websocket.send("rules", "news", "t", 1)`, ["a,1"]);
    expect(silent).toMatchObject({ notCalled: ["websocket.send"], records: [{ rows: [{}], errors: [] }] });
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
