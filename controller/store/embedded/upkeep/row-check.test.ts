import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { DamagedRow } from "../../scrub.ts";
import { Environment } from "../environment/environment.ts";
import { concat, textBytes, u32 } from "../bytes/keys.ts";
import { entityKeyBytes } from "../bytes/object-keys.ts";
import { ReadTurns } from "../environment/read-turns.ts";
import { openTenant, type EmbeddedTenant } from "../tenant.ts";

/** More objects than one turn reads. */
const OBJECTS = 250;
const ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const parts = { runtime: testRuntime(realClock), turns: new ReadTurns(realClock) };
const key = (id: string) => ({ cid: 2, id });
const first = (): { readonly start: Uint8Array } => ({ start: Uint8Array.of(0) });

let folder: string;
let store: EmbeddedTenant;
beforeEach(async () => {
  folder = await storeFolder("odp-rows-");
  store = await openTenant(folder, parts);
  await store.objects.change(
    Array.from({ length: OBJECTS }, (_, at) => ({
      key: key(`o${at}`),
      timeUs: 10,
      birth: true as const,
      addTerms: ["c2", `t${at % 7}`],
      numbers: new Map([[0, at]]),
      version: textBytes("\u0001v"),
      addEdges: at === 0 ? [{ type: "e", to: key("o1") }] : [],
    })),
  );
  await store.objects.append([{ cid: 3, id: ULID, value: textBytes("record"), terms: ["a"] }]);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

async function everyRow(): Promise<{ readonly looked: number; readonly damaged: readonly DamagedRow[] }> {
  const damaged: DamagedRow[] = [];
  let looked = 0;
  let cursor: string | undefined;
  do {
    const page = await store.scrub.rows(cursor === undefined ? {} : { cursor });
    damaged.push(...page.damaged);
    looked += page.looked;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return { looked, damaged };
}

/** Damaged rows found after a direct change of the tables, without the store. */
async function tampered(action: (env: Environment) => void): Promise<readonly DamagedRow[]> {
  await store.close();
  const env = new Environment(join(folder, "lmdb"), realClock);
  await env.write(() => action(env));
  await env.close();
  store = await openTenant(folder, parts);
  return (await everyRow()).damaged;
}

test("every row of every table is read, and a whole store has nothing to tell", async () => {
  const { looked, damaged } = await everyRow();
  expect(damaged).toEqual([]);
  // Objects with two terms, a number and a version each, both ends of an edge, a record with a term, two rows of
  // `meta`.
  expect(looked).toBe(5 * OBJECTS + 2 + 2 + 2);
});

test.each<[string, RegExp, (env: Environment) => void]>([
  [
    "an object",
    /^terms .*the object 2:o5 that it names is missing/,
    (env) => env.tables.objects.remove(entityKeyBytes(key("o5"))),
  ],
  [
    "a term of an object",
    /^objects 2:o5 .*the term t5 lacks it/,
    (env) => void env.tables.terms.remove("t5", entityKeyBytes(key("o5"))),
  ],
  [
    "a number of an object",
    /^objects 2:o0 .*the number 0 lacks it/,
    ({ tables }) => void tables.numbers.remove([...tables.numbers.getKeys(first())][0]!),
  ],
  [
    "an edge at its source",
    /^edgesIn .*its source does not have/,
    ({ tables }) => tables.edgesOut.remove([...tables.edgesOut.getKeys(first())][0]!),
  ],
  [
    "an edge at its target",
    /^edgesOut .*its target lacks/,
    ({ tables }) => tables.edgesIn.remove([...tables.edgesIn.getKeys(first())][0]!),
  ],
  [
    "a record",
    /^recordTerms .*the record that it names is missing/,
    (env) => env.tables.records.remove(concat(u32(3), textBytes(ULID))),
  ],
  [
    "a term of a record",
    /^records 3:01ARZ.*the term a lacks it/,
    ({ tables }) => void tables.recordTerms.remove([...tables.recordTerms.getKeys(first())][0]!),
  ],
  [
    "the value of an index",
    /^recordTerms .*another value/,
    ({ tables }) => void tables.recordTerms.put([...tables.recordTerms.getKeys(first())][0]!, Uint8Array.of(2, 0)),
  ],
  [
    "a checksum",
    /^history .*it has no checksum/,
    ({ tables }) => {
      const [row] = [...tables.history.rows(first())];
      tables.history.putPlain(row!.key, row!.value);
    },
  ],
])("%s that is lost is told, and nothing else", async (_, told, action) => {
  const damaged = await tampered(action);
  expect(damaged.map(({ table, key: at, reason }) => `${table} ${at} ${reason}`)).toEqual([
    expect.stringMatching(told),
  ]);
});

test("rows that LMDB counted and does not find are told, where nobody wrote meanwhile", async () => {
  await store.close();
  const path = join(folder, "lmdb", "data.mdb");
  const file = await readFile(path);
  // The record of a tree follows its name; its number of entries is at byte 32.
  const name = Buffer.from("history\0");
  for (let at = file.indexOf(name); at >= 0; at = file.indexOf(name, at + 1)) {
    const counted = at + name.length + 32;
    if (file.readBigUInt64LE(counted) === BigInt(OBJECTS)) file.writeBigUInt64LE(BigInt(OBJECTS + 3), counted);
  }
  await writeFile(path, file);
  store = await openTenant(folder, parts);
  const reason = `${OBJECTS} of ${OBJECTS + 3} rows can be read`;
  expect((await everyRow()).damaged).toEqual([{ table: "history", key: "", reason }]);
  const { cursor } = await untilTable("history");
  await store.objects.change([{ key: key("o0"), timeUs: 20, version: textBytes("\u0001w") }]);
  expect((await rest(cursor)).filter(({ table }) => table === "history")).toEqual([]);
});

/** The first page of that table. */
async function untilTable(table: "history"): Promise<{ readonly cursor: string }> {
  const before = {
    meta: 0,
    kv: 0,
    kvlog: 0,
    kvleases: 0,
    leasekeys: 0,
    objects: OBJECTS,
    terms: 2 * OBJECTS,
    numbers: OBJECTS,
  };
  const pages = Object.values(before).reduce((sum, rows) => sum + Math.floor(rows / 100) + 1, table.length > 0 ? 1 : 0);
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1)
    ({ cursor } = await store.scrub.rows(cursor === undefined ? {} : { cursor }));
  return { cursor: cursor! };
}

async function rest(from: string): Promise<readonly DamagedRow[]> {
  const damaged: DamagedRow[] = [];
  for (let cursor: string | undefined = from; cursor !== undefined; ) {
    const page: { readonly damaged: readonly DamagedRow[]; readonly cursor?: string } = await store.scrub.rows({
      cursor,
    });
    damaged.push(...page.damaged);
    cursor = page.cursor;
  }
  return damaged;
}

test("a table whose reading ends the controller is told and passed by", async () => {
  const page = await store.scrub.rows({ isPassing: true });
  expect(page).toMatchObject({ looked: 0, damaged: [{ table: "meta", key: "" }] });
  expect(await rest(page.cursor!)).toEqual([]);
});
