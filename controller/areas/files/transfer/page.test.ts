import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFileHttp, type FileHttp } from "../../../../test/helpers/areas/file-http.ts";

/** The examples of `deploy/docs/files.md`, in their order. */

const page = await readFile("deploy/docs/files.md", "utf8");
const examples = [...page.matchAll(/^```http\n([^]*?)\n----\n([^]*?)\n```$/gm)].map(([, call = "", answer = ""]) => ({
  call: call.split("\n"),
  answer: answer.split("\n"),
}));

let http: FileHttp;
beforeAll(async () => {
  http = await openFileHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

const HEADER = /^([a-z-]+): (.*)$/;

function formOf(lines: readonly string[]): FormData | undefined {
  const parts = lines.flatMap((line) =>
    [/^form (\S+) (?:@(\S+) )?(.*)$/.exec(line) ?? []].filter(({ length }) => length > 0),
  );
  if (parts.length === 0) return undefined;
  const form = new FormData();
  for (const [, name = "", file, value = ""] of parts)
    if (file === undefined) form.append(name, value);
    else form.append(name, new Blob([value]), file);
  return form;
}

test("the page has examples", () => expect(examples.length).toBeGreaterThan(8));

test.each(examples)("$call.0", async ({ call: [first = "", ...lines], answer: [status, ...told] }) => {
  const [method = "", url = ""] = first.split(" ");
  const asked = lines.flatMap((line) => [HEADER.exec(line)?.slice(1) ?? []].filter(({ length }) => length > 0));
  const form = formOf(lines);
  const body = form && new Response(form);
  const answer = await http.send({
    method: method as "GET",
    url,
    headers: { ...Object.fromEntries(asked), ...(body && { "content-type": body.headers.get("content-type") ?? "" }) },
    ...(body && { payload: Buffer.from(await body.arrayBuffer()) }),
  });
  expect([answer.statusCode, answer.body]).toEqual([Number(status), expect.any(String)]);
  for (const line of told) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined) expect(answer.body).toContain(line);
    else expect(answer.headers[name]).toBe(value);
  }
});
