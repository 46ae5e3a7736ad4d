import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as limits from "../../common/limits.ts";
import type { Row } from "../../common/value.ts";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService, SearchService, visibleObjects } from "../../controller/areas/query/index.ts";
import { ThreadScripts } from "../../controller/scripting/index.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { realClock, shiftedClock } from "../helpers/time/clock.ts";
import { makeDemoClasses } from "../helpers/areas/demonstration.ts";
import { openTestEngine } from "../helpers/engines/engine.ts";
import { testRuntime } from "../helpers/time/runtime.ts";
import { fencesOf } from "./blocks.ts";
import { MQL_SERIES } from "./pages.ts";
import { runPage } from "./script.ts";

/** Series of pages to be read in order: each page continues with the objects of those before. */
const SERIES = [
  { pages: MQL_SERIES, bounds: 17 },
  { pages: ["deploy/docs/mql-from-sql.md"], bounds: 0 },
  { pages: ["deploy/docs/mql-joins.md"], bounds: 5 },
  { pages: ["deploy/docs/mql-times.md"], bounds: 4 },
  { pages: ["deploy/docs/search.md"], bounds: 5 },
  { pages: ["deploy/docs/search-times.md"], bounds: 0 },
];
const PAGES = SERIES.flatMap(({ pages }) => pages);
/** Pages run by `pages.test.ts` of the areas `rules` and `transfer`. */
const OF_AREAS = [
  "deploy/docs/rules.md",
  "deploy/docs/rule-bodies.md",
  "deploy/docs/grok.md",
  "deploy/docs/csv-rules.md",
  "deploy/docs/log-programs.md",
  "deploy/docs/log-csv.md",
  "deploy/docs/log-recipes.md",
  "deploy/docs/log-web-servers.md",
  "deploy/docs/times.md",
  "deploy/docs/spreadsheets.md",
  "deploy/docs/exports.md",
  "deploy/docs/file-archives.md",
];
/** Time at which the examples of the pages run, a Friday, so that they may use `today` and `last week`. */
const NOON_MS = Date.UTC(2026, 0, 2, 12);

let scripts: ThreadScripts;

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `mql-pages-${process.pid}.mjs`);
  scripts = new ThreadScripts({ ...testRuntime(realClock), file, languages: ["lua"], functions: () => [] });
});
afterAll(() => scripts.close());

describe.each(SERIES)("$pages", ({ pages, bounds }) => {
  const text = pages.map((page) => readFileSync(page, "utf8")).join("\n");

  test("its examples answer what stands below them, beside the demonstration", async () => {
    const runtime = testRuntime(shiftedClock(realClock, NOON_MS - Date.now()));
    await using engine = await openTestEngine(runtime);
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    await makeDemoClasses(objects);
    const query = new QueryService({ objects, runtime });
    const searches = new SearchService({ objects, runtime, engine: () => scripts });
    for (const page of pages)
      await runPage(page, {
        mql: (...asked) => query.rows(...asked),
        async search(who, asked) {
          const rows: Row[] = [];
          for await (const some of (await searches.search(who, asked)).rows) rows.push(...some);
          return rows;
        },
      });
    await objects.close();
  });

  test("it states the bounds as they are", () => {
    const stated = [...text.matchAll(/^\| `(\w+)` \| ([\d,]+) \|/gm)].map(([, name = "", most = ""]) => [
      name,
      Number(most.replaceAll(",", "")),
    ]);
    expect(stated).toHaveLength(bounds);
    expect(limits).toMatchObject(Object.fromEntries(stated));
  });

  test("it asks for what the demonstration keeps", () => {
    const examples = fencesOf(text).map((fence) => fence.text);
    expect(examples.filter((example) => /^(select|.*#)[^]*\/matrix\/demo\/(load|log)/m.test(example))).not.toEqual([]);
  });
});

test("no other page has examples that nobody runs", () => {
  const names = readdirSync("deploy/docs", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".md"),
  );
  const kinds = new Set([...PAGES, ...OF_AREAS].flatMap((page) => kindsOf(page)));
  expect(kinds).toContain("mql");
  const pages = [...names.map((name) => `deploy/docs/${name}`), "README.md"];
  const withExamples = pages.filter((page) => kindsOf(page).some((kind) => kinds.has(kind)));
  expect(withExamples.toSorted()).toEqual([...PAGES, ...OF_AREAS].toSorted());
});

function kindsOf(page: string): readonly string[] {
  return fencesOf(readFileSync(page, "utf8")).map(({ kind }) => kind);
}
