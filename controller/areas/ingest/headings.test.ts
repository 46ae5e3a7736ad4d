import { afterAll, beforeAll, expect, test } from "vitest";
import { LOG_HEADING_MAX_BYTES } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { openTestIngest, recordsEntry, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";

/** Heading lines that agents send with the records of a file. */

const ADMIN = testPrincipal();
const CSV = "/matrix/rules/headed";
const W3C = "/matrix/rules/w3c";

let world: Awaited<ReturnType<typeof openTestIngest>>;
beforeAll(async () => {
  world = await openTestIngest();
  await world.rules.put(ADMIN, CSV, "--class=/matrix/line\n--parser=csv\n--header=true\n");
  await world.rules.put(ADMIN, W3C, "--class=/matrix/line\n--parser=csv\n--header=w3c\n--var_name=field cs-uri-stem\n");
});
afterAll(() => world[Symbol.asyncDispose]());

let hosts = 0;

function headed(sequence: number, lines: readonly string[], rule: string, heading?: string): Entry {
  const entry = recordsEntry(sequence, lines, rule);
  if (entry.body?.$case !== "records") return entry;
  return { ...entry, body: { $case: "records", value: { ...entry.body.value, heading } } };
}

/** Rows and faults of entries that an agent sends. */
async function sent(...entries: readonly Entry[]) {
  const host = `headed-${++hosts}`;
  const source = { tenant: "matrix", host, streamId: `stream-${host}` };
  const outbox = new TestOutbox(source);
  await outbox.send(world.controller(), entries);
  const of = async (path: string) => (await world.rows(path)).filter((row) => row["host"] === host);
  return {
    rows: await world.rows("/matrix/line"),
    faults: (await of("/matrix/consolelog/rule")).map(({ msg }) => msg),
  };
}

test("name the columns of a csv rule that names none, each those of its own file", async () => {
  const { rows, faults } = await sent(
    headed(1, ["name,n", "csv-a,1"], CSV, "name,n"),
    headed(2, ["2,csv-b"], CSV, "n,name"),
    headed(3, ["csv-c,3"], CSV, "name,n"),
  );
  expect(faults).toEqual([]);
  expect(rows.filter(({ name }) => String(name).startsWith("csv-")).map(({ name, n }) => [name, n])).toEqual(
    expect.arrayContaining([
      ["csv-a", 1],
      ["csv-b", 2],
      ["csv-c", 3],
    ]),
  );
});

test("name the columns of a W3C log, of which directives are left out", async () => {
  const { rows, faults } = await sent(
    headed(1, ["#Software: IIS", "#Version: 1.0", "#Fields: date n cs-uri-stem"], W3C),
    headed(2, ["2026-11-23 7 /w3c-a"], W3C, "#Fields: date n cs-uri-stem"),
  );
  expect(faults).toEqual([]);
  expect(rows.find(({ name }) => name === "/w3c-a")).toMatchObject({ n: 7 });
});

test("that stand among the records of a former agent hold for those behind them", async () => {
  const { rows, faults } = await sent(
    headed(
      1,
      ["1 /w3c-old-0", "#Fields: n cs-uri-stem", "2 /w3c-old-1", "#Fields: cs-uri-stem n", "/w3c-old-2 3"],
      W3C,
    ),
    headed(2, ["4 /w3c-old-3"], W3C),
  );
  const names = rows.map(({ name }) => String(name)).filter((name) => name.startsWith("/w3c-old"));
  expect(names.toSorted()).toEqual(["/w3c-old-1", "/w3c-old-2"]);
  expect(faults).toEqual([expect.stringContaining("#Fields:"), expect.stringContaining("#Fields:")]);
});

test.each([
  ["is missing", undefined],
  ["is longer than agents send", `name,n${" ".repeat(LOG_HEADING_MAX_BYTES)}`],
])("of which one %s make errors of their records, and no record is lost in silence", async (_, heading) => {
  const { faults } = await sent(headed(1, ["a,1", "b,2"], CSV, heading));
  expect(faults).toEqual([expect.stringContaining("heading line"), expect.stringContaining("heading line")]);
});
