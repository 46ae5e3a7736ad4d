import { join } from "node:path";
import { rm } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { disagreements } from "../../../../test/tools/crash/verify.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { Environment } from "../environment/environment.ts";
import { ReadTurns } from "../environment/read-turns.ts";
import { openTenant, type EmbeddedTenant } from "../tenant.ts";

const ALL = { limit: 100, beforeUs: 4e15 };
const [a, b] = [
  { cid: 1, id: "a" },
  { cid: 1, id: "b" },
];
const parts = { runtime: testRuntime(realClock), turns: new ReadTurns(realClock) };
let folder: string;
let store: EmbeddedTenant;
beforeEach(async () => {
  folder = await storeFolder("odp-scrub-");
  store = await openTenant(folder, parts);
  await store.objects.change([
    { key: a, timeUs: 10, birth: true, addTerms: ["t"], numbers: new Map([[0, 5]]), addEdges: [{ type: "e", to: b }] },
    { key: b, timeUs: 10, birth: true },
  ]);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

/** Changes the tables directly, without the store. */
async function tampered(action: (env: Environment) => void): Promise<void> {
  await store.close();
  const env = new Environment(join(folder, "lmdb"), realClock);
  await env.write(() => action(env));
  await env.close();
  store = await openTenant(folder, parts);
}

async function disagreement(): Promise<readonly string[]> {
  await store.close();
  const env = new Environment(join(folder, "lmdb"), realClock);
  const found = disagreements(env);
  await env.close();
  store = await openTenant(folder, parts);
  return found;
}

test("terms, numbers and edges that are gone from the indexes are written again", async () => {
  await tampered(({ tables }) => {
    void tables.terms.clearSync();
    void tables.numbers.clearSync();
    for (const key of [...tables.edgesIn.getKeys({ start: Uint8Array.of(0) })]) tables.edgesIn.remove(key);
  });
  const { items } = await store.objects.scan({ limit: 10 });
  const missing = await store.scrub.missing(items.map((entity) => ({ entity, terms: [] })));
  expect(missing).toEqual([["t", "number 0"], []]);
  await store.scrub.add([{ key: a, timeUs: 10, addTerms: ["t"], numbers: new Map([[0, 5]]) }]);
  expect(await store.scrub.edges("source", ALL)).toMatchObject({ looked: 1, missing: 1 });
  expect(await disagreement()).toEqual([]);
});

test("terms and edges that nothing stands behind are removed, and no others", async () => {
  await tampered(({ tables }) => {
    void tables.terms.put("ghost", Buffer.from([0, 0, 0, 1, 98]));
    for (const { key } of [...tables.edgesOut.getRange({ start: Uint8Array.of(0) })]) void tables.edgesOut.remove(key);
  });
  const { items } = await store.scrub.postings({ limit: 10 });
  expect(items.map(({ term, key, timeUs }) => [term, key.id, timeUs])).toEqual([
    ["ghost", "b", 0],
    ["t", "a", 10],
  ]);
  await store.scrub.remove(items.slice(0, 1));
  expect(await store.scrub.edges("target", ALL)).toMatchObject({ looked: 1, superfluous: 1 });
  expect(await disagreement()).toEqual([]);
});

test("pages go through every row once", async () => {
  await store.objects.change([{ key: b, timeUs: 11, addTerms: ["t", "u", "v"] }]);
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.scrub.postings({ limit: 1, ...(cursor !== undefined && { cursor }) });
    found.push(...page.items.map(({ term, key }) => `${term} ${key.id}`));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(found).toEqual(["t a", "t b", "u b", "v b"]);
});
