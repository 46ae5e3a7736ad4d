import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { CHANGE_BATCH_MAX, COMMAND_ID_MAX_CHARACTERS, INGEST_ERRORS_KEPT_PER_ENTRY } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import {
  BASE_MS,
  EVERYTHING_SENT,
  openTestIngest,
  recordsEntry,
  TestOutbox,
} from "../../../test/helpers/areas/ingest.ts";
import { TestClock, testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { RecordWriter } from "./index.ts";
import type { Asked } from "./sent-policies.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/line";

let world: Awaited<ReturnType<typeof openTestIngest>>;
beforeAll(async () => {
  world = await openTestIngest();
  await world.rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=name,n\n");
});
afterAll(() => world[Symbol.asyncDispose]());

let streams = 0;
function newSource() {
  const number = ++streams;
  return { tenant: "matrix", host: `h${number}`, streamId: `stream-${String(number).padStart(4, "0")}` };
}

const entry = (sequence: number, body?: Entry["body"]): Entry => ({ sequence, timeMs: BASE_MS, traceparent: "", body });
const rowsOf = async (path: string, host: string) => (await world.rows(path)).filter((row) => row["host"] === host);
const errorsOf = (host: string) => rowsOf("/matrix/consolelog/rule", host);

function output(sequence: number, commandId = "c"): Entry {
  return entry(sequence, { $case: "output", value: { commandId, stderr: false, offset: 0, data: Buffer.from("x") } });
}

function run(sequence: number, policy: string): Entry {
  const ran = { policyRevision: 1, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2, records: 0 };
  return entry(sequence, { $case: "run", value: { policy, scheduledMs: BASE_MS, ...ran } });
}

const GAP = { source: "/var/log/a", reason: "rotated", unit: "bytes", count: 5 };

function gap(sequence: number, policy: string): Entry {
  const lost = { ...GAP, fromMs: BASE_MS - 2, toMs: BASE_MS - 1 };
  return entry(sequence, { $case: "gap", value: { policy, ...lost } });
}

/** Everything was sent to the host except these names. */
function without(...names: readonly string[]) {
  const among = (asked: ReadonlySet<string>) => new Set([...asked].filter((name) => names.includes(name)));
  const missing = (_tenant: string, _host: string, asked: Asked) =>
    Promise.resolve({ policies: among(asked.policies), rules: among(asked.rules) });
  return { ...EVERYTHING_SENT, missing };
}

test("what commands wrote goes to the area hosts in order, and is acknowledged only when taken there", async () => {
  const source = newSource();
  const calls: (readonly number[])[] = [];
  let away = true;
  const ingest = world.controller({
    commands: {
      accept: (_source, entries) => {
        calls.push(entries.map(({ sequence }) => sequence));
        return away ? Promise.reject(new AppError("unavailable", "away")) : Promise.resolve(new Set());
      },
    },
  });
  const batch = [output(1), recordsEntry(2, ["cmd,1"], KEY), output(3)];
  await expect(new TestOutbox(source).send(ingest, batch)).rejects.toMatchObject({ code: "unavailable" });
  expect(await ingest.acknowledged(source)).toBe(0);
  away = false;
  expect(await new TestOutbox(source).send(ingest, batch)).toBe(3);
  expect(await new TestOutbox(source).send(ingest, [recordsEntry(4, ["cmd,2"], KEY)])).toBe(4);
  expect(calls).toEqual([
    [1, 3],
    [1, 3],
  ]);
});

test("a command whose id is too long to be one leaves an error, its neighbours none", async () => {
  const source = newSource();
  const longest = "c".repeat(COMMAND_ID_MAX_CHARACTERS);
  expect(
    await new TestOutbox(source).send(world.controller(), [output(1), output(2, longest), output(3, `${longest}c`)]),
  ).toBe(3);
  const msg = "The id of a command has at most 512 characters.";
  expect(await errorsOf(source.host)).toMatchObject([{ msg, count: 1 }]);
});

test("a gap that the agent tells is a row with what it says, one for each", async () => {
  const source = newSource();
  await new TestOutbox(source).send(world.controller(), [gap(1, "p"), gap(2, "p"), gap(3, "")]);
  const rows = await rowsOf("/matrix/system/policygap", source.host);
  expect(rows.map(({ policy }) => policy).sort()).toEqual(["", "p", "p"]);
  expect(rows[0]).toMatchObject({ ...GAP, stime: BASE_MS - 2, etime: BASE_MS - 1 });
});

test("runs and gaps of a policy that was never sent are errors that name it, and no runs or gaps", async () => {
  const source = newSource();
  const ingest = world.controller({ sent: without("foreign") });
  expect(
    await new TestOutbox(source).send(ingest, [run(1, "foreign"), gap(2, "foreign"), run(3, "own"), gap(4, "own")]),
  ).toBe(4);
  const message = `The policy foreign was never sent to ${source.host}.`;
  expect((await errorsOf(source.host)).map(({ msg }) => msg)).toEqual([message, message]);
  expect(await rowsOf("/matrix/system/policyrun", source.host)).toMatchObject([{ policy: "own" }]);
  expect(await rowsOf("/matrix/system/policygap", source.host)).toMatchObject([{ policy: "own" }]);
});

test("records by a rule that was never sent are one error with a number, as are those without a rule", async () => {
  const source = newSource();
  const ingest = world.controller({ sent: without(KEY) });
  expect(
    await new TestOutbox(source).send(ingest, [recordsEntry(1, ["a,1", "b,2"], KEY), recordsEntry(2, ["c,3"], "")]),
  ).toBe(2);
  expect(await errorsOf(source.host)).toMatchObject([
    { name: "", msg: "The policy p names no rule.", count: 1, raw: "c,3" },
    { name: KEY, msg: `The rule ${KEY} belongs to no policy that was sent to ${source.host}.`, count: 2, raw: "a,1" },
  ]);
});

test("an entry of a kind that is not known here is passed over, and the stream goes on", async () => {
  const source = newSource();
  expect(await new TestOutbox(source).send(world.controller(), [entry(1), recordsEntry(2, ["unknown,1"], KEY)])).toBe(
    2,
  );
  expect((await world.rows("/matrix/line")).filter(({ name }) => name === "unknown")).toHaveLength(1);
});

test("of each entry the first errors are kept with their text, the rest as a number", async () => {
  const source = newSource();
  const bad = (count: number) => Array.from({ length: count }, (_, at) => `x${at},1,too,many`);
  await new TestOutbox(source).send(world.controller(), [
    recordsEntry(1, bad(INGEST_ERRORS_KEPT_PER_ENTRY + 3), KEY),
    recordsEntry(2, bad(INGEST_ERRORS_KEPT_PER_ENTRY), KEY),
  ]);
  const errors = await errorsOf(source.host);
  const withText = errors.filter(({ raw }) => raw !== "");
  expect(withText.map(({ count }) => count)).toEqual(Array(2 * INGEST_ERRORS_KEPT_PER_ENTRY).fill(1));
  const msg = "3 more records of this entry could not be parsed.";
  expect(errors.filter(({ raw }) => raw === "")).toMatchObject([{ count: 3, msg }]);
});

test("rows are stored in pieces of no more than the bound, all of them once", async () => {
  const source = newSource();
  const pieces: number[] = [];
  const ingest = world.controller({
    objects: {
      unrestricted: {
        ingest: (principal, path, records) => {
          pieces.push(records.length);
          return world.objects.unrestricted.ingest(principal, path, records);
        },
      },
    },
  });
  const lines = (of: string, count: number) => Array.from({ length: count }, (_, at) => `many-${of}${at},${at}`);
  const batch = [recordsEntry(1, lines("a", 2 * CHANGE_BATCH_MAX), KEY), recordsEntry(2, lines("b", 5), KEY)];
  await new TestOutbox(source).send(ingest, batch);
  expect(pieces).toEqual([CHANGE_BATCH_MAX, CHANGE_BATCH_MAX, 5]);
  const names = (await world.rows("/matrix/line")).map(({ name }) => String(name));
  expect(new Set(names.filter((name) => name.startsWith("many-"))).size).toBe(2 * CHANGE_BATCH_MAX + 5);
});

test("a run that cannot be stored is an error with all it said, and its neighbours are stored", async () => {
  const source = newSource();
  const ingest = world.controller({
    objects: {
      unrestricted: {
        ingest: (principal, path, records) =>
          path.endsWith("/policyrun")
            ? Promise.reject(new AppError("invalid", "no such state"))
            : world.objects.unrestricted.ingest(principal, path, records),
      },
    },
  });
  expect(await new TestOutbox(source).send(ingest, [run(1, "odd"), gap(2, "odd")])).toBe(2);
  const [error, ...others] = await errorsOf(source.host);
  expect(others).toEqual([]);
  expect(error).toMatchObject({ name: "", source: "", msg: "no such state", count: 1 });
  expect(JSON.parse(String(error?.raw))).toMatchObject({ policy: "odd", state: "ok", host: source.host });
  expect(await rowsOf("/matrix/system/policygap", source.host)).toHaveLength(1);
});

test("between the pieces of a long batch others get their turn, however fast it is", async () => {
  const rule = await world.rules.load(ADMIN, KEY);
  const turns: number[] = [];
  let turn = 0;
  let running = true;
  const other = (): void => {
    turn += 1;
    if (running) setImmediate(other);
  };
  const objects = { unrestricted: { ingest: () => (turns.push(turn), Promise.resolve([])) } };
  const writer = new RecordWriter({ objects, classes: { runs: "/r", gaps: "/g" }, clock: new TestClock() });
  const lines = Array.from({ length: CHANGE_BATCH_MAX }, (_, at) => `fast-${at},${at}`);
  setImmediate(other);
  await writer.write([
    {
      principal: ADMIN,
      source: newSource(),
      entries: [1, 2, 3, 4].map((sequence) => recordsEntry(sequence, lines, KEY)),
      rules: new Map([[KEY, rule]]),
      foreign: new Set(),
      foreignCommands: new Set(),
      missing: 0,
    },
  ]);
  running = false;
  expect(new Set(turns).size).toBe(4);
});

test("a record that is tried again was counted as malformed when it came, and is not once more", async () => {
  const rule = await world.rules.load(ADMIN, KEY);
  const objects = { unrestricted: { ingest: () => Promise.resolve([]) } };
  const writer = new RecordWriter({ objects, classes: { runs: "/r", gaps: "/g" }, clock: new TestClock() });
  const entry = recordsEntry(1, ["a,1"], KEY);
  if (entry.body?.$case !== "records") throw new Error("no records");
  entry.body.value.records[0] = Buffer.from("ff2c31", "hex");
  const batch = {
    principal: ADMIN,
    source: newSource(),
    entries: [entry],
    rules: new Map([[KEY, rule]]),
    foreign: new Set<string>(),
    foreignCommands: new Set<string>(),
    missing: 0,
  };
  await writer.write([batch]);
  await writer.write([{ ...batch, again: { ordinal: 0, attempts: 1, dueMs: BASE_MS } }]);
  expect(writer.marked).toEqual({ cut: 0, malformed: 1 });
});
