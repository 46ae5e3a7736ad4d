import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TestCommandLine } from "../../test/helpers/programs/command-line.ts";
import { page, pagerOf } from "./pager.ts";

test("PAGER names the pager; an empty one, cat and a terminal without control show texts as they are", () => {
  expect([{}, { PAGER: "more" }, { PAGER: "" }, { PAGER: "cat" }, { TERM: "dumb" }].map(pagerOf)).toEqual([
    "less -FRX",
    "more",
    undefined,
    undefined,
    undefined,
  ]);
});

test("a pager gets the whole text and defaults of less; one that ends early has done its work", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-pager-"));
  try {
    const environment = { PATH: process.env["PATH"], TO: join(folder, "text") };
    const text = "line\n".repeat(100_000);
    expect(await page('cat > "$TO"; echo "$LESS" >> "$TO"', text, environment)).toBe(true);
    expect(await readFile(environment.TO, "utf8")).toBe(`${text}FRX\n`);
    expect(await page("exec true", text, environment)).toBe(true);
    expect(await page("less -FRX", text, { PATH: folder })).toBe(false);
    expect(await page("no-such-pager 2> /dev/null", text, environment)).toBe(false);
    expect(await page("head --no-such-option 2> /dev/null", text, environment)).toBe(false);
    expect(await page("kill -INT $$", text, environment)).toBe(true);
    expect(await page("exit 130", text, environment)).toBe(true);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("only a text longer than the terminal is paged, and never with --no-pager, in a pipe, or while it is watched", async () => {
  await using line = await TestCommandLine.open();
  const contexts = Array.from({ length: 9 }, (_, at) => `c${at}`);
  for (const name of contexts) await line.contexts.add(name, { url: "http://127.0.0.1:9", user: "matrix.admin" });
  const paged: string[] = [];
  const runs = async (words: string, { rows = 5, isStarted = true, ...more }) => {
    const pager = (command: string, text: string) => {
      paged.push(`${command}: ${text.split("\n").length}`);
      return Promise.resolve(isStarted);
    };
    return (await line.run(words.split(" "), { columns: 80, rows, pager, ...more })).out;
  };
  expect(await runs("context list", {})).toBe("");
  expect(paged).toEqual(["less -FRX: 12"]);
  const { out } = await line.run(["context", "list"], { columns: 80 });
  expect(await runs("context list", { isStarted: false })).toBe(out);
  paged.length = 0;
  expect(await runs("context list", { rows: 12 })).toBe(out);
  expect(await runs("context list --no-pager", {})).toBe(out);
  expect(await runs("--no-pager context list", {})).toBe(out);
  expect(await runs("context list", { environment: { PAGER: "" } })).toBe(out);
  expect(await runs("context list", { columns: undefined })).toContain("c8");
  expect(paged).toEqual([]);
});
