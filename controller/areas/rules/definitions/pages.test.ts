import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as limits from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { realClock, shiftedClock } from "../../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { makeDemoClasses } from "../../../../test/helpers/areas/demonstration.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { followedRecords } from "../../../../test/helpers/hosts/followed.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { runPage } from "../../../../test/mql/script.ts";
import { HostObjects, ThreadScripts } from "../../../scripting/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../../consolelog/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService, SearchService, visibleObjects } from "../../query/index.ts";
import { queryHostObject } from "../../query/host-objects.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT } from "../bodies/body-objects.ts";
import { demoRules } from "../../../local/demo-definitions.ts";
import { type RawRecord, RuleService, RuleTrials } from "../index.ts";
import { ALL_OPTIONS } from "./options.ts";
import { FIELD_TYPES } from "../parsing/parsers.ts";
import { PatternService } from "../grok/patterns.ts";
import type { TrialResult } from "../trial/trial.ts";

const PAGES = [
  { page: "deploy/docs/rules.md", bounds: 7 },
  { page: "deploy/docs/rule-bodies.md", bounds: 5 },
  { page: "deploy/docs/grok.md", bounds: 4 },
  { page: "deploy/docs/csv-rules.md", bounds: 2 },
  { page: "deploy/docs/log-programs.md", bounds: 0 },
  { page: "deploy/docs/log-csv.md", bounds: 0 },
  { page: "deploy/docs/log-recipes.md", bounds: 0 },
  { page: "deploy/docs/log-web-servers.md", bounds: 0 },
  { page: "deploy/docs/times.md", bounds: 4 },
];
const TRIED = { host: "web-1", source: "/var/log/app.log", groups: { site: "shop" } };
/** The samples are read then: times without a year are of the nearest one. */
const READ_MS = Date.UTC(2026, 10, 23, 12);
const runtime = testRuntime(shiftedClock(realClock, READ_MS - Date.now()));

let engine: TestEngine;
let scripts: ThreadScripts;
let objects: ObjectService;
let query: QueryService;
let rules: RuleService;
let patterns: PatternService;
let trials: RuleTrials;
/** The latest records of the policy that a recipe describes. */
let latest: readonly RawRecord[] = [];

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `rule-pages-${process.pid}.mjs`);
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  for (const definition of CONSOLE_LOG_CLASSES) objects.registerSystemClass(definition);
  await makeDemoClasses(objects);
  const logs = new ConsoleLogService({ objects, clock: realClock });
  const area = consoleLogArea(logs);
  query = new QueryService({ objects, runtime });
  const odb = queryHostObject({ query, search: new SearchService({ objects, runtime }) });
  const host = new HostObjects([RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, odb, ...(area.hostObjects ?? [])]);
  scripts = new ThreadScripts({ ...runtime, file, languages: ["lua", "javascript"], functions: () => host.names });
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects, engine: scripts });
  patterns = new PatternService({ stores: engine, runtime });
  const samples = { last: () => Promise.resolve({ rule: undefined, records: latest, warnings: [] }) };
  trials = new RuleTrials({ engine: scripts, hostObjects: () => host, objects, rules, runtime, samples });
});
afterAll(async () => {
  await scripts.close();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

/** A fence of a page by its lines: those behind `>` are samples. */
function partsOf(block: string): { readonly text: string; readonly samples: readonly string[]; readonly key?: string } {
  const lines = block.split("\n");
  const samples = lines.filter((line) => line.startsWith("> ")).map((line) => line.slice(2));
  const rest = lines.filter((line) => !line.startsWith("> "));
  const key = rest[0]?.startsWith("/") ? rest.shift() : undefined;
  return { text: rest.join("\n"), samples, ...(key !== undefined && { key }) };
}

async function tried(who: Principal, block: string): Promise<readonly Row[]> {
  return rowsOf(who, partsOf(block));
}

const ROTATED = "rotated";

/** The samples are the lines of a log that an agent follows by the options above the rule, over a rotation at each `rotated`. */
async function followed(who: Principal, block: string): Promise<readonly Row[]> {
  const lines = block.split("\n");
  const option = (name: string) => lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
  const written = lines.filter((line) => line.startsWith(">") || line === ROTATED).map((line) => `${line}\n`);
  const texts = written.join("").split(`${ROTATED}\n`);
  const log = texts.map((text) => text.replaceAll(/^> ?/gm, ""));
  const [delimiter = "", delimitereol, heading] = ["delimiter", "delimitereol", "heading"].map(option);
  const attrs: Record<string, string> = heading === undefined ? {} : { heading };
  const records = await followedRecords(log, { delimiter, delimitereol: delimitereol === "true", attrs });
  latest = records.map((record) => ({ ...record, ...TRIED, timeMs: READ_MS }));
  const text = lines.filter((line) => !line.startsWith(">") && !/^(?:delimiter|heading|rotated)/.test(line)).join("\n");
  const signal = new AbortController().signal;
  return told(await trials.run(who, { text, policy: "p", signal }));
}

async function rowsOf(who: Principal, { text, samples, key }: ReturnType<typeof partsOf>): Promise<readonly Row[]> {
  const signal = new AbortController().signal;
  return told(await trials.run(who, { ...TRIED, key, text, lines: samples, signal }));
}

function told({ class: path, records }: TrialResult): readonly Row[] {
  return records.flatMap(({ rows, errors }) => [
    ...rows.map(({ class: of, values, time }) => ({
      ...(of === path ? {} : { class: of }),
      ...values,
      ...(time !== undefined && { vtime: new Date(time).toISOString() }),
    })),
    // The time of the run is left out.
    ...errors.map(({ message }) => ({ error: message.replace(/(clock) \([^)]*\)/, "$1 (…)") })),
  ]);
}

async function stored(who: Principal, block: string): Promise<readonly Row[]> {
  const { text, key = "" } = partsOf(block);
  return (await rules.put(who, key, text)).warnings.map((warning) => ({ warning }));
}

async function extended(who: Principal, block: string): Promise<readonly Row[]> {
  const { text, key = "" } = partsOf(block);
  await rules.putExtension(who, key, text);
  return [];
}

async function captured(who: Principal, block: string): Promise<readonly Row[]> {
  const { text: pattern, samples: lines } = partsOf(block);
  const { records } = await trials.run(who, { pattern, lines, signal: new AbortController().signal });
  return records.map(({ fields, errors }) => fields ?? { error: errors[0]?.message ?? "" });
}

async function named(who: Principal, block: string): Promise<readonly Row[]> {
  const { text, samples } = partsOf(block);
  const [, name = "", pattern = ""] = /^(\w+) (.*)$/.exec(text) ?? [];
  const { sample, warnings } = await patterns.put(who, { name, pattern, eg: samples[0] ?? "" });
  return warnings.length > 0 ? warnings.map((warning) => ({ warning })) : [sample];
}

describe.each(PAGES)("$page", ({ page, bounds }) => {
  test("its examples make what stands below them", async () => {
    const mql = (...asked: Parameters<QueryService["rows"]>) => query.rows(...asked);
    await runPage(page, {
      mql,
      rule: tried,
      recipe: followed,
      stored,
      table: extended,
      grok: captured,
      pattern: named,
    });
  });

  test("it states the bounds as they are", () => {
    const stated = [...readFileSync(page, "utf8").matchAll(/^\| `(\w+)` \| ([\d,]+) \|/gm)].map(
      ([, name = "", most = ""]) => [name, Number(most.replaceAll(",", ""))],
    );
    expect(stated).toHaveLength(bounds);
    expect(limits).toMatchObject(Object.fromEntries(stated));
  });
});

test("the rules of the demonstration are shown as they are", () => {
  const [ofRules = "", ofGrok = ""] = ["rules", "grok"].map((name) => readFileSync(`deploy/docs/${name}.md`, "utf8"));
  const { load, systemLog } = demoRules("/matrix");
  expect(ofRules).toContain(`\`\`\`rule\n${load}> `);
  expect(ofGrok).toContain(`\`\`\`rule\n${systemLog}> `);
});

test("every option and type of a rule stands in an example", () => {
  const examples = PAGES.flatMap(({ page }) => [...readFileSync(page, "utf8").matchAll(/^```rule\n.*?^```$/gms)]);
  const shown = examples.join("\n");
  expect(ALL_OPTIONS.filter((name) => !shown.includes(`--${name}`))).toEqual([]);
  expect(FIELD_TYPES.filter((name) => !shown.includes(name))).toEqual([]);
});
