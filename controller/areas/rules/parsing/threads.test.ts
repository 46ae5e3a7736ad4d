import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GROK_SAMPLE_MAX_CHARACTERS, PARSE_THREAD_RULES_MAX } from "../../../../common/limits.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { ControllerTasks } from "../../../worker.ts";
import { WorkerPool } from "../../../workers/index.ts";
import { compileRule } from "../definitions/compile.ts";
import { grokTrial } from "../grok/trial.ts";
import { ParseSlices } from "./slices.ts";
import { digestOf, NO_SUPPLEMENTS } from "../definitions/supplements.ts";
import { RULE_TASKS } from "../tasks.ts";
import type { ParsedRecord, RawRecord, Rule } from "../types.ts";

/** The thread that ships, built of its sources. */
let pool: WorkerPool<ControllerTasks>;

beforeAll(async () => {
  const file = await bundle(join(import.meta.dirname, "../../../worker.ts"), `workers/controller-${process.pid}.mjs`);
  pool = new WorkerPool({ file, threads: 1, clock: realClock, log: testRuntime().log });
});
afterAll(() => pool.close(0));

function ruleOf(options: string, columns: readonly string[] = ["a", "b"], supplements = NO_SUPPLEMENTS): Rule {
  const text = `--class=/m/c\n${options}\n`;
  const target = { path: "/m/c", columns: columns.map((name) => ({ name })), supplements };
  const digest = digestOf(text, supplements);
  return { key: "/m/rules/r", digest, text, supplements, ...compileRule(text, target) };
}

function raw(text: string): RawRecord {
  return { text, timeMs: 5, host: "h", source: "/var/log/a", groups: { site: "shop" } };
}

const LONG = "x".repeat(5_000);
const JSON_TEXT = '{"a":1,"c":[2,null,{"d":true}]}';
const TEXTS = ["", "one 1", `two ${LONG}`, LONG, "1,2", JSON_TEXT, "\u{1f600} \ud800 lone", "no\0thing"];

test.each([
  ["grok", "--parser=grok\n--pattern_1=^%{WORD:a} %{INT:b:int}$\n--pattern_2=^%{WORD:a} %{GREEDYDATA:c}$"],
  ["grok of an engine for long texts", "--parser=grok\n--pattern_1=^(?<a>(x+)+)$"],
  ["csv", "--parser=csv\n--fields=a,b"],
  ["json", "--parser=json"],
  ["mapping", "--parser=text\n--fields=a\n--var_b=join _host,site,_time"],
])("a thread parses as this one does: %s", async (_name, options) => {
  const rule = { ...ruleOf(options), isCostly: () => true };
  const parse = async (workers?: typeof pool): Promise<readonly [readonly ParsedRecord[], readonly string[]]> => {
    const unused: string[] = [];
    const slices = new ParseSlices({ clock: realClock, tenant: "m", ...(workers && { workers }) });
    return [await slices.parse(rule, TEXTS.map(raw), (field) => unused.push(field)), unused];
  };
  const here = await parse();
  expect(await parse(pool)).toEqual(here);
  expect(here[0].length).toBeGreaterThan(0);
  expect(pool).toMatchObject({ threads: 1, ended: 0 });
});

test("a thread matches a pattern as this one does, and refuses one that is not usable by its name", async () => {
  const trial = { expression: "^%{OWN:a} (?<b>x+)?", patterns: { OWN: "[a-z]+" }, nowMs: 0 };
  const lines = [...TEXTS, "x".repeat(GROK_SAMPLE_MAX_CHARACTERS)];
  const asked = { tenant: "m", timeoutMs: 30_000 };
  const here = lines.map(grokTrial(trial));
  expect(await pool.run("matchGrok", { trial, lines }, asked)).toEqual(here);
  expect(here).toContainEqual({ fields: { a: "two", b: LONG } });
  const unusable = { trial: { ...trial, patterns: {} }, lines };
  await expect(pool.run("matchGrok", unusable, asked)).rejects.toMatchObject({ code: "invalid" });
});

test("a thread reads times as this one does, in the zone of the record", async () => {
  const text = "--class=/m/c\n--parser=csv\n--fields=a,b\n--time=b\n";
  const columns = [{ name: "a", type: "timestamp" }, { name: "b" }];
  const compiled = compileRule(text, { path: "/m/c", columns });
  const rule = { key: "/m/rules/r", digest: "d", text, supplements: NO_SUPPLEMENTS, ...compiled, isCostly: () => true };
  const record = { ...raw("2026-07-01 12:00:00,2026-07-01 13:00:00"), zone: "Europe/Berlin" };
  const here = await new ParseSlices({ clock: realClock, tenant: "m" }).parse(rule, [record]);
  // The class had another column of times before.
  await new ParseSlices({ clock: realClock, tenant: "m", workers: pool }).parse({ ...rule, timeColumns: [] }, [record]);
  expect(here).toMatchObject([
    { values: { a: Date.parse("2026-07-01T10:00Z") }, timeMs: Date.parse("2026-07-01T11:00Z") },
  ]);
  expect(await new ParseSlices({ clock: realClock, tenant: "m", workers: pool }).parse(rule, [record])).toEqual(here);
});

test("one text is another rule when its class has other columns", () => {
  const records = [raw('{"a":1,"b":2}')];
  const ruleWith = (columns: readonly string[]): Rule => ruleOf("--parser=json", columns);
  const parse = (columns: readonly string[]) => RULE_TASKS.parseRecords({ rule: ruleWith(columns), records });
  expect(parse(["a"])).toEqual({ parsed: [{ ok: true, ordinal: 0, values: { a: 1 } }], unused: ["b"] });
  expect(parse(["b"])).toEqual({ parsed: [{ ok: true, ordinal: 0, values: { b: 2 } }], unused: ["a"] });
});

test("one text is another rule when its patterns or its table are others, in a thread as here", async () => {
  const text = "--parser=grok\n--pattern_1=^%{OWN:a}$\n--var_b=lookup a";
  const slices = new ParseSlices({ clock: realClock, tenant: "m", workers: pool });
  for (const [OWN, val] of [
    ["x+", "one"],
    ["y+", "one"],
    ["y+", "two"],
  ]) {
    const rule = ruleOf(text, ["a", "b"], {
      patterns: { OWN: OWN ?? "" },
      extension: `key:xx\tval:${val}\nkey:yy\tval:${val}`,
    });
    const here = rule.parse([raw("xx"), raw("yy")]);
    expect(await slices.parse({ ...rule, isCostly: () => true }, [raw("xx"), raw("yy")])).toEqual(here);
    const a = OWN === "x+" ? "xx" : "yy";
    expect(here.flatMap((record) => (record.ok ? [record.values] : []))).toEqual([{ a, b: val }]);
  }
});

test("more rules than a thread keeps are parsed all the same", () => {
  for (const round of [0, 1]) {
    for (let at = 0; at <= PARSE_THREAD_RULES_MAX; at++) {
      const rule = ruleOf(`--parser=grok\n--pattern_1=^(?<a>r${at})$`);
      const { parsed } = RULE_TASKS.parseRecords({ rule, records: [raw(`r${at}`)] });
      expect([round, parsed]).toEqual([round, [{ ok: true, ordinal: 0, values: { a: `r${at}` } }]]);
    }
  }
});
