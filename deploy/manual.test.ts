import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ERROR_CODES } from "../common/errors.ts";
import { Anchors } from "./manual/anchors.ts";

/**
 * Pages of the manual beside the code. Tests of their examples are beside what they use; `manual/site.ts` checks the list
 * of pages, and the links inside the manual.
 */

const FOLDER = "deploy/docs";
const names = readdirSync(FOLDER).filter((name) => name.endsWith(".md"));
const text = (name: string) => readFileSync(join(FOLDER, name), "utf8");

/** Targets of the links of a page to other files of the repository. */
function linksOutOf(page: string): readonly string[] {
  const prose = page.replaceAll(/^```.*?^```/gms, "");
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target) && /\/|\.json$/.test(target));
}

function anchorsIn(file: string): readonly string[] {
  const anchors = new Anchors();
  return [...readFileSync(file, "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchors.of(heading));
}

test("every link of a page out of the manual leads to a file, and to a heading of it", () => {
  const links = names.flatMap((name) => linksOutOf(text(name)).map((target) => ({ name, target })));
  const broken = links.filter(({ target }) => {
    const [path = "", anchor] = target.split("#");
    const file = join(FOLDER, path);
    if (!existsSync(file)) return true;
    return anchor !== undefined && file.endsWith(".md") && !anchorsIn(file).includes(anchor);
  });
  expect(links.length).toBeGreaterThan(10);
  expect(broken).toEqual([]);
});

test("troubleshooting has a part for each code, and errors the status of each", () => {
  const parts = [...text("troubleshooting.md").matchAll(/^## `(\w+)`$/gm)].map(([, code]) => code);
  expect(parts).toEqual(Object.keys(ERROR_CODES));
  const rows = [...text("errors.md").matchAll(/^\| ((?:`\w+`(?:, )?)+) \| (\d{3}) \|$/gm)];
  const stated = rows.flatMap(([, codes = "", status]) =>
    codes.split(", ").map((code) => [code.replaceAll("`", ""), { status: Number(status) }] as const),
  );
  expect(ERROR_CODES).toMatchObject(Object.fromEntries(stated));
  expect(stated).toHaveLength(parts.length);
});
