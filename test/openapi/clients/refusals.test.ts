import { Readable } from "node:stream";
import { expect, test } from "vitest";
import document from "../../../deploy/docs/openapi.json" with { type: "json" };
import { operationsOf, type OpenApi } from "../described.ts";
import { checkRefusals, inNameSpace, REFUSALS, type Refusals } from "./refusals.ts";

const encoded = (text: string) => ({ $base64: Buffer.from(text).toString("base64") });

function reportOf(label: string, status: number, detail: string): string {
  const content = encoded(JSON.stringify({ detail }));
  const interactions = { a: { request: { uri: "/x", body: null }, response: { status_code: status, content } } };
  return `{"Initialize":{}}\n${JSON.stringify({ ScenarioFinished: { recorder: { label, interactions } } })}\n`;
}

const list: readonly Refusals[] = [{ operations: ["GET /mql"], says: "^no grammar", why: "" }];
const checked = (...[label, status, detail]: Parameters<typeof reportOf>): Promise<void> =>
  checkRefusals(Readable.from([reportOf(label, status, detail)]), list, 1);

test("a call that the document allows is refused only for a reason that is listed for its operation", async () => {
  await checked("GET /mql", 400, "no grammar at line 1");
  await checked("GET /host", 404, "There is no host.");
  await expect(checked("GET /mql", 400, "limit is missing")).rejects.toThrow("limit is missing");
  await expect(checked("GET /host", 400, "no grammar")).rejects.toThrow("GET /host");
});

test("the list has as many operations as are allowed, each of the document and with its reason", async () => {
  await expect(checkRefusals(Readable.from([]), list, 2)).rejects.toThrow("lists 1 operations, not 2");
  await checkRefusals(Readable.from([]), REFUSALS);
  const known = operationsOf(document as unknown as OpenApi).map(({ method, path }) => `${method} ${path}`);
  expect(
    REFUSALS.flatMap(({ operations }) => operations).filter((name) => name !== "*" && !known.includes(name)),
  ).toEqual([]);
  expect(REFUSALS.filter(({ why }) => why.length < 20)).toEqual([]);
});

test("a pattern that begins with a name space is that of one tenant, wherever it is", () => {
  const key = { pattern: "^/[^/]+(/[^/]+)+$", "x-name-space": "[^/]+" };
  expect(inNameSpace({ schemas: [key, { pattern: "^/[^/]+$" }] }, "matrix")).toEqual({
    schemas: [{ ...key, pattern: "^/matrix(/[^/]+)+$" }, { pattern: "^/[^/]+$" }],
  });
});
