import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFileHttp, type FileHttp } from "../../../../test/helpers/areas/file-http.ts";

/** The examples of the page for users, in their order: request, text, line, answer. */
const EXAMPLE = /```files\n([A-Z]+) (.+)\n([^]*?)----\n([^]*?)```/g;

let http: FileHttp;
beforeAll(async () => {
  http = await openFileHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

test("the examples of the page answer what it says", async () => {
  const page = readFileSync("deploy/docs/file-search.md", "utf8");
  let examples = 0;
  for (const [, method = "", url = "", text = "", answer = ""] of page.matchAll(EXAMPLE)) {
    const data = text
      .trimEnd()
      .replaceAll(/\\u([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
    const payload = `--B\r\nContent-Disposition: form-data; name="data"\r\n\r\n${data}\r\n--B--\r\n`;
    const headers = { "content-type": "multipart/form-data; boundary=B" };
    const body = method === "PUT" ? { payload, headers } : {};
    const told = await http.call({ method: method as "GET" | "PUT" | "POST", url: encodeURI(url), ...body });
    expect(told, `${method} ${url}`).toEqual(JSON.parse(answer));
    await http.controller.search.settled();
    examples += 1;
  }
  expect(examples).toBe(9);
});
