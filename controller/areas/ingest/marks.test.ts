import { afterAll, beforeAll, expect, test } from "vitest";
import { RECORD_MAX_BYTES } from "../../../common/limits.ts";
import { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { MemoryAudit } from "../../../test/helpers/areas/audit.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestIngest, recordsEntry, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import { LogLooks } from "../../../test/helpers/hosts/log-looks.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { HostObjects } from "../../scripting/index.ts";
import { ConsoleLogService } from "../consolelog/index.ts";
import { type Principal, systemPrincipal } from "../permissions/index.ts";
import { QueryService, rowGate } from "../query/index.ts";
import { type Rule, RuleBodies, RuleMemory } from "../rules/index.ts";
import { RecordWriter } from "./index.ts";
import type { PreparedBatch } from "./types.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/line";
const CLASSES = { runs: "/system/policyrun", gaps: "/system/policygap" };

let world: Awaited<ReturnType<typeof openTestIngest>>;
let query: QueryService;
let streams = 0;

beforeAll(async () => {
  world = await openTestIngest();
  query = new QueryService({ objects: world.objects, runtime: testRuntime(realClock) });
  await world.rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n");
});
afterAll(() => world[Symbol.asyncDispose]());

/** Sends entries as an agent that has none of them acknowledged, twice: a repetition makes the same rows. */
async function stored(entries: readonly Entry[]) {
  await query.rows(ADMIN, "delete from /matrix/line");
  const source = { tenant: "matrix", host: "web-1", streamId: `stream-${(streams += 1)}` };
  const outbox = new TestOutbox(source);
  const ingest = world.controller();
  await outbox.send(ingest, entries);
  await outbox.send(ingest, entries);
  return query.rows(ADMIN, "select name, n, marks, _rawbytes from /matrix/line order by vtime");
}

/** The entries of a followed file, as they come through the wire, under the rule. */
async function followed(attrs: Readonly<Record<string, string>>, bytes: Buffer): Promise<readonly Entry[]> {
  await using log = await LogLooks.begin({ rule: KEY, ...(Object.keys(attrs).length > 0 && { attrs }) });
  await log.writer.appendFile(bytes);
  await log.look();
  return (await log.entries()).map((entry) => Entry.decode(Entry.encode(entry).finish()));
}

const base64 = (hex: string) => Buffer.from(hex, "hex").toString("base64");

test("records of a followed file in GBK say which had malformed bytes, and which", async () => {
  const rows = await stored(
    await followed({ encoding: "gbk" }, Buffer.from("d6d02c310ad6ff2c320a622c330aff2c340a", "hex")),
  );
  expect(rows).toEqual([
    { name: "中", n: 1, marks: null, _rawbytes: null },
    { name: "\ufffd", n: 2, marks: ["malformed"], _rawbytes: base64("d6ff2c32") },
    { name: "b", n: 3, marks: null, _rawbytes: null },
    { name: "\ufffd", n: 4, marks: ["malformed"], _rawbytes: base64("ff2c34") },
  ]);
});

test("so do those of a file in UTF-8, and those that lost their end", async () => {
  const long = Buffer.from(`${"x".repeat(RECORD_MAX_BYTES + 1)}\n`);
  const bytes = Buffer.concat([Buffer.from("61ff2c310a", "hex"), long, Buffer.from("b,2\n")]);
  const rows = await stored(await followed({}, bytes));
  expect(rows).toEqual([
    { name: "a\ufffd", n: 1, marks: ["malformed"], _rawbytes: base64("61ff2c31") },
    { name: "x".repeat(RECORD_MAX_BYTES), n: null, marks: ["cut"], _rawbytes: null },
    { name: "b", n: 2, marks: null, _rawbytes: null },
  ]);
});

test("an agent that sends no raw bytes, or lengths that are none, leaves the mark alone", async () => {
  const older = recordsEntry(1, ["a,1", "b,2", "c,3"], KEY);
  const broken = recordsEntry(2, ["d,4", "e,5"], KEY);
  if (older.body?.$case !== "records" || broken.body?.$case !== "records") throw new Error("records");
  Object.assign(older.body.value, { cut: [0, 1, 9], malformed: [1, 12] });
  Object.assign(broken.body.value, { malformed: [0, 1], raw: Buffer.from("dd"), rawLengths: [2, 4_000_000_000] });
  expect(await stored([older, broken])).toMatchObject([
    { name: "a", marks: ["cut"], _rawbytes: null },
    { name: "b", marks: ["cut", "malformed"], _rawbytes: null },
    { name: "c", marks: null, _rawbytes: null },
    { name: "d", marks: ["malformed"], _rawbytes: base64("6464") },
    { name: "e", marks: ["malformed"], _rawbytes: null },
  ]);
});

test("objects that a rule makes of one record share its raw bytes; the first one has them all", async () => {
  await query.rows(ADMIN, "delete from /matrix/line");
  const rule = await world.rules.load(ADMIN, KEY);
  const parse: Rule["parse"] = (...call) =>
    rule.parse(...call).flatMap((one) => ["", "+1", "+2"].map((part) => ({ ...one, part })));
  const entry = recordsEntry(1, [], KEY);
  if (entry.body?.$case !== "records") throw new Error("records");
  const half = Buffer.alloc(RECORD_MAX_BYTES / 2, 0xff);
  entry.body.value.records = [Buffer.concat([half, Buffer.from(",1")]), Buffer.from("b\xff,2", "latin1")];
  const batch = batchOf(entry, { ...rule, parse });
  await new RecordWriter({ objects: world.objects, classes: CLASSES, clock: realClock }).write([batch]);
  const rows = await query.rows(ADMIN, "select n, marks, _rawbytes from /matrix/line order by n");
  expect(rows.map(({ marks }) => marks)).toEqual(Array(6).fill(["malformed"]));
  expect(rows.filter(({ n, _rawbytes: raw }) => n === 1 && raw !== null)).toHaveLength(1);
  expect(rows.filter(({ n, _rawbytes: raw }) => n === 2 && raw === base64("62ff2c32"))).toHaveLength(3);
});

const NEXT = "/matrix/rules/next";
const PASSING = `--class=/matrix/line\n--parser=csv\n--fields=name,n\n--forward=${NEXT}\n`;

test.each([
  ["of the rule that passes records on", `--raw_bytes=false\n${PASSING}`, "", []],
  ["of a rule that records are passed on to", PASSING, "--raw_bytes=no\n", ["/matrix/line"]],
  ["that is on", `--raw_bytes=true\n${PASSING}`, "", ["/matrix/line", "/matrix/other"]],
])("raw bytes are stored by the option %s", async (_, passing, option, kept) => {
  await query.rows(ADMIN, "delete from /matrix/line; delete from /matrix/other");
  await world.rules.put(ADMIN, NEXT, `${option}--class=/matrix/other\n--parser=csv\n--fields=name,n\n`);
  await world.rules.put(ADMIN, "/matrix/rules/passing", passing);
  const entry = recordsEntry(1, ["a\ufffd,1"], "/matrix/rules/passing");
  if (entry.body?.$case !== "records") throw new Error("records");
  Object.assign(entry.body.value, { malformed: [0], raw: Buffer.from("61ff2c31", "hex"), rawLengths: [4] });
  await writer().write([batchOf(entry, await world.rules.load(ADMIN, "/matrix/rules/passing"))]);
  const rows: Record<string, unknown>[] = [];
  for (const path of ["/matrix/line", "/matrix/other"])
    rows.push(...(await query.rows(ADMIN, `select '${path}' as path, name, marks, _rawbytes as raw from ${path}`)));
  expect(rows).toMatchObject(Array(2).fill({ name: "a\ufffd", marks: ["malformed"] }));
  expect(rows.filter(({ raw }) => raw === base64("61ff2c31")).map(({ path }) => path)).toEqual(kept);
  expect(rows.filter(({ raw }) => raw === null)).toHaveLength(2 - kept.length);
});

/** Without an engine: it passes records on and runs no bodies. */
function writer(): RecordWriter {
  const { objects, rules } = world;
  const runtime = testRuntime(realClock);
  const bodies = new RuleBodies({
    hostObjects: () => new HostObjects([]),
    author: () => Promise.resolve(ADMIN),
    objects,
    rules,
    logs: new ConsoleLogService({ objects, clock: realClock }),
    audit: new MemoryAudit(),
    memory: new RuleMemory(realClock),
    runtime,
  });
  const gate = async (principal: Principal, path: string) =>
    rowGate({ principal, catalog: await objects.catalog(principal) }, path, { objects, clock: realClock });
  return new RecordWriter({ objects, classes: CLASSES, clock: realClock, bodies, gate });
}

function batchOf(entry: Entry, rule: Rule): PreparedBatch {
  return {
    principal: systemPrincipal("matrix", "/matrix", ""),
    source: { tenant: "matrix", host: "web-1", streamId: `stream-${(streams += 1)}` },
    entries: [entry],
    rules: new Map([[rule.key, rule]]),
    foreign: new Set<string>(),
    foreignCommands: new Set<string>(),
    missing: 0,
  };
}
