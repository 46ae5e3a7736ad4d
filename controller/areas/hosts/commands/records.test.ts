import { expect, test } from "vitest";
import { COMMAND_ID_MAX_CHARACTERS, COMMAND_PIECES_PER_READ } from "../../../../common/limits.ts";
import type { CommandResult, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { ObjectRow, Unrestricted } from "../../objects/index.ts";
import { CommandRecords } from "./records.ts";
import { StoredCommands } from "./stored.ts";

const TARGET = { tenant: "matrix", host: "web-1", traceparent: "" };
const SOURCE = { tenant: "matrix", host: "web-1", streamId: "s" };

/** Rows as they were stored, newest first. `gone`: rows that were removed after they were found. */
function openRecords() {
  const rows: ObjectRow[] = [];
  const gone = new Set<string>();
  const written: string[] = [];
  const objects: Unrestricted<"ingest" | "read" | "get"> = {
    unrestricted: {
      ingest: (_principal, path, records) => {
        written.push(`${path}: ${records.length}`);
        for (const { values } of records)
          rows.unshift({ id: String(rows.length), class: { path }, values } as unknown as ObjectRow);
        return Promise.resolve([]) as never;
      },
      async *read(_principal, request) {
        await Promise.resolve();
        yield [];
        yield rows.filter((row) => row.class.path === request.class);
      },
      get: (_principal, refs) =>
        Promise.resolve(refs.map(({ id }) => (gone.has(id) ? undefined : rows.find((row) => row.id === id)))),
    },
  };
  const traces: string[] = [];
  const actAs = (_tenant: string, traceparent: string) => {
    traces.push(traceparent);
    return Promise.resolve(testPrincipal());
  };
  const dependencies = { objects, actAs };
  const [records, stored] = [new CommandRecords(dependencies), new StoredCommands(dependencies)];
  return { records, stored, rows, gone, written, traces };
}

let sequence = 0;
const entry = (body: Entry["body"]): Entry => ({ sequence: ++sequence, timeMs: 1, traceparent: "", body });
const output = (offset: number, text: string, commandId = "c"): Entry =>
  entry({ $case: "output", value: { commandId, stderr: false, offset, data: Buffer.from(text) } });
const resultOf = (more: Partial<CommandResult> = {}): CommandResult => ({
  ...{ commandId: "c", state: "failed", code: 3, message: "no", startedMs: 5, endedMs: 9 },
  ...more,
});
const result = (more: Partial<CommandResult> = {}): Entry => entry({ $case: "result", value: resultOf(more) });

async function textsOf(records: CommandRecords, offset = 0, target = TARGET): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const piece of records.output(target, "c", offset)) texts.push(`${piece.offset}:${String(piece.data)}`);
  return texts;
}

test.each<Partial<CommandResult>>([{}, { signal: "SIGKILL", pid: 7, outDropped: 1, errDropped: 2 }])(
  "a result is read as it was told: %j",
  async (more) => {
    const { records } = openRecords();
    await records.keep(SOURCE, [result(more)]);
    expect(await records.result(TARGET, "c")).toEqual(resultOf(more));
  },
);

test("a result is a row with all that the agent told, output one with its bytes as base64", async () => {
  const { records, rows } = openRecords();
  await records.keep(SOURCE, [output(7, "hi"), result({ signal: "SIGKILL", pid: 7, outDropped: 1, errDropped: 2 })]);
  const of = { command: "c", host: "web-1" };
  expect(rows.map(({ values }) => values)).toEqual([
    {
      ...of,
      state: "failed",
      code: 3,
      signal: "SIGKILL",
      pid: 7,
      outdropped: 1,
      errdropped: 2,
      message: "no",
      started: 5,
      ended: 9,
    },
    { ...of, stderr: false, offset: 7, data: Buffer.from("hi").toString("base64") },
  ]);
});

test("what is told is stored by its kind, a result after the output it closes, and what is too long cut or left out", async () => {
  const { records, written } = openRecords();
  const long = "x".repeat(COMMAND_ID_MAX_CHARACTERS + 1);
  await records.keep(SOURCE, [entry(undefined), output(0, "x", long), result({ commandId: long })]);
  expect(written).toEqual([]);
  const cut = { signal: "S".repeat(30), message: "m".repeat(9_000) };
  await records.keep(SOURCE, [result(cut), output(0, "x"), entry(undefined)]);
  expect(written).toEqual(["/matrix/system/commandoutput: 1", "/matrix/system/command: 1"]);
  expect(await records.result(TARGET, "c")).toMatchObject({ signal: "S".repeat(20), message: "m".repeat(8_000) });
});

test("an id as long as may be is stored, in the trace of the first entry", async () => {
  const { records, written, traces } = openRecords();
  const first = { ...output(0, "x", "x".repeat(COMMAND_ID_MAX_CHARACTERS)), traceparent: "first" };
  await records.keep(SOURCE, [first, output(0, "y")]);
  expect([written, traces]).toEqual([["/matrix/system/commandoutput: 2"], ["first"]]);
});

test("a row without numbers is one of an agent that told none", async () => {
  const { records, rows } = openRecords();
  const values = { command: "c", host: "web-1", state: "ok" };
  rows.push({ id: "1", class: { path: "/matrix/system/command" }, values } as unknown as ObjectRow);
  const none = { code: 0, message: "", startedMs: 0, endedMs: 0 };
  expect(await records.result(TARGET, "c")).toEqual({ commandId: "c", state: "ok", ...none });
});

test("output tells which of its pieces are of errors", async () => {
  const { records } = openRecords();
  const data = Buffer.from("x");
  const piece = (offset: number, stderr: boolean) =>
    entry({ $case: "output", value: { commandId: "c", stderr, offset, data } });
  await records.keep(SOURCE, [piece(0, true), piece(1, false)]);
  const told: boolean[] = [];
  for await (const { stderr } of records.output(TARGET, "c", 0)) told.push(stderr);
  expect(told).toEqual([true, false]);
});

test("what another host or another command is told of is none of it", async () => {
  const { records } = openRecords();
  await records.keep({ ...SOURCE, host: "web-2" }, [output(0, "theirs"), result()]);
  await records.keep(SOURCE, [output(0, "other", "d"), result({ commandId: "d" })]);
  expect([await records.result(TARGET, "c"), await textsOf(records)]).toEqual([undefined, []]);
  expect(await textsOf(records, 0, { ...TARGET, host: "web-2" })).toEqual(["0:theirs"]);
});

test("output comes in its order, from where it is asked for, without pieces that were removed meanwhile", async () => {
  const { records, gone } = openRecords();
  const pieces = Array.from({ length: COMMAND_PIECES_PER_READ + 2 }, (_, at) => output(at * 2, "ab"));
  await records.keep(SOURCE, pieces);
  const texts = pieces.map((_, at) => `${at * 2}:ab`);
  expect(await textsOf(records)).toEqual(texts);
  expect([await textsOf(records, 3), await textsOf(records, 4)]).toEqual([texts.slice(1), texts.slice(2)]);
  gone.add("1");
  expect(await textsOf(records)).toEqual(texts.filter((_, at) => at !== 1));
});

test("a stored command is told with each byte once, though pieces overlap, and not before its end is stored", async () => {
  const { records, stored } = openRecords();
  await records.keep(SOURCE, [output(0, "abc"), output(1, "bc"), output(2, "cd"), output(4, "e")]);
  let text = "";
  let pieces = 0;
  const hear = ({ data }: { readonly data: Uint8Array }): void => {
    text += Buffer.from(data).toString();
    pieces++;
  };
  expect(await stored.outcome(TARGET, "c", hear)).toBeUndefined();
  expect([text, pieces]).toEqual(["abcde", 3]);
  await records.keep(SOURCE, [result()]);
  expect(await stored.outcome(TARGET, "c")).toMatchObject({ host: "web-1", state: "failed", code: 3, endedMs: 9 });
});
