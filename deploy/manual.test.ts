import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ERROR_CODES } from "../common/errors.ts";

/** The manual as a whole. Tests of its examples are beside what they use. */

const FOLDER = "deploy/docs";
const names = readdirSync(FOLDER).filter((name) => name.endsWith(".md"));
const text = (name: string) => readFileSync(join(FOLDER, name), "utf8");

/** Targets of the links of a page to files, as written. */
function linksOf(page: string): readonly string[] {
  const prose = page.replaceAll(/^```.*?^```/gms, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = ""]) =>
    /^[a-z]+:/.test(target) ? [] : [target],
  );
}

/** Anchors of the headings of a page, as the usual viewers of Markdown make them. */
function anchorsOf(page: string): readonly string[] {
  return [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("the index lists every page", () => {
  const listed = new Set(linksOf(text("README.md")).map((target) => target.replace(/#.*/, "")));
  expect([...listed].filter((name) => name.endsWith(".md")).toSorted()).toEqual(
    names.filter((name) => name !== "README.md").toSorted(),
  );
});

test.each(names)("every link of %s leads to a file, and to a heading of it", (name) => {
  const broken = linksOf(text(name)).filter((target) => {
    const [path = "", anchor] = target.split("#");
    const file = path === "" ? join(FOLDER, name) : join(dirname(join(FOLDER, name)), path);
    if (!existsSync(file)) return true;
    return anchor !== undefined && file.endsWith(".md") && !anchorsOf(readFileSync(file, "utf8")).includes(anchor);
  });
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
