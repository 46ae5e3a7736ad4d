import { afterAll, beforeAll, expect, test } from "vitest";
import { WORD_PATTERN_WORDS_MAX } from "../../../common/limits.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { faulty } from "../../store/faulty.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, SearchService, visibleObjects } from "./index.ts";

const ADMIN = testPrincipal();
const PLAIN = "note";
/** There every one is read by each question. */
const [OBJECTS, ROUNDS, MATCHES_MIN] = onCluster ? [40, 45, 10] : [150, 60 * TIMES, 40];
const LETTERS = ["a", "b", "K", "disk", "9", "_", " ", "-", ".", "\u0301", "\u212a", "磁", "盘", "ﬁ", "x".repeat(70)];
const WILD = ["*", "%", "a", "b", "K", "disk", "9", " ", "-", "x".repeat(70)];

let engine: TestEngine;
const services: ObjectService[] = [];
let query: QueryService;
let search: SearchService;
const random = seededRandom(17);
const some = (of: readonly string[], most: number): string =>
  Array.from(
    { length: 1 + Math.floor(random.next() * most) },
    () => of[Math.floor(random.next() * of.length)] ?? "",
  ).join("");

/** `word` has its words in the index, `plain` the same objects without: there every one is read. */
const CLASSES = ["/matrix/word", "/matrix/wordlog", "/matrix/plain"];

beforeAll(async () => {
  engine = await openTestEngine();
  const stores = onCluster ? engine : faulty(engine, { random: seededRandom(3) });
  const runtime = { ...testRuntime(realClock), random: seededRandom(1) };
  const objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  services.push(objects);
  query = new QueryService({ objects, runtime });
  search = new SearchService({ objects, runtime });
  await query.rows(
    ADMIN,
    `create class /matrix/word (name varchar, ${PLAIN} text, keys(name)) with autosearch=true;
     create class /matrix/wordlog (name varchar, ${PLAIN} text) with kind=record, autosearch=true;
     create class /matrix/plain (name varchar, ${PLAIN} text, keys(name))`,
  );
  const rows = Array.from({ length: OBJECTS }, (_, at) => ({ name: `n${at}`, note: some(LETTERS, 6) }));
  for (const path of CLASSES) {
    await objects.unrestricted.insert(ADMIN, path, rows);
    // Aged: each is written again with another text and back.
    if (path === "/matrix/wordlog") continue;
    await objects.unrestricted.insert(
      ADMIN,
      path,
      rows.map((row) => ({ ...row, note: "between" })),
    );
    await objects.unrestricted.insert(ADMIN, path, rows);
  }
});

afterAll(async () => {
  for (const service of services) await service.close();
  await engine[Symbol.asyncDispose]();
});

async function found(path: string, where: string): Promise<readonly unknown[]> {
  const rows = await query.rows(ADMIN, `select name from ${path} where ${where} limit -1`);
  return rows.map(({ name }) => name).sort();
}

async function searched(cond: string): Promise<readonly unknown[]> {
  const names: unknown[] = [];
  for await (const rows of (await search.search(ADMIN, cond)).rows) names.push(...rows.map(({ name }) => name));
  return names.sort();
}

test("words by patterns find what a read of every object finds", async () => {
  const isWord = /[a-z0-9]/i;
  let matches = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const pattern = some(WILD, 4);
    const operator = ["like", "match", "prefix"][round % 3] ?? "";
    if (operator !== "like" && !isWord.test(pattern)) continue;
    const where = `${PLAIN} ${operator} '${pattern}'`;
    const wanted = await found("/matrix/plain", where);
    matches += wanted.length;
    for (const path of ["/matrix/word", "/matrix/wordlog"])
      expect([where, path, await found(path, where)]).toEqual([where, path, wanted]);
  }
  expect(matches).toBeGreaterThan(MATCHES_MIN);
});

test("a search by a beginning finds what MQL finds", async () => {
  for (const word of ["dis*", "*sk", "*is*", "a*", "never*"]) {
    const wanted = await found("/matrix/plain", `${PLAIN} match '${word}'`);
    expect(await searched(`#/matrix/word: | ${word} | print name | top -1`)).toEqual(wanted);
  }
});

test("a word that another controller wrote is found at once", async () => {
  const runtime = { ...testRuntime(realClock), random: seededRandom(2) };
  const second = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  services.push(second);
  expect(await found("/matrix/word", `${PLAIN} match 'newcom*'`)).toEqual([]);
  await second.unrestricted.insert(ADMIN, "/matrix/word", [{ name: "other", note: "a newcomer" }]);
  expect(await found("/matrix/word", `${PLAIN} match 'newcom*'`)).toEqual(["other"]);
  await second.unrestricted.remove(ADMIN, [{ id: "word:other" }]);
  expect(await found("/matrix/word", `${PLAIN} match 'newcom*'`)).toEqual([]);
});

test("EXPLAIN says whether the words are listed; with too many of them every object is read", async () => {
  const step = async (where: string): Promise<unknown> =>
    (await query.rows(ADMIN, `explain select name from /matrix/word where ${where}`))[0]?.work;
  expect(await step(`${PLAIN} match 'dis*'`)).toBe("words dis* in class /matrix/word");
  expect(await step(`${PLAIN} match 'never*'`)).toBe("words never* in class /matrix/word");
  const many = Array.from({ length: WORD_PATTERN_WORDS_MAX + 1 }, (_, at) => `many${at}`).join(" ");
  await query.rows(ADMIN, `insert into /matrix/word name='many', note='${many}'`);
  expect(await step(`${PLAIN} match 'many*'`)).toContain("the words that fit are not listed");
  expect(await found("/matrix/word", `${PLAIN} match 'many*'`)).toEqual(["many"]);
});

test.each(["word", "wordlog"])(
  "a word with * in front, in the middle or behind is an indexed read of /matrix/%s",
  async (name) => {
    for (const [where, pattern] of [
      [`${PLAIN} match 'dis*'`, "dis*"],
      [`${PLAIN} match '*is*'`, "*is*"],
      [`${PLAIN} match '*sk'`, "*sk"],
      // The end of a word may be that of its plural.
      [`${PLAIN} like '*is*'`, "*i*"],
    ] as const) {
      const rows = await query.rows(ADMIN, `explain select name from /matrix/${name} where ${where}`);
      const told = rows.map(({ work }) => work);
      expect(told[0]).toBe(
        name === "word"
          ? `words ${pattern} in class /matrix/word`
          : `timeline of /matrix/wordlog, newest first, words ${pattern}`,
      );
      expect(told.join(" ")).toContain(`${pattern} stands for `);
    }
  },
);

test.skipIf(onCluster)("words that no object has any more are words of nothing, after 10,000 changes too", async () => {
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  services.push(objects);
  const [COUNT, ROUNDS_OF_WORDS] = [500, 20];
  for (let round = 0; round < ROUNDS_OF_WORDS; round += 1) {
    const rows = Array.from({ length: COUNT }, (_, at) => ({ name: `aged${at}`, note: `gone${round}x${at}` }));
    await objects.unrestricted.insert(ADMIN, "/matrix/word", rows);
  }
  const words = async (pattern: string): Promise<unknown> => {
    const planned = await query.rows(ADMIN, `explain select name from /matrix/word where ${PLAIN} match '${pattern}'`);
    return planned.map(({ work }) => work).find((work) => String(work).includes("stands for"));
  };
  const last = ROUNDS_OF_WORDS - 1;
  expect(await words("gone0x*")).toBe("gone0x* stands for 0 words");
  expect(await words(`gone${last}x12*`)).toContain("stands for 11 words");
  const ids = Array.from({ length: COUNT }, (_, at) => ({ id: `word:aged${at}` }));
  await objects.unrestricted.remove(ADMIN, ids);
  expect(await words("gone*")).toBe("gone* stands for 0 words");
});

test("EXPLAIN names the words of a pattern, but to nobody who does not see all rows they may be of", async () => {
  await query.rows(ADMIN, "insert into /matrix/word name='named', note='zebra zeppelin zero'");
  const mql = `explain select name from /matrix/word where ${PLAIN} match 'ze*'`;
  const steps = async (data: Principal["data"], text = mql): Promise<readonly unknown[]> =>
    (await query.rows({ ...ADMIN, data }, text)).map(({ work }) => work);
  const named = "ze* stands for 3 words: zebra, zeppelin, zero";
  expect(await steps(ADMIN.data)).toContain(named);
  const analyzed = await query.rows(ADMIN, mql.replace("select", "analyze select"));
  expect(analyzed.map(({ work }) => work)).toContain(named);
  const many = Array.from({ length: WORD_PATTERN_WORDS_MAX + 1 }, (_, at) => `crowd${at}`).join(" ");
  await query.rows(ADMIN, `insert into /matrix/word name='crowded', note='${many}'`);
  const whole = { class: "/", access: "read" } as const;
  const allRows = { ...whole, hidden: ["note"], group: "rows" };
  const allColumns = { ...whole, where: "name != 'named'", group: "columns" };
  for (const data of [
    [whole, { class: "/matrix/word", access: "read", where: "name != 'named'" }],
    [whole, { class: "/matrix/word", access: "read", hidden: ["tags"] }],
    [whole, { class: "/matrix/plain", access: "none" }],
    [allRows, allColumns],
  ] as const) {
    const [none, few, tooMany] = await Promise.all(
      ["none*", "ze*", "crowd*"].map((pattern) => steps(data, mql.replace("ze*", pattern))),
    );
    expect(few?.join(" ")).not.toMatch(/stands for|zebra|\b3\b/);
    expect(few?.join(" ").replaceAll("ze*", "none*")).toBe(none?.join(" "));
    expect(tooMany?.join(" ").replaceAll("crowd*", "none*")).toBe(none?.join(" "));
  }
});
