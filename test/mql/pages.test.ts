import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as limits from "../../common/limits.ts";
import { KEYWORDS, RESERVED } from "../../common/mql/keywords.ts";
import type { Row } from "../../common/value.ts";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService, SearchService } from "../../controller/areas/query/index.ts";
import { realClock } from "../helpers/clock.ts";
import { openTestEngine } from "../helpers/engine.ts";
import { testRuntime } from "../helpers/runtime.ts";
import { runPage } from "./script.ts";

const PAGES = [
  { page: "deploy/docs/mql.md", bounds: 16 },
  { page: "deploy/docs/mql-from-sql.md", bounds: 0 },
  { page: "deploy/docs/mql-joins.md", bounds: 5 },
  { page: "deploy/docs/mql-times.md", bounds: 2 },
  { page: "deploy/docs/search.md", bounds: 5 },
];
const runtime = testRuntime(realClock);

describe.each(PAGES)("$page", ({ page, bounds }) => {
  test("its examples answer what stands below them", async () => {
    await using engine = await openTestEngine();
    const objects = new ObjectService({ stores: engine, runtime });
    const query = new QueryService({ objects, runtime });
    const searches = new SearchService({ objects, runtime });
    await runPage(page, {
      mql: (...asked) => query.rows(...asked),
      async search(who, text) {
        const rows: Row[] = [];
        for await (const some of (await searches.search(who, text)).rows) rows.push(...some);
        return rows;
      },
    });
    await objects.close();
  });

  test("it states the bounds as they are", () => {
    const stated = [...readFileSync(page, "utf8").matchAll(/^\| `(\w+)` \| ([\d,]+) \|/gm)].map(
      ([, name = "", most = ""]) => [name, Number(most.replaceAll(",", ""))],
    );
    expect(stated).toHaveLength(bounds);
    expect(limits).toMatchObject(Object.fromEntries(stated));
  });
});

describe("the reference", () => {
  const [page = "", words = ""] = readFileSync("deploy/docs/mql.md", "utf8").split("## Words of the language\n");

  test("shows every word of the language in an example or a form, here or on a page it links", () => {
    const linked = [...page.matchAll(/\]\((mql-[\w-]+\.md)/g)].map(([, name = ""]) => `deploy/docs/${name}`);
    const pages = [page, ...[...new Set(linked)].map((name) => readFileSync(name, "utf8"))];
    const code = pages.flatMap((text) => [...text.matchAll(/^```mql\n.*?^```$|`[^`\n]+`/gms)]).join("\n");
    const shown = new Set(code.toUpperCase().match(/\w+/g));
    expect([...new Set(KEYWORDS.values())].filter((word) => !shown.has(word))).toEqual([]);
  });

  test("lists the words that cannot be bare names", () => {
    const listed = [...words.matchAll(/`([A-Z]+)`/g)].map(([, word]) => word);
    expect(new Set(listed)).toEqual(RESERVED);
  });
});
