import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type ClassAlteration,
  type CompareOperator,
  type Condition,
  type Operand,
  parseScript,
  type PathMode,
  type SelectItem,
  type Source,
  type Statement,
  type TextOperator,
} from "../../common/mql/index.ts";
import { KEYWORDS, RESERVED } from "../../common/mql/keywords.ts";
import {
  type DurationUnit,
  parseSearch,
  type Period,
  type Search,
  type Segment,
  type TestOperator,
  type When,
} from "../../common/search/index.ts";
import { AGGREGATES } from "../../controller/areas/query/expressions/aggregates/aggregate.ts";
import { DECLARED_OTHERS } from "../../controller/areas/query/expressions/declared.ts";
import { FUNCTIONS } from "../../controller/areas/query/expressions/functions/functions.ts";
import { WINDOW_FUNCTIONS } from "../../controller/areas/query/plan/windows.ts";
import type { ColumnType } from "../../controller/areas/objects/index.ts";
import { type Block, fencesOf, parseBlocks } from "./blocks.ts";
import { MQL_SERIES } from "./pages.ts";
import { runPage } from "./script.ts";

/** Pages that `pages.test.ts` runs. */
const MQL_PAGES = [
  ...MQL_SERIES,
  ...["mql-from-sql", "mql-joins", "mql-times"].map((name) => `deploy/docs/${name}.md`),
];

const SEARCH_PAGES = ["search", "search-times"].map((name) => `deploy/docs/${name}.md`);

/** Examples of that kind that do not answer with an error. */
function examplesOf(pages: readonly string[], kind: string): readonly Block[] {
  return pages
    .flatMap((page) => fencesOf(readFileSync(page, "utf8")))
    .filter((fence) => fence.kind === kind)
    .flatMap(({ text }) => parseBlocks(text))
    .filter(({ expected }) => !expected.startsWith("error "));
}

/** Values of all members with that name, at any depth. */
function valuesOf(tree: unknown, name: string): readonly unknown[] {
  if (typeof tree !== "object" || tree === null) return [];
  return Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
    key === name ? [value, ...valuesOf(value, name)] : valuesOf(value, name),
  );
}

/** Names of all nodes of that kind. */
function namesOf(tree: unknown, kind: string): readonly unknown[] {
  if (typeof tree !== "object" || tree === null) return [];
  const own = "kind" in tree && tree.kind === kind && "name" in tree ? [tree.name] : [];
  return [...own, ...Object.values(tree).flatMap((value: unknown) => namesOf(value, kind))];
}

/** All members of a union of texts. A missing or additional one does not compile. */
function all<Name extends string>(names: Readonly<Record<Name, true>>): readonly Name[] {
  return Object.keys(names) as Name[];
}

describe("every construct of MQL stands in an example that is run", () => {
  const examples = examplesOf(MQL_PAGES, "mql");
  const trees = examples.map(({ text }) => parseScript(text));
  const shown = (name: string): ReadonlySet<unknown> => new Set(valuesOf(trees, name).flat());

  const kinds = all<
    | Statement["kind"]
    | Condition["kind"]
    | Operand["kind"]
    | Source["kind"]
    | SelectItem["kind"]
    | ClassAlteration["kind"]
    | "fill"
    | "step"
  >({
    select: true,
    union: true,
    selectEdgeTypes: true,
    insert: true,
    insertJson: true,
    update: true,
    delete: true,
    createClass: true,
    dropClass: true,
    alterClass: true,
    createEdgeType: true,
    dropEdgeType: true,
    match: true,
    batch: true,
    explain: true,
    and: true,
    or: true,
    not: true,
    compare: true,
    relate: true,
    in: true,
    inSelect: true,
    like: true,
    between: true,
    isNull: true,
    contains: true,
    textMatch: true,
    field: true,
    call: true,
    computed: true,
    case: true,
    truth: true,
    text: true,
    number: true,
    constant: true,
    list: true,
    map: true,
    placeholder: true,
    class: true,
    selected: true,
    star: true,
    item: true,
    window: true,
    addColumn: true,
    dropColumn: true,
    addKey: true,
    dropKey: true,
    addIndex: true,
    dropIndex: true,
    setOptions: true,
    fill: true,
    step: true,
  });
  const operators = all<CompareOperator | TextOperator>({
    "=": true,
    "!=": true,
    "<": true,
    "<=": true,
    ">": true,
    ">=": true,
    MATCH: true,
    PHRASE: true,
    PREFIX: true,
    FUZZY: true,
  });
  const modes = all<PathMode>({ short: true, long: true, all: true, detail: true, back: true, any: true });
  const types = all<ColumnType>({
    varchar: true,
    text: true,
    int: true,
    bigint: true,
    smallint: true,
    long: true,
    varint: true,
    float: true,
    double: true,
    boolean: true,
    timestamp: true,
    date: true,
    blob: true,
    uuid: true,
    inet: true,
    list: true,
    map: true,
    set: true,
    enum: true,
    bucket: true,
    bitlog: true,
  });
  const options = [
    "key",
    "kind",
    "version",
    "versionttl",
    "autosearch",
    "ttl",
    "time_zone",
    "alias",
    "nickname",
    "remedy",
  ];

  test.each([
    ["statements, conditions and values", "kind", kinds],
    ["comparisons", "operator", operators],
    ["ways of MATCH", "pathMode", modes],
    ["directions of MATCH", "direction", ["out", "in", "both"]],
    ["types of columns", "type", types],
    ["operations of UPDATE", "operation", ["set", "add", "take"]],
    ["what may be turned round", "negated", [true, false]],
    ["what may be written or left out", "distinct", [true, false]],
    ["JOIN and LEFT JOIN", "outer", [true, false]],
    ["order", "descending", [true, false]],
    ["UNION and UNION ALL", "all", [true, false]],
    ["a class and those below it", "subtree", [true, false]],
    ["EXPLAIN and EXPLAIN ANALYZE", "analyzes", [true, false]],
    ["DELETE WITH VERSION", "withVersion", [true, false]],
    ["REFRESH", "refresh", [true, false]],
  ])("%s", (_, member, wanted) => {
    const found = shown(member);
    expect(wanted.filter((one) => !found.has(one))).toEqual([]);
  });

  test.each([
    ["signs", "computed", ["+", "-", "*", "/", "||"]],
    ["windows", "window", WINDOW_FUNCTIONS],
    ["options of classes", "option", options],
  ])("%s", (_, kind, wanted) => {
    const found = new Set(namesOf(trees, kind));
    expect(wanted.filter((one) => !found.has(one))).toEqual([]);
  });

  test("words of the language", () => {
    const imports = examplesOf(["deploy/docs/exports.md"], "import");
    const written = [...examples, ...imports].map(({ text }) => text.replace(/'(?:''|[^'])*'|"[^"]*"/g, "''"));
    const found = new Set(written.join("\n").toUpperCase().match(/\w+/g));
    expect([...new Set(KEYWORDS.values())].filter((word) => !found.has(word))).toEqual([]);
  });

  /** `npm run gen` runs each example of that page, and CI requires that it makes no difference. */
  test("functions and aggregates, there or on the page of functions", () => {
    const page = readFileSync("deploy/docs/mql-functions.md", "utf8");
    const made = [...page.matchAll(/\| `([^|]*)` → `[^|]*` \|$/gm)].map(([, example = ""]) => example);
    const texts = [...made, ...examples.map(({ text }) => text)].join("\n");
    const names = [...Object.keys(FUNCTIONS), ...Object.keys(DECLARED_OTHERS), ...AGGREGATES];
    expect(names.filter((name) => !new RegExp(String.raw`\b${name}\(`, "i").test(texts))).toEqual([]);
  });

  test("the words that cannot be bare names are listed", () => {
    const [, words = ""] = readFileSync("deploy/docs/mql.md", "utf8").split("## Words of the language\n");
    expect(new Set([...words.matchAll(/`([A-Z]+)`/g)].map(([, word]) => word))).toEqual(RESERVED);
  });
});

describe("every construct of search stands in an example that is run", () => {
  const trees: readonly Search[] = examplesOf(SEARCH_PAGES, "search").map(({ text }) => parseSearch(text));
  const segments = trees.flatMap((search) => search.segments);
  const whens = segments.flatMap((segment) => (segment.kind === "time" ? [segment.when] : []));

  test("segments", () => {
    const wanted = all<Segment["kind"]>({
      match: true,
      top: true,
      sort: true,
      print: true,
      uniq: true,
      group: true,
      time: true,
      delete: true,
      call: true,
      lua: true,
    });
    expect(wanted.filter((kind) => !segments.some((segment) => segment.kind === kind))).toEqual([]);
  });

  test("times, periods and units", () => {
    const forms = all<When["kind"]>({ period: true, nearest: true, within: true, window: true, at: true });
    const periods = all<Period>({
      today: true,
      yesterday: true,
      week: true,
      month: true,
      year: true,
      "last day": true,
      "last week": true,
      "last month": true,
      "last year": true,
    });
    const units = all<DurationUnit>({
      second: true,
      minute: true,
      hour: true,
      day: true,
      week: true,
      month: true,
      year: true,
    });
    const [kinds, names, ofUnits] = ["kind", "name", "unit"].map((member) => new Set(valuesOf(whens, member)));
    expect(forms.filter((kind) => !kinds?.has(kind))).toEqual([]);
    expect(periods.filter((name) => !names?.has(name))).toEqual([]);
    expect(units.filter((unit) => !ofUnits?.has(unit))).toEqual([]);
    expect(segments.some((segment) => segment.kind === "time" && segment.field)).toBe(true);
  });

  test("conditions, and what stands before the class", () => {
    const wanted = all<TestOperator>({ "=": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true });
    const found = new Set(valuesOf(segments, "operator"));
    expect(wanted.filter((operator) => !found.has(operator))).toEqual([]);
    const heads = [(one: Search) => one.debug, (one: Search) => one.current, (one: Search) => !one.class];
    expect(heads.map((isSo) => [trees.some(isSo), trees.every(isSo)])).toEqual(heads.map(() => [true, false]));
  });

  test("its calls", () => {
    const calls = segments.flatMap((segment) => (segment.kind === "call" ? [segment.name] : []));
    expect(new Set(calls)).toEqual(new Set(["graph", "tree"]));
  });
});

describe("a page fails", () => {
  const asks = { mql: () => Promise.resolve([{ n: 1 }]) };
  const run = async (text: string) => {
    const folder = mkdtempSync(join(tmpdir(), "odp-page-"));
    const page = join(folder, "page.md");
    writeFileSync(page, text);
    await runPage(page, asks).finally(() => rmSync(folder, { recursive: true }));
  };

  test("by an example that answers something else", async () => {
    await run('```mql\nselect 1\n----\n{"n":1}\n```\n');
    await expect(run('```mql\nselect 1\n----\n{"n":2}\n```\n')).rejects.toThrow();
  });

  test("by an example without an answer, and by one that nobody runs", async () => {
    await expect(run("```mql\nselect 1\n```\n")).rejects.toThrow("a statement without an expectation");
    await expect(run("```sql\nselect 1\n----\nok\n```\n")).rejects.toThrow('an example of the kind "sql"');
  });
});
