import { afterEach, beforeEach, expect, test } from "vitest";
import { WRITE_AHEAD_MAX_MS } from "../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { BASE_MS, EVERYTHING_SENT, recordsEntry, TEST_KEYS, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { CONSOLE_LOG_CLASSES } from "../consolelog/index.ts";
import { ObjectService, type ObjectRow } from "../objects/index.ts";
import { RuleService } from "../rules/index.ts";
import { IngestService, RecordWriter } from "./index.ts";
import { visibleObjects } from "../query/index.ts";

const ADMIN = testPrincipal();
const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };
const KEY = "/matrix/rules/line";
const RUNTIME = testRuntime(realClock);
const CLOCK = "2026-07-01 12:00:00";

let engine: TestEngine;
let objects: ObjectService;
let rules: RuleService;

beforeEach(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: RUNTIME });
  for (const definition of CONSOLE_LOG_CLASSES) objects.registerSystemClass(definition);
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const columns = [
    { name: "at", type: "timestamp" },
    { name: "note", type: "varchar" },
  ] as const;
  await objects.createClass(ADMIN, { path: "/matrix/line", kind: "record", columns });
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

interface Zones {
  host?: string;
  policies: Record<string, string>;
}

/** A controller over the stores; `zones` may change between calls. */
function controller(zones: Zones = { policies: {} }): IngestService {
  const classes = { runs: "/system/policyrun", gaps: "/system/policygap" };
  return new IngestService({
    stores: engine,
    runtime: RUNTIME,
    keys: TEST_KEYS,
    rules,
    records: new RecordWriter({ objects, classes, clock: RUNTIME.clock }),
    commands: { accept: () => Promise.resolve(new Set<string>()) },
    sent: { ...EVERYTHING_SENT, zones: () => Promise.resolve({ ...zones.policies }) },
    zoneOf: () => Promise.resolve(zones.host),
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
  });
}

async function rowsOf(path = "/matrix/line"): Promise<readonly ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false })) rows.push(...page);
  return rows;
}

async function ats(): Promise<readonly string[]> {
  return (await rowsOf()).map(({ values }) => new Date(Number(values.at)).toISOString()).sort();
}

test("times without a zone are of that of the rule, else of the policy, else of the host, else of UTC", async () => {
  await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=at,note");
  const zones: Zones = { policies: {} };
  const ingest = controller(zones);
  const outbox = new TestOutbox(SOURCE);
  const send = (sequence: number) => outbox.send(ingest, [recordsEntry(sequence, [`${CLOCK},x`], KEY)]);
  await send(1);
  zones.host = "Asia/Tokyo";
  await send(2);
  zones.policies["p"] = "Europe/Berlin";
  await send(3);
  zones.policies = { other: "Europe/Berlin" };
  await send(4);
  await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=at,note\n--time_zone=-05:00");
  await send(5);
  expect(await ats()).toEqual([
    "2026-07-01T03:00:00.000Z",
    "2026-07-01T03:00:00.000Z",
    "2026-07-01T10:00:00.000Z",
    "2026-07-01T12:00:00.000Z",
    "2026-07-01T17:00:00.000Z",
  ]);
});

test("a batch is repeated in the zone it was begun with, whatever the policy has by then", async () => {
  await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=when,note\n--time=when");
  const zones: Zones = { policies: { p: "Europe/Berlin" } };
  const outbox = new TestOutbox(SOURCE);
  const entries = [recordsEntry(1, [`${CLOCK},x`, "2026-07-01 12:00:01,y"], KEY)];
  await outbox.send(controller(zones), entries);
  zones.policies["p"] = "Asia/Tokyo";
  await outbox.send(controller(zones), entries);
  expect((await rowsOf()).map(({ vtimeMs }) => new Date(vtimeMs).toISOString()).sort()).toEqual([
    "2026-07-01T10:00:00.000Z",
    "2026-07-01T10:00:01.000Z",
  ]);
});

test("--time sets vtime; what cannot be read keeps the time of reading, and one warning tells how many", async () => {
  await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=when,note\n--time=when");
  const outbox = new TestOutbox(SOURCE);
  const entries = [recordsEntry(1, [`${CLOCK},a`, "soon,b", ",c"], KEY)];
  for (let round = 0; round < 2; round += 1) await outbox.send(controller(), entries);
  const found = (await rowsOf()).map(({ vtimeMs, values }) => [values.note, vtimeMs]);
  const readMs = entries[0]?.timeMs;
  expect(Object.fromEntries(found)).toEqual({ a: Date.parse(`${CLOCK}Z`), b: readMs, c: readMs });
  const log = await rowsOf("/matrix/consolelog/rule");
  expect(log.map(({ values }) => values)).toEqual([
    expect.objectContaining({
      level: 3,
      count: 2,
      raw: "soon,b",
      msg:
        "2 records have the time of reading in place of their own. " +
        'The field when: "soon" is in no format that is known without a layout (--time_layout).',
    }),
  ]);
});

test("a record whose time is ahead of the write or before 1970 is an error with its name, also in a repetition", async () => {
  await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=when,note\n--time=when\n--time_unit=ms");
  const outbox = new TestOutbox(SOURCE);
  // The outbox pins a time of the controller's clock.
  const nowMs = Math.max(BASE_MS, realClock.nowMs());
  const lines = [`${nowMs},now`, `${nowMs + 10 * WRITE_AHEAD_MAX_MS},ahead`, "-1,before"];
  for (let round = 0; round < 2; round += 1) await outbox.send(controller(), [recordsEntry(1, lines, KEY)]);
  expect((await rowsOf()).map(({ values }) => values.note)).toEqual(["now"]);
  const told = (await rowsOf("/matrix/consolelog/rule")).map(({ values }) => String(values.msg));
  expect(told.sort()).toEqual([
    "Its time 1969-12-31T23:59:59.999Z is before 1970.",
    expect.stringContaining("is more than 5 minutes ahead of the controller's clock"),
  ]);
});
