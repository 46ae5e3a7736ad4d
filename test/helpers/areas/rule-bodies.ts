import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { MemoryAudit, outsideHostObject } from "./audit.ts";
import { bundle } from "../programs/bundle.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { testEntries } from "./config.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { EVERYTHING_SENT, POLICY_RECORD_CLASSES, recordsEntry, TEST_KEYS, TestOutbox } from "./ingest.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { HostObjects, ThreadScripts, type HostObject } from "../../../controller/scripting/index.ts";
import { threadProcessorMs } from "../../../controller/workers/index.ts";
import { CONSOLE_LOG_CLASSES, consoleLogArea, ConsoleLogService } from "../../../controller/areas/consolelog/index.ts";
import { ObjectService, type Unrestricted } from "../../../controller/areas/objects/index.ts";
import { systemPrincipal, type Principal } from "../../../controller/areas/permissions/index.ts";
import { QueryService, rowGate, SearchService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { queryHostObject } from "../../../controller/areas/query/host-objects.ts";
import { RuleBodies, RuleMemory, RuleService } from "../../../controller/areas/rules/index.ts";
import {
  RECORD_HOST_OBJECT,
  RULE_LOCAL_OBJECT,
  WEBSOCKET_HOST_OBJECT,
} from "../../../controller/areas/rules/bodies/body-objects.ts";
import { Outbound } from "../../../controller/outbound/index.ts";
import { dialHostObject } from "../../../controller/areas/scripts/http.ts";
import { IngestService, RecordWriter, RuleRetries } from "../../../controller/areas/ingest/index.ts";
import { retryClass } from "../../../controller/areas/ingest/retries.ts";

export const ADMIN = testPrincipal();
export const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };
/** Key of the rule of these tests. */
export const KEY = "/matrix/rules/body";
/** Enough for a body that ends; a body without an end costs little. */
const STEPS_MAX = 100;
/** Options of a rule that reads `name,n` into `/matrix/line`. */
export const LINE = "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";

let engine: TestEngine;
/** Outbox of the agent that sends the records. */
export let outbox: TestOutbox;
export let scripts: ThreadScripts;
export let objects: ObjectService;
export let rules: RuleService;
let logs: ConsoleLogService;
/** Active authors of bodies, by user name. A user who is missing here is not active. */
export let authors: Map<string, Principal>;
let objectsOfHost: HostObjects;
/** Audit trail of the running test. */
export let audit: MemoryAudit;

/** Host object that opens connections, to this machine alone. */
export const DIAL = dialHostObject(new Outbound({ networks: ["127.0.0.1/32"], clock: realClock }));
/** Stand-in for the host object of notifications; sends nothing. */
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

/** Opens an engine with rules and classes for each test of the calling file, and script threads that they share. */
export function openRuleBodies(): void {
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
  beforeEach(prepare);
  afterEach(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
}

async function prepare(): Promise<void> {
  outbox = new TestOutbox(SOURCE);
  audit = new MemoryAudit();
  engine = await openTestEngine();
  const runtime = { ...testRuntime(realClock), random: seededRandom(1) };
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  for (const definition of [...POLICY_RECORD_CLASSES, retryClass(objects), ...CONSOLE_LOG_CLASSES])
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
}

/** Returns the ingest of a controller. A second one stands for the controller after a restart. */
export function controller(over: Unrestricted<"ingest"> = objects): IngestService {
  return retrying(over).ingest;
}

/**
 * Returns the same and its retries: `round` tries the waiting records again after so much time, `tick` only lets the
 * time pass. `waitingMax`: how many records of a tenant may wait.
 */
export function retrying(over: Unrestricted<"ingest"> = objects, waitingMax?: number) {
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

/** Returns the values of all rows of a class, sorted by name. */
export async function rowsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
    rows.push(...page.map((row) => row.values));
  return rows.sort((a, b) => String(a["name"]).localeCompare(String(b["name"])));
}

/** Returns id and values of all rows of a class, sorted by id. */
export async function idsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
    rows.push(...page.map(({ id, values }) => ({ id, ...values })));
  return rows.sort((a, b) => String(a["id"]).localeCompare(String(b["id"])));
}

/** Returns the messages in the console log of a rule. */
export async function said(name = KEY): Promise<readonly (string | undefined)[]> {
  return (await logs.read(ADMIN, { kind: "rule", name, levels: [] })).logs.map(({ msg }) => msg);
}

/** Stores the rule, sends lines to it and returns the rows of `/matrix/line`. */
export async function take(text: string, lines: readonly string[], by = ADMIN) {
  await rules.put(by, KEY, text);
  await outbox.send(controller(), [recordsEntry(1, lines, KEY)]);
  return rowsOf("/matrix/line");
}
