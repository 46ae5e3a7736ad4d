import { afterAll, beforeAll, test } from "vitest";
import { expectFileExamples } from "../../../../test/helpers/areas/file-examples.ts";
import { openFileHttp, type FileHttp } from "../../../../test/helpers/areas/file-http.ts";

let http: FileHttp;
beforeAll(async () => {
  http = await openFileHttp({ history: { ageMs: 3_600_000, maxBytes: 1_000_000 } });
});
afterAll(() => http[Symbol.asyncDispose]());

test("every example of the page answers what it shows", () =>
  expectFileExamples(http, "deploy/docs/file-history.md", 10));
