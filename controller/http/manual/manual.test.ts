import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { readManual } from "./files.ts";

const INDEX = {
  sections: [{ url: "/docs/hosts#join", page: "Hosts", heading: "Join <a> host", excerpt: "Costs $& and 1 < 2" }],
  words: [["join", [0, 8]]],
};
const FILES = {
  "index.html": "<h1>Manual</h1>",
  "search.html": "<h1>Search for words</h1>",
  "hosts.html": `<h1>Hosts</h1>${"text ".repeat(500)}`,
  "find.html": `<input value="<!-- query -->"><!-- results -->`,
  "index.json": JSON.stringify(INDEX),
  "style.css": "body{}",
  "search.js": "export {};",
  "picture.svg": "<svg/>",
};

let folder: string;
let http: TestHttp;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-manual-"));
  for (const [name, text] of Object.entries(FILES)) {
    await writeFile(join(folder, name), text);
    await writeFile(join(folder, `${name}.gz`), gzipSync(text));
  }
  http = await openTestHttp({ manual: await readManual(pathToFileURL(`${folder}/`)) });
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const get = (url: string, headers: Readonly<Record<string, string>> = {}) => http.app.inject({ url, headers });

test.each([
  ["/docs", "index.html", "text/html"],
  ["/docs/", "index.html", "text/html"],
  ["/docs/hosts", "hosts.html", "text/html"],
  ["/docs/search", "search.html", "text/html"],
  ["/docs/hosts.html", "hosts.html", "text/html"],
  ["/docs/style.css", "style.css", "text/css"],
  ["/docs/search.js", "search.js", "text/javascript"],
  ["/docs/index.json", "index.json", "application/json"],
  ["/docs/picture.svg", "picture.svg", "image/svg+xml"],
] as const)("%s is read without sign-in and by its type", async (url, name, type) => {
  const { statusCode, body, headers } = await get(url);
  expect([statusCode, body]).toEqual([200, FILES[name]]);
  expect(headers["content-type"]).toBe(`${type}; charset=utf-8`);
  expect(headers["set-cookie"]).toBeUndefined();
});

test("a page is sent compressed, and not again to a client that has it", async () => {
  const { headers, rawPayload } = await get("/docs/hosts", { "accept-encoding": "gzip" });
  expect(headers).toMatchObject({ "content-encoding": "gzip", "cache-control": "no-cache" });
  expect(gunzipSync(rawPayload).toString()).toBe(FILES["hosts.html"]);
  const again = await get("/docs/hosts", { "accept-encoding": "gzip", "if-none-match": String(headers.etag) });
  expect([again.statusCode, again.body]).toEqual([304, ""]);
  expect((await get("/docs", { "if-none-match": String(headers.etag) })).statusCode).toBe(200);
});

test("pages run only the script of the manual and load nothing of another site", async () => {
  for (const url of ["/docs", "/docs/hosts", "/docs/find?q=join"]) {
    const policy = String((await get(url)).headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';.*; frame-ancestors 'none'$/);
    expect(policy).not.toMatch(/unsafe|\*|http/);
  }
  const picture = String((await get("/docs/picture.svg")).headers["content-security-policy"]);
  expect(picture).not.toContain("script-src");
});

test("a search is answered as a page, and nothing of the query becomes a tag", async () => {
  const { body, headers } = await get(`/docs/find?q=${encodeURIComponent("JOIN")}`);
  expect(headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(body).toContain(`<input value="JOIN">`);
  expect(body).toContain(`1 section for <b>JOIN</b>`);
  expect(body).toContain(`<a href="/docs/hosts#join">Join &lt;a&gt; host</a><span>Hosts</span>`);
  expect(body).toContain("Costs $&amp; and 1 &lt; 2");
  const evil = `"><script>alert(1)</script>`;
  const answer = (await get(`/docs/find?q=${encodeURIComponent(evil)}`)).body;
  expect(answer).toContain("Nothing found for <b>&quot;&gt;&lt;script&gt;");
  expect(answer).not.toContain("<script>");
  expect((await get("/docs/find")).body).toContain("Type words into the field");
});

test("a query is read up to its bound, and one that is no text finds nothing", async () => {
  const { body } = await get(`/docs/find?q=${"x".repeat(5_000)}`);
  expect(body).toContain(`<input value="${"x".repeat(200)}">`);
  expect((await get("/docs/find?q=%zz%ff&q=b")).statusCode).toBe(200);
});

test("another name is not found, also not one of a file beside the manual", async () => {
  for (const name of ["none", "find.html", "hosts.html.gz", "..%2f..%2fpackage.json", "constructor"]) {
    expect((await get(`/docs/${name}`)).json(), name).toMatchObject({ status: "error", code: "not_found" });
  }
});

test("the manual is only read", async () => {
  const { headers, body } = await http.app.inject({ method: "POST", url: "/docs/hosts" });
  expect(JSON.parse(body)).toMatchObject({ code: "method_not_allowed" });
  expect(headers.allow).toBe("GET, HEAD, OPTIONS");
  const head = await http.app.inject({ method: "HEAD", url: "/docs/hosts" });
  expect([head.statusCode, head.body]).toEqual([200, ""]);
  expect((await http.app.inject({ method: "OPTIONS", url: "/docs" })).headers.allow).toBe("GET, HEAD, OPTIONS");
});

test("a controller without the manual answers that there is nothing", async () => {
  await using without = await openTestHttp();
  expect((await without.app.inject({ url: "/docs" })).json()).toMatchObject({ code: "not_found" });
});

test("a build without the manual says what to do", async () => {
  const read = readManual(pathToFileURL(`${folder}/none/`));
  await expect(read).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringMatching("none/.*npm run build"),
  });
});

test("a manual with a missing file is not served in part", async () => {
  await rm(join(folder, "style.css.gz"));
  await expect(readManual(pathToFileURL(`${folder}/`))).rejects.toThrow("style.css.gz");
});
