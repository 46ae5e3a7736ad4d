import { afterEach, beforeEach } from "vitest";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { EVERYTHING_SENT, POLICY_RECORD_CLASSES, recordsEntry, TEST_KEYS, TestOutbox } from "./ingest.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { realClock } from "../time/clock.ts";
import { testEntries } from "./config.ts";
import { ObjectService, type Unrestricted } from "../../../controller/areas/objects/index.ts";
import type { Workers } from "../../../controller/workers/index.ts";
import { CONSOLE_LOG_CLASSES } from "../../../controller/areas/consolelog/index.ts";
import { type RecentRecords, RuleService, type RuleTasks } from "../../../controller/areas/rules/index.ts";
import { IngestService, RecordWriter } from "../../../controller/areas/ingest/index.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

/** Ingest of one agent's entries over stores of each test, with the rule `KEY` for its lines. */

export const ADMIN = testPrincipal();
/** The stream of the agent. */
export const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };
/** The rule of `entry`: lines of a name and a number. */
export const KEY = "/matrix/rules/line";
/** System classes that ingest writes. */
export const CLASSES = [...POLICY_RECORD_CLASSES, ...CONSOLE_LOG_CLASSES];
export const RUNTIME = testRuntime(realClock);

/** Stores of the running test. */
export let engine: TestEngine;
/** Pins and sends entries, as the agent does. */
export let outbox: TestOutbox;
export let objects: ObjectService;
export let rules: RuleService;

/** Opens an engine for each test of the calling file. */
export function useIngest(): void {
  beforeEach(async () => {
    outbox = new TestOutbox(SOURCE);
    engine = await openTestEngine();
    objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    for (const definition of CLASSES) objects.registerSystemClass(definition);
    rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  });

  afterEach(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
}

/** Returns a controller's ingest, after it made the classes and the rule. */
export async function prepared(workers?: Workers<RuleTasks>): Promise<IngestService> {
  const ingest = newIngest(objects, workers);
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  await objects.createClass(ADMIN, { path: "/matrix/line", kind: "record", columns });
  await objects.createClass(ADMIN, { path: "/matrix/keyed", columns, keys: ["name"] });
  await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=name,n\n");
  return ingest;
}

/** Returns a controller's ingest over the same stores: a second one stands for the controller after a restart. */
export function newIngest(
  over: Unrestricted<"ingest">,
  workers?: Workers<RuleTasks>,
  { recent, sent = EVERYTHING_SENT }: { recent?: RecentRecords; sent?: typeof EVERYTHING_SENT } = {},
): IngestService {
  const classes = { runs: "/system/policyrun", gaps: "/system/policygap" };
  const records = new RecordWriter({
    objects: over,
    classes,
    clock: RUNTIME.clock,
    workers,
    ...(recent && { recent }),
  });
  const commands = { accept: () => Promise.resolve(new Set<string>()) };
  return new IngestService({
    stores: engine,
    runtime: RUNTIME,
    keys: TEST_KEYS,
    rules,
    records,
    commands,
    sent,
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
  });
}

/** Returns an entry of records with these lines. */
export function entry(sequence: number, lines: readonly string[], rule = KEY): Entry {
  return recordsEntry(sequence, lines, rule);
}

/** Returns the rows of a class, by name. */
export async function rowsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
    rows.push(...page.map((row) => row.values));
  return rows.sort((a, b) => String(a["name"]).localeCompare(String(b["name"])));
}
