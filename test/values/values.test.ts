import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRandom } from "../helpers/time/clock.ts";
import { onCluster } from "../helpers/engines/engine.ts";
import { Dice } from "../helpers/mql/world.ts";
import { TIMES } from "../helpers/time/times.ts";
import { Caller } from "./calls.ts";
import {
  answersValues,
  type Coverage,
  ENDPOINTS_IN,
  ENDPOINTS_OUT,
  FORMATS,
  GRAMMAR,
  HOST_FUNCTIONS,
  PARSERS,
  takesValues,
} from "./declared.ts";
import { STREAMS, takesTexts, TEXTS_IN } from "./declared-texts.ts";
import { PAGE, readPage } from "./page.ts";
import { allOutcomes, ValueTable } from "./table.ts";
import { VALUES } from "./values.ts";
import { WAYS_IN } from "./ways-in.ts";
import { KEPT_WAYS } from "./ways-kept.ts";
import { WAYS_OUT } from "./ways-out.ts";

/**
 * Compares the results for values that programs often change with the page that lists them. Every run tests every way
 * with some values, drawn by a seed; `npm run soak` tests all. `npm run values` writes the page.
 */

/** Number of values that each way tests in one run. */
const DRAWN_VALUES = 2;
/** Number of ways that read each written object. */
const DRAWN_READS = 1;
const SEED = 20_261_128;

const told = readPage(readFileSync(PAGE, "utf8"));
const names = VALUES.map(({ name }) => name);
let caller: Caller;
let table: ValueTable;

beforeAll(async () => {
  caller = await Caller.open({ runsScripts: !onCluster });
  table = await ValueTable.open(caller);
});
afterAll(() => caller[Symbol.asyncDispose]());

/** Another engine sees cells, terms and slots only, by every way in. There one way in and conditions are tested. */
const STORED = new Set(["MQL", "condition `=`", "condition on a neighbour", "pages by `ORDER BY`", "object key"]);
const [waysIn, waysOut, keptWays] = onCluster
  ? [WAYS_IN.slice(0, 1), WAYS_OUT.filter(({ name }) => STORED.has(name)), []]
  : [WAYS_IN, WAYS_OUT, KEPT_WAYS];

describe("what the program declares is tried, or says why not", () => {
  const known = new Set([...WAYS_IN, ...WAYS_OUT, ...KEPT_WAYS].map(({ name }) => name));

  /** Fails with the names that are declared but not covered, or covered but not declared. */
  function expectCovered(
    what: string,
    declared: readonly string[],
    coverage: Readonly<Record<string, Coverage>>,
  ): void {
    const missing = declared.filter((name) => patternOf(name, coverage) === undefined);
    expect(missing, `${what} without a way that tries values, in test/values/declared.ts`).toEqual([]);
    const used = new Set(declared.map((name) => patternOf(name, coverage)));
    expect(
      Object.keys(coverage).filter((name) => !used.has(name)),
      `${what} that are not there any more`,
    ).toEqual([]);
    const ways = Object.values(coverage).flatMap((one) => ("tried" in one ? one.tried : []));
    expect(
      ways.filter((name) => !known.has(name)),
      "ways that are not there",
    ).toEqual([]);
  }

  function patternOf(name: string, coverage: Readonly<Record<string, Coverage>>): string | undefined {
    return [name, name.replace(/\.[^.]*$/, ".*")].find((one) => Object.hasOwn(coverage, one));
  }

  test("endpoints that take or answer values of any type", () => {
    const { endpoints } = caller.world.assembly;
    const nameOf = ({ method, path }: (typeof endpoints)[number]): string => `${method} ${path}`;
    expectCovered("endpoints in", endpoints.filter(takesValues).map(nameOf), ENDPOINTS_IN);
    expectCovered("endpoints out", endpoints.filter(answersValues).map(nameOf), ENDPOINTS_OUT);
  });

  test("endpoints that take texts, sockets and streams", () => {
    const { endpoints, sockets } = caller.world.assembly;
    const taking = endpoints.filter(takesTexts).map(({ method, path }) => `${method} ${path}`);
    expectCovered("endpoints that take texts", taking, TEXTS_IN);
    const events = endpoints.filter((endpoint) => endpoint.events).map(({ path }) => path);
    expectCovered("streams", [...new Set([...events, ...sockets.map(({ path }) => path)])], STREAMS);
  });

  test("functions of scripts that take values of any type", async () => {
    const described = await Promise.all(
      ["/api/trigger/funcs", "/api/rule/funcs"].map(async (url) => (await caller.call("GET", url)).message),
    );
    const functions = described.flat() as readonly { name: string; parameters: readonly { type: string }[] }[];
    const simple = ["string", "integer", "number", "boolean"];
    const taking = functions.filter(({ parameters }) => parameters.some(({ type }) => !simple.includes(type)));
    expectCovered("functions", [...new Set(taking.map(({ name }) => name))], HOST_FUNCTIONS);
  });

  test("parsers of rules, formats of exports and forms of MQL", async () => {
    const rule = { text: "--class=/matrix/exact\n--parser=none", lines: ["x"] };
    const parsers = await caller.json("POST", "/mxobject/rule/try", JSON.stringify(rule));
    expectCovered(
      "parsers",
      listed(`${parsers.error}${JSON.stringify(parsers.message)}`, /there are ([\w, ]+)\./),
      PARSERS,
    );
    const formats = await caller.call("GET", "/mxobject/export?filetype=none");
    expectCovered("formats", listed(formats.error, /it is ([\w ]+)\./), FORMATS);
    for (const [name, coverage] of Object.entries(GRAMMAR)) expectCovered(name, Object.keys(coverage), coverage);
  });

  function listed(message: string, pattern: RegExp): readonly string[] {
    return (pattern.exec(message)?.[1] ?? "").split(/, | and | or /);
  }
});

test("the page has every way, and no value that is altered", () => {
  expect([...told.in.keys()]).toEqual(WAYS_IN.map(({ name }) => name));
  expect([...told.out.keys()]).toEqual(WAYS_OUT.map(({ name }) => name));
  expect([...told.kept.keys()]).toEqual(KEPT_WAYS.map(({ name }) => name));
  const rows = [...told.in, ...told.out, ...told.kept];
  expect(rows.filter(([, outcomes]) => outcomes.length !== names.length)).toEqual([]);
  expect(rows.filter(([, outcomes]) => outcomes.some((one) => one.includes("ALTERED")))).toEqual([]);
});

test.runIf(TIMES > 1 && !onCluster)(
  "every value that comes in by any way comes out by any other as the page tells",
  async () => {
    await using all = await Caller.open({ runsScripts: true });
    expect(await allOutcomes(all, { isProduct: true })).toEqual(told);
  },
);

describe("drawn values", () => {
  const dice = new Dice(seededRandom(SEED));
  const drawn = () => Array.from({ length: DRAWN_VALUES }, () => dice.pick(VALUES));

  test.each(waysIn)("come in by $name, and go out by others, as the page tells", async (way) => {
    for (const value of drawn()) {
      const { outcome, object } = await table.write(way, value);
      expect([value.name, outcome]).toEqual([value.name, told.in.get(way.name)?.[VALUES.indexOf(value)]]);
      if (!object) continue;
      for (let reads = 0; reads < DRAWN_READS; reads += 1) {
        const out = dice.pick(waysOut);
        const outcomes = [told.out.get(out.name)?.[VALUES.indexOf(value)], "–"];
        expect(outcomes, `${value.name} by ${out.name}`).toContain(await table.read(out, object));
      }
    }
  });

  test.each(waysOut)("go out by $name as the page tells", async (out) => {
    const [plain] = WAYS_IN;
    for (const value of drawn()) {
      const { object } = await table.write(plain ?? expect.fail("There is no way in."), value);
      const outcomes = [told.out.get(out.name)?.[VALUES.indexOf(value)], "–"];
      if (object) expect(outcomes, `${value.name} by ${out.name}`).toContain(await table.read(out, object));
    }
  });

  test.each(keptWays)("are kept by $name as the page tells", async (way) => {
    for (const value of drawn())
      expect([value.name, await table.keep(way, value)]).toEqual([
        value.name,
        told.kept.get(way.name)?.[VALUES.indexOf(value)],
      ]);
  });
});
