import { afterAll, beforeAll, test } from "vitest";
import { expectFileExamples } from "../../../../test/helpers/areas/file-examples.ts";
import { openFileHttp, type FileHttp } from "../../../../test/helpers/areas/file-http.ts";

let http: FileHttp;
beforeAll(async () => {
  http = await openFileHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

test("every example of the page answers what it shows", () =>
  expectFileExamples(http, "deploy/docs/file-versions.md", 20));
