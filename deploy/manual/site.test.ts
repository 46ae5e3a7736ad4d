import { readFileSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { searchManual, type ManualIndex } from "../../common/manual/search.ts";
import { MANUAL_FILE_MAX_BYTES, MANUAL_MAX_BYTES } from "../../common/limits.ts";
import { storeFolder } from "../../test/helpers/runs/folders.ts";
import type { Document } from "./reference/document.ts";
import { makeSite, type Site } from "./site.ts";

describe("the manual of this version", () => {
  let site: Site;
  beforeAll(async () => {
    site = await makeSite({ docs: "deploy/docs" });
  });
  const pages = () => [...site].filter(([name]) => name.endsWith(".html"));
  const index = () => JSON.parse(site.get("index.json") ?? "") as ManualIndex;
  /** The file that the controller sends for a path. */
  const fileAt = (path: string) =>
    path === "/docs" ? site.get("index.html") : (site.get(path.slice(6)) ?? site.get(`${path.slice(6)}.html`));

  test("every page of deploy/docs is a page, with its title, its language and a list of all pages", async () => {
    const names = (await readdir("deploy/docs")).filter((name) => name.endsWith(".md") && name !== "README.md");
    // The page of a search has no anchor at its title.
    for (const name of names) expect(fileAt(`/docs/${name.slice(0, -3)}`), name).toContain(`<h1 id="`);
    for (const [name, html] of pages()) {
      expect(html, name).toMatch(/^<!doctype html>\n<html lang="en">[^]*<title>[^<]+<\/title>/);
      expect(html.match(/<h1 /g) ?? html.match(/<h1>/g), name).toHaveLength(1);
      expect(html.match(/<li><a href="\/docs\/[^"]+"( aria-current="page")?>/g)?.length).toBeGreaterThan(names.length);
    }
  });

  test("every link and picture leads to a page, a heading or a file that is served", () => {
    const lost: string[] = [];
    for (const [name, html] of pages())
      for (const [, address = ""] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
        if (/^(https?:|data:,|\/openapi\.json$)/.test(address)) continue;
        const [path = "", anchor] = address.split("#");
        const target = path === "" ? html : fileAt(path);
        const isThere = target !== undefined && (anchor === undefined || target.includes(` id="${anchor}"`));
        if (!isThere) lost.push(`${name}: ${address}`);
      }
    expect(lost).toEqual([]);
  });

  test("no page has a script or style of its own, and none loads anything from another site", () => {
    for (const [name, html] of pages()) {
      expect(html, name).not.toMatch(/<style|\s(on\w+|style)=|<script(?! src="\/docs\/search\.js" type="module"><)/i);
      expect(html, name).not.toMatch(/<(img|link|script|iframe|form)[^>]+(src|href|action)="(https?:)?\/\//i);
    }
  });

  test("no heading of a page has the anchor of another", () => {
    for (const [name, html] of pages()) {
      const anchors = [...html.matchAll(/ id="([^"]*)"/g)].map(([, anchor]) => anchor);
      expect(new Set(anchors).size, name).toBe(anchors.length);
    }
  });

  test("every operation of the OpenAPI document is in the reference, with its permission and an example", () => {
    const { paths } = JSON.parse(readFileSync("deploy/docs/openapi.json", "utf8")) as Pick<Document, "paths">;
    const text = pages()
      .map(([, html]) => html)
      .join("\n");
    const ids = Object.values(paths).flatMap((item) =>
      Object.values(item).flatMap(({ operationId }) => operationId ?? []),
    );
    for (const id of ids) expect(text).toContain(`<h2 id="${id}" class="call">`);
    expect(text.match(/<h3>Example<\/h3>/g)).toHaveLength(ids.length);
    const [, part = ""] = /<h2 id="putJob"([^]*?)<h2 /.exec(site.get("api-jobs.html") ?? "") ?? [];
    expect(part).toContain("<code>jobs:write</code>");
    expect(part).toMatch(/curl .*-X PUT .*\/job&#39;/);
    for (const head of ["Parameters", "Body", "Answer", "Errors"]) expect(part).toContain(`<h3>${head}</h3>`);
  });

  test("a search finds a page by its title, a heading by its words, and a call by its path", () => {
    const first = (query: string) => searchManual(index(), query)[0]?.url;
    expect(first("glossary")).toMatch(/^\/docs\/glossary/);
    expect(first("mxobject mql")).toMatch(/^\/docs\/api-objects#/);
    expect(first("body_memory_mib")).toBe("/docs/settings");
    for (const { url } of index().sections) expect(fileAt(url.split("#")[0] ?? ""), url).toBeDefined();
  });

  test("files are small enough to load and to be kept in memory", () => {
    const sizes = [...site.values()].map((text) => Buffer.byteLength(text));
    expect(Math.max(...sizes)).toBeLessThan(MANUAL_FILE_MAX_BYTES);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MANUAL_MAX_BYTES / 2);
  });
});

describe("a manual of a few pages", () => {
  const OPENAPI = JSON.stringify({ info: { description: "" }, tags: [], paths: {}, components: {} });
  const GOOD = {
    "README.md": "# List\n\n## Topic\n\n- [A](a.md)\n",
    "a.md": "# A\n\n## Part\n",
    "openapi.json": OPENAPI,
  };

  async function built(files: Readonly<Record<string, string>>): Promise<Site> {
    const docs = await storeFolder("odp-manual-");
    for (const [name, text] of Object.entries({ ...GOOD, ...files })) await writeFile(join(docs, name), text);
    try {
      return await makeSite({ docs });
    } finally {
      await rm(docs, { recursive: true });
    }
  }

  test.each([
    ["a link to no page", { "a.md": "# A\n\n[B](b.md)" }, "a.md links to b.md#, which is not there."],
    ["a link to no heading", { "a.md": "# A\n\n[A](#none)" }, "a.md links to a.md#none, which is not there."],
    ["a picture that is missing", { "a.md": "# A\n\n![B](b.svg)" }, "a.md links to b.svg#, which is not there."],
    ["a page in no topic", { "b.md": "# B" }, "b.md is not in the list of pages (README.md)."],
    ["a page without a title", { "a.md": "Text" }, "a.md does not begin with a title."],
    [
      "two pages of one path",
      { "find.md": "# F", "README.md": "# List\n\n[F](find.md), [A](a.md)" },
      "have the name find.html",
    ],
    ["HTML in a page", { "a.md": "# A\n\n<b style='color:red'>B</b>" }, "a.md has HTML in it"],
  ])("is not built with %s", async (_name, files, fault) => {
    await expect(built(files)).rejects.toThrow(fault);
  });

  test("a page is in the first topic that links to it, and those above all headings come first", async () => {
    const list = "# List\n\nBegin with [B](b.md).\n\n## Topic\n\n| x | [A](a.md#part), [B](b.md) |\n| - | - |\n";
    const html = (await built({ "README.md": list, "b.md": "# B" })).get("index.html") ?? "";
    expect(html.match(/<h2>[^<]*<\/h2>\n<ul><li><a href="[^"]*"/g)?.slice(0, 2)).toEqual([
      `<h2>Begin here</h2>\n<ul><li><a href="/docs/b"`,
      `<h2>Topic</h2>\n<ul><li><a href="/docs/a"`,
    ]);
  });

  test("a heading that a page has twice can be linked to each time", async () => {
    const html = (await built({ "a.md": "# A\n\n## Part\n\n## Part\n\n[second](#part-1)" })).get("a.html") ?? "";
    expect([...html.matchAll(/<h2 id="([^"]*)"/g)].map(([, anchor]) => anchor)).toEqual(["part", "part-1"]);
  });

  test("text of a page stays text, and a file outside of the manual is no link", async () => {
    const source =
      "# A & `<b>`\n\nSee [the code](../../a.ts), [B](#b--c), 1 < 2.\n\n## B & C\n\n```sh\necho '<i>'\n```\n\n| a |\n| - |\n| `x\\|y` |\n";
    const html = (await built({ "a.md": source })).get("a.html") ?? "";
    expect(html).toContain("<title>A &amp; &lt;b&gt; – odp manual</title>");
    expect(html).toContain(`See the code, <a href="#b--c">B</a>, 1 &lt; 2.`);
    expect(html).toContain("echo &#39;&lt;i&gt;&#39;");
    expect(html).toContain("<td><code>x|y</code></td>");
  });
});
