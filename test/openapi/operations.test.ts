import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operationsOf, type OpenApi } from "./described.ts";

/** Names of operations in generated clients. A name that changes breaks the programs that use it. */

const document = JSON.parse(readFileSync("deploy/docs/openapi.json", "utf8")) as OpenApi;
const operations = operationsOf(document);

test("every operation has a name of its own, which is an identifier in every language", () => {
  const names = operations.map(({ described }) => described.operationId);
  expect(names.filter((name) => !/^[a-z][A-Za-z0-9]+$/.test(name))).toEqual([]);
  const apart = new Set(names.map((name) => name.toLowerCase()));
  expect(apart.size).toBe(names.length);
});

/** `npx vitest run --project whole test/openapi/operations.test.ts -u` adds the name of a new operation. */
test("the names of operations stay", async () => {
  const lines = operations.map(({ method, path, described }) => `${described.operationId} ${method} ${path}\n`);
  await expect(lines.sort().join("")).toMatchFileSnapshot("operations.txt");
});
