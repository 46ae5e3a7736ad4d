import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import type { Stores } from "../../../store/engine.ts";
import { fileRoutes } from "../routes.ts";

/** The examples of `deploy/docs/file-history.md`, run in the order of the page. */

let http: TestHttp;
let controller: FileController;
let session: string;
beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = fileController(stores, {
    everyone: (tenant) => http.groups.rightsOfEveryone(tenant),
    history: { ageMs: 3_600_000, maxBytes: 1_000_000 },
  });
  http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  session = await http.signIn("admin");
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const CALL =
  /^\$ (key=\$\()?call(?: -X (\w+))? "\$odp([^"]*)"(?: -d ['"]([^'"]*)['"])?(?: \| jq -r '.message\[0\].key'\))?$/;

interface Example {
  /** True: the key of the first member of the answer is for the next call. */
  readonly isForKey: boolean;
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly answer: string;
}

async function examples(): Promise<readonly Example[]> {
  const page = await readFile(join(import.meta.dirname, "../../../../deploy/docs/file-history.md"), "utf8");
  const lines = page.split("\n");
  return lines.flatMap((line, at) => {
    if (!line.startsWith("$ ")) return [];
    const [, keyed, method = "GET", path = "", body] = CALL.exec(line) ?? [];
    return [{ isForKey: keyed !== undefined, method, path, body, answer: lines[at + 1] ?? "" }];
  });
}

let key = "";

async function answerOf({ method, path, body }: Example): Promise<string> {
  const [name, value = ""] = body?.replace("$key", key).split(/=(.*)/s) ?? [];
  const answer = await http.app.inject({
    method: method as "GET",
    url: `${path}${path.includes("?") ? "&" : "?"}sessionid=${session}`,
    ...(name !== undefined && {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      payload: `${name}=${encodeURIComponent(value)}`,
    }),
  });
  return answer.body;
}

/** Times and keys of answers differ from run to run. */
function comparable(text: string): unknown {
  if (!text.startsWith("{")) return text;
  return JSON.parse(text.replaceAll(/"(time|modified)":\d+/g, '"$1":0').replaceAll(/"key":"[\w-]{43}"/g, '"key":""'));
}

test("every example answers what the page shows", async () => {
  const all = await examples();
  expect(all.length).toBeGreaterThan(10);
  for (const example of all) {
    expect(example.path, example.answer).not.toBe("");
    if (example.isForKey) {
      key = (JSON.parse(await answerOf(example)) as { message: { key: string }[] }).message[0]?.key ?? "";
      continue;
    }
    const [is, shown] = [comparable(await answerOf(example)), comparable(example.answer)];
    if (typeof shown === "object") expect(is, example.path).toMatchObject(shown as object);
    else expect(is, example.path).toBe(shown);
  }
});
