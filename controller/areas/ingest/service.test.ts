import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import {
  BASE_MS,
  EVERYTHING_SENT,
  POLICY_RECORD_CLASSES,
  POLICY_RECORD_PATHS,
  recordsEntry,
  TEST_KEYS,
  TestOutbox,
} from "../../../test/helpers/areas/ingest.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import { again } from "../../store/contract/harness.ts";
import { ObjectService, type Objects } from "../objects/index.ts";
import type { Workers } from "../../workers/index.ts";
import { CONSOLE_LOG_CLASSES, ConsoleLogService } from "../consolelog/index.ts";
import { PatternService, RecentRecords, RuleService, type RuleTasks } from "../rules/index.ts";
import { RULE_TASKS } from "../rules/tasks.ts";
import { IngestService, RecordWriter } from "./index.ts";

const ADMIN = testPrincipal();
const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };
const KEY = "/matrix/rules/line";
const CLASSES = [...POLICY_RECORD_CLASSES, ...CONSOLE_LOG_CLASSES];
const RUNTIME = testRuntime(realClock);

/** Behind their times, of two entries of the stream; never to be changed, as an agent may have pinned entries and a controller stored them. */
const IDS_OF_FORMER_VERSIONS = ["FXBH2WZ062V00000", "FXBH2WZ062V00001", "D0AX9KZQE0K00000"];

let engine: TestEngine;
let outbox: TestOutbox;
let objects: ObjectService;
let rules: RuleService;

beforeEach(async () => {
  outbox = new TestOutbox(SOURCE);
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  for (const definition of CLASSES) objects.registerSystemClass(definition);
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

async function prepared(workers?: Workers<RuleTasks>): Promise<IngestService> {
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

/** A controller's view of the same stores: a second one stands for the controller after a restart. */
function newIngest(
  over: Pick<Objects, "ingest">,
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

function entry(sequence: number, lines: readonly string[], rule = KEY): Entry {
  return recordsEntry(sequence, lines, rule);
}

async function rowsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const page of objects.read(ADMIN, { class: path, subtree: false }))
    rows.push(...page.map((row) => row.values));
  return rows.sort((a, b) => String(a["name"]).localeCompare(String(b["name"])));
}

describe("ingest", () => {
  it("stores the records of a batch and then acknowledges it", async () => {
    const ingest = await prepared();
    expect(await ingest.acknowledged(SOURCE)).toBe(0);
    expect(await outbox.send(ingest, [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"])])).toBe(2);
    expect(await ingest.acknowledged(SOURCE)).toBe(2);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "b", n: 2 },
      { name: "c", n: 3 },
    ]);
  });

  it("keeps the raw records of a policy that the host was sent in memory, each once, to try rules on", async () => {
    const recent = new RecentRecords();
    await prepared();
    const sent = {
      ...EVERYTHING_SENT,
      missing: (_tenant: string, host: string) =>
        Promise.resolve({ policies: new Set(host === "web-2" ? ["p"] : []), rules: new Set<string>() }),
    };
    const ingest = newIngest(objects, undefined, { recent, sent });
    await outbox.send(ingest, [entry(1, ["a,1", "x"]), entry(2, ["c,3"], "/matrix/rules/none")]);
    await outbox.send(ingest, [entry(1, ["a,1", "x"])]);
    await new TestOutbox({ ...SOURCE, host: "web-2" }).send(ingest, [entry(1, ["forged,1"])]);
    expect(recent.of("matrix", "p")).toMatchObject({ classes: [], records: [{ text: "c,3" }] });
    await outbox.send(ingest, [entry(3, ["d,4", "x"])]);
    const texts = recent.of("matrix", "p").records.map(({ text }) => text);
    expect(texts).toEqual(["d,4", "x"]);
    expect(recent.of("matrix", "p").classes).toEqual(["/matrix/line"]);
  });

  it("makes the same rows again when a batch comes again, whole or cut elsewhere", async () => {
    const ingest = await prepared();
    const entries = [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"]), entry(3, ["d,4"])];
    await outbox.send(ingest, entries);
    const restarted = newIngest(objects);
    await outbox.send(restarted, entries);
    outbox.forget();
    await outbox.send(restarted, entries.slice(0, 2));
    await outbox.send(restarted, entries.slice(2));
    expect(await rowsOf("/matrix/line")).toHaveLength(4);
  });

  it("makes of a batch that was pinned before an upgrade the ids that were made of it then", async () => {
    const ingest = await prepared();
    await outbox.send(ingest, [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"])]);
    const found = await Promise.all(
      ["a", "b", "c"].map(async (name) => {
        for await (const page of objects.read(ADMIN, { class: "/matrix/line", subtree: false }))
          for (const { id, values } of page) if (values["name"] === name) return id;
        return undefined;
      }),
    );
    expect(found.map((id) => id?.slice("line:".length + 10))).toEqual(IDS_OF_FORMER_VERSIONS);
  });

  it("repeats what was begun with the rule text it was begun with, and takes the new text afterwards", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    // The mark is written, the rows are not all: as when the controller dies in the middle.
    await expect(outbox.send(newIngest(failing()), [entry(2, ["b,2"])])).rejects.toThrow("away");
    await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=n,name\n");
    const restarted = newIngest(objects);
    await restarted.acknowledged(SOURCE);
    await outbox.send(restarted, [entry(2, ["b,2"])]);
    await outbox.send(restarted, [entry(3, ["3,c"])]);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "b", n: 2 },
      { name: "c", n: 3 },
    ]);
  });

  it("repeats what was begun with the patterns and the table it was begun with, on every controller", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    const second = new RuleService({ stores: engine, entries: testEntries(engine), objects });
    const patterns = new PatternService({ stores: engine, runtime: { ...RUNTIME, random: seededRandom(1) } });
    const putPattern = (pattern: string) => patterns.put(ADMIN, { name: "OWN", pattern, eg: "" });
    await putPattern("(?:a|b)");
    await rules.put(
      ADMIN,
      KEY,
      "--class=/matrix/line\n--parser=grok\n--pattern_1=^%{OWN:name}$\n--var_n=lookup name\n",
    );
    await rules.putExtension(ADMIN, KEY, "key:a\tval:1\nkey:b\tval:2\n");
    const first = await second.load(ADMIN, KEY);
    await outbox.send(ingest, [entry(1, ["a"])]);
    await expect(outbox.send(newIngest(failing()), [entry(2, ["b", "c"])])).rejects.toThrow("away");
    await putPattern("(?:b|c)");
    await rules.putExtension(ADMIN, KEY, "key:b\tval:20\nkey:c\tval:30\n");
    const next = await second.load(ADMIN, KEY);
    expect(next.digest).not.toBe(first.digest);
    const restarted = newIngest(objects);
    await restarted.acknowledged(SOURCE);
    await outbox.send(restarted, [entry(2, ["b", "c"])]);
    await outbox.send(restarted, [entry(3, ["c"])]);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "b", n: 2 },
      { name: "c", n: 30 },
    ]);
  });

  it("upserts objects of a class with keys", async () => {
    const ingest = await prepared();
    await rules.put(ADMIN, KEY, "--class=/matrix/keyed\n--parser=csv\n--fields=name,n\n");
    await ingest.acknowledged(SOURCE);
    await outbox.send(ingest, [entry(1, ["a,1", "b,2"]), entry(2, ["a,3"])]);
    expect(await rowsOf("/matrix/keyed")).toEqual([
      { name: "a", n: 3 },
      { name: "b", n: 2 },
    ]);
  });

  it("upserts objects that are years ahead of the clock, too", async () => {
    const ingest = await prepared();
    await rules.put(ADMIN, KEY, "--class=/matrix/keyed\n--parser=csv\n--fields=name,n\n");
    await objects.insert(ADMIN, "/matrix/keyed", [{ name: "future", n: 1 }], { atMs: Date.UTC(2130, 0) });
    await outbox.send(ingest, [entry(1, ["future,2", "now,2"])]);
    expect(await rowsOf("/matrix/keyed")).toEqual([
      { name: "future", n: 2 },
      { name: "now", n: 2 },
    ]);
  });

  it("keeps what cannot be parsed or stored as error records, and all of its neighbours", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    const bad = Array.from({ length: 30 }, (_, index) => `x${index},1,too,many`);
    await outbox.send(ingest, [entry(1, ["a,1", "b,not a number", "c,3", ...bad, ""])]);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "c", n: 3 },
    ]);
    const log = await rowsOf("/matrix/consolelog/rule");
    expect(log.reduce((sum, row) => sum + Number(row["count"]), 0)).toBe(31);
    expect(log).toContainEqual(
      expect.objectContaining({ name: KEY, host: "web-1", source: "/var/log/a", raw: "x0,1,too,many", count: 1 }),
    );
  });

  it("keeps a record that cannot be parsed, wherever its characters of two units lie", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    // The bound of what is kept lies within a character of one of them.
    const lines = ["a,1,", "ab,1,"].map((line) => `${line}${"\u{1F600}".repeat(600)},too,many`);
    await outbox.send(ingest, [entry(1, [...lines, "c,3"])]);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "c", n: 3 }]);
    const raws = (await rowsOf("/matrix/consolelog/rule")).map(({ raw }) => String(raw));
    expect(raws).toHaveLength(2);
    for (const raw of raws) expect(lines.some((line) => line.startsWith(raw) && raw.length > 990)).toBe(true);
  });

  it("tells what comes late of a host that was away behind what a reader of the log has, line by line", async () => {
    const ingest = await prepared();
    const logs = new ConsoleLogService({ objects, clock: RUNTIME.clock });
    const read = (position = "") => logs.read(ADMIN, { kind: "rule", name: KEY, levels: [] }, { position });
    await outbox.send(ingest, [entry(1, ["x,1,too,many"])]);
    const { position } = await read();
    const agoMs = BASE_MS - 3_600_000;
    const lines = Array.from({ length: 30 }, (_, index) => `y${index},1,too,many`);
    const late = { ...SOURCE, streamId: "stream-0002" };
    await new TestOutbox(late).send(ingest, [{ ...entry(1, lines), timeMs: agoMs }]);
    const found = (await read(position)).logs;
    const counted = "10 more records of this entry could not be parsed.";
    expect(found.map(({ raw, msg }) => (raw === "" ? msg : raw))).toEqual([...lines.slice(0, 20), counted]);
    expect(new Set(found.map(({ sttime }) => sttime))).toEqual(new Set([agoMs]));
    for (const { edtime } of found) expect(edtime).toBeGreaterThanOrEqual(BASE_MS);
  });

  it("counts records that lost their end or have bytes that are no characters, once for each entry", async () => {
    const ingest = await prepared();
    const marked = entry(1, ["a,1", "b,2", "c,3"]);
    if (marked.body?.$case !== "records") throw new Error("records");
    marked.body.value.cut = [0, 7];
    marked.body.value.malformed = [1];
    marked.body.value.records[2] = Buffer.from("63ff2c33", "hex");
    for (const controller of [ingest, newIngest(objects)]) await outbox.send(controller, [marked, entry(2, ["d,4"])]);
    const told = (await rowsOf("/matrix/consolelog/rule")).map(({ level, count, msg }) => ({ level, count, msg }));
    expect(told.toSorted((a, b) => Number(a.count) - Number(b.count))).toEqual([
      { level: 3, count: 1, msg: `Longer than ${RECORD_MAX_BYTES} bytes, and stored without their end: 1 record.` },
      { level: 3, count: 2, msg: "With bytes that are no character of their encoding, stored as U+FFFD: 2 records." },
    ]);
    expect(await rowsOf("/matrix/line")).toHaveLength(4);
  });

  it("goes on when a rule cannot be used, and says so with the number of records", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    expect(await outbox.send(ingest, [entry(1, ["a,1", "b,2"], "/matrix/rules/gone"), entry(2, ["c,3"])])).toBe(2);
    expect(await rowsOf("/matrix/consolelog/rule")).toMatchObject([
      { name: "/matrix/rules/gone", count: 2, msg: "There is no rule /matrix/rules/gone." },
    ]);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  it("waits with the records of a rule that was removed while a policy of the host needs it, and loses none", async () => {
    await prepared();
    let isNeeded = true;
    const needs = (_tenant: string, host: string, rule: string) =>
      Promise.resolve(isNeeded && host === SOURCE.host && rule === KEY);
    const ingest = newIngest(objects, undefined, { sent: { ...EVERYTHING_SENT, needs } });
    const text = (await rules.load(ADMIN, KEY)).text;
    const sent = [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"], "/matrix/rules/gone")];
    await rules.remove(ADMIN, KEY);
    await expect(outbox.send(ingest, sent)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining(`The rule ${KEY} was removed: its records wait`) as string,
    });
    expect([await rowsOf("/matrix/line"), await rowsOf("/matrix/consolelog/rule")]).toEqual([[], []]);
    await rules.put(ADMIN, KEY, text);
    expect(await outbox.send(ingest, sent)).toBe(2);
    expect((await rowsOf("/matrix/line")).map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await rowsOf("/matrix/consolelog/rule")).toMatchObject([{ name: "/matrix/rules/gone", count: 1 }]);

    await rules.remove(ADMIN, KEY);
    isNeeded = false;
    expect(await outbox.send(ingest, [entry(3, ["d,4"])])).toBe(3);
    expect(await rowsOf("/matrix/consolelog/rule")).toHaveLength(2);
  });

  it("counts a run once, in whatever stream it is told", async () => {
    const ingest = await prepared();
    const run = {
      policy: "tick",
      policyRevision: 1,
      scheduledMs: BASE_MS,
      state: "ok",
      code: 0,
      message: "",
      startedMs: 1,
      endedMs: 2,
      records: 3,
    };
    const told: Entry = { sequence: 1, timeMs: BASE_MS + 500, traceparent: "", body: { $case: "run", value: run } };
    await outbox.send(ingest, [told]);
    await new TestOutbox({ ...SOURCE, streamId: "stream-0002" }).send(ingest, [{ ...told, timeMs: BASE_MS + 900 }]);
    expect(await rowsOf("/matrix/system/policyrun")).toMatchObject([
      { policy: "tick", host: "web-1", state: "ok", records: 3 },
    ]);
  });

  it("keeps what the agent lost as a gap, and takes no hole for one that nobody told", async () => {
    const ingest = await prepared();
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    await outbox.send(ingest, [entry(5, ["b,2"])], 3);
    await outbox.send(newIngest(objects), [entry(5, ["b,2"])]);
    await outbox.send(newIngest(objects), [entry(9, ["c,3"])]);
    expect(await rowsOf("/matrix/system/policygap")).toMatchObject([{ reason: "lost", unit: "entries", count: 3 }]);
  });

  it.each([1, 2, 3])(
    "stores each record once on a store that fails and loses answers, when the agent repeats what is not acknowledged (seed %i)",
    async (seed) => {
      await using nasty = await openTestEngine({ faultySeed: seed });
      const over = new ObjectService({
        stores: nasty,
        runtime: { ...testRuntime(realClock), random: seededRandom(seed) },
      });
      for (const definition of CLASSES) over.registerSystemClass(definition);
      const records = new RecordWriter({
        objects: over,
        classes: POLICY_RECORD_PATHS,
        clock: RUNTIME.clock,
      });
      const texts = new RuleService({ stores: nasty, entries: testEntries(nasty), objects: over });
      const columns = [
        { name: "name", type: "varchar" },
        { name: "n", type: "int" },
      ] as const;
      await over.createClass(ADMIN, { path: "/matrix/line", kind: "record", columns }, { ifNotExists: true });
      await again(() => texts.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=name,n\n"));
      const controller = () =>
        new IngestService({
          stores: nasty,
          runtime: RUNTIME,
          keys: TEST_KEYS,
          rules: texts,
          records,
          commands: { accept: () => Promise.resolve(new Set()) },
          sent: EVERYTHING_SENT,
          ospaceOf: () => Promise.resolve("/matrix"),
        });
      const entries = Array.from({ length: 120 }, (_, at) => entry(at + 1, [`a${at},${at}`, `b${at},${at}`]));
      let failures = 0;
      for (let ingest = controller(), done = 0; done < entries.length; ) {
        try {
          done = await outbox.send(ingest, entries.slice(done, done + 3));
        } catch {
          failures++;
          // Every other time it is another controller that goes on.
          if (failures % 2 === 0) ingest = controller();
          const known = await again(() => ingest.acknowledged(SOURCE));
          expect(known).toBeLessThanOrEqual(done);
        }
      }
      // With every seed, some of forty batches fail.
      expect(failures).toBeGreaterThan(0);
      const rows: unknown[] = [];
      for await (const page of over.read(ADMIN, { class: "/matrix/line", subtree: false }))
        rows.push(...page.map((row) => row.values["name"]));
      expect(rows.sort()).toEqual(entries.flatMap((_, at) => [`a${at}`, `b${at}`]).sort());
      const gaps: unknown[] = [];
      for await (const page of over.read(ADMIN, { class: "/matrix/system/policygap", subtree: false }))
        gaps.push(...page);
      expect(gaps).toEqual([]);
      await over.close();
    },
  );

  it("acknowledges nothing of a batch whose thread ended, and stores it once when it is repeated", async () => {
    const tenants: string[] = [];
    let broken = true;
    const run: Workers<{ parseRecords: RuleTasks["parseRecords"] }>["run"] = (name, input, { tenant }) => {
      tenants.push(tenant);
      if (broken) return Promise.reject(new AppError("internal", "The thread ended."));
      return Promise.resolve(RULE_TASKS[name](input) as never);
    };
    const ingest = await prepared({ run: run });
    await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=grok\n--pattern_1=^%{WORD:name},%{INT:n:int}\n");
    const batch = [entry(1, ["a,1"]), entry(2, ["b,2"]), entry(3, [`c,3${" ".repeat(9_000)}`, "d,4"])];
    await expect(outbox.send(ingest, batch)).rejects.toMatchObject({ code: "internal" });
    broken = false;
    expect(await outbox.send(ingest, batch)).toBe(3);
    expect((await rowsOf("/matrix/line")).map(({ name, n }) => [name, n])).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
      ["d", 4],
    ]);
    expect(tenants).toEqual(["matrix", "matrix"]);
  });

  it("makes rows of their own of two hosts that name the same stream", async () => {
    const ingest = await prepared();
    const other = { ...SOURCE, host: "web-2" };
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    expect(await ingest.acknowledged(other)).toBe(0);
    await new TestOutbox(other).send(ingest, [entry(1, ["b,2"])]);
    expect(await rowsOf("/matrix/line")).toHaveLength(2);
  });

  it("keeps tenants apart", async () => {
    const ingest = await prepared();
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    expect(await ingest.acknowledged({ ...SOURCE, tenant: "second" })).toBe(0);
  });
});

/** Takes no rows. */
function failing(): Pick<Objects, "ingest"> {
  return { ingest: () => Promise.reject(new AppError("unavailable", "away")) };
}
