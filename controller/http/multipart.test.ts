import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/clock.ts";
import { openTestHttp, type TestHttp } from "../../test/helpers/http-app.ts";
import { eventually } from "../../test/helpers/programs.ts";
import { Words } from "../../test/helpers/words.ts";
import { endpoint } from "./endpoint.ts";

const SEEDS = [1, 2, 3, 4];
const ROUNDS = 150;
const REFUSALS = ["invalid", "too_large"];
const TYPE = "multipart/form-data; boundary=B";

const field = (name: string, value: string): string =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (name: string, filename: string, content: string): string =>
  `--B\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: text/plain\r\n\r\n${content}\r\n`;
const BODIES = [
  `${field("name", "a")}${field("hosts[]", "b")}${field("hosts[]", "c")}--B--\r\n`,
  `${field("name", "中=文\r\n-B")}${file("f", "a.txt", "one\r\n--\r\ntwo")}--B--\r\n`,
  `${file("f", "", "")}${file("g[]", "../../b", "x".repeat(3_000))}${field("conf[a][b]", "1")}--B--\r\n`,
];
const VOCABULARY = [
  "--B",
  "--B--",
  "--",
  "\r\n",
  "\r\n\r\n",
  "\n",
  "Content-Disposition: form-data",
  '; name="n"',
  "; name=",
  '; filename="f"',
  "; filename*=utf-8''%zz",
  ";",
  '"',
  "\\",
  "=",
  "Content-Type: text/plain; charset=utf-16",
  "Content-Type: multipart/mixed; boundary=C",
  "Content-Transfer-Encoding: base64",
  "Content-Length: -1",
  ":",
  "[",
  "]",
  "[]",
  "__proto__",
  "constructor",
  "\u0000",
  "é",
  "\ud83d\ude00",
  "x".repeat(2_000),
];

let http: TestHttp;
let session: string;
let folder = "";

beforeAll(async () => {
  http = await openTestHttp({
    endpoints: [
      endpoint({
        method: "POST",
        path: "/form",
        permission: "objects:write",
        summary: "",
        output: Type.Unknown(),
        input: Type.Object({ name: Type.Optional(Type.String()), hosts: Type.Optional(Type.Array(Type.String())) }),
        handler: async ({ input, files }) => {
          if (files[0]) folder = join(files[0].path, "../..");
          return { message: { ...input, files: files.map(({ field: of, size }) => `${of} ${size}`) } };
        },
      }),
    ],
  });
  session = await http.signIn("admin");
});

afterAll(() => http[Symbol.asyncDispose]());

async function posted(
  payload: string,
): Promise<{ readonly status: string; readonly code?: string; readonly message: unknown }> {
  return (
    await http.app.inject({
      method: "POST",
      url: `/form?sessionid=${session}`,
      payload: Buffer.from(payload),
      headers: { "content-type": TYPE },
    })
  ).json();
}

test("forms are taken as they are meant", async () => {
  expect((await posted(BODIES[0] ?? "")).message).toEqual({ name: "a", hosts: ["b", "c"], files: [] });
  expect((await posted(BODIES[1] ?? "")).message).toEqual({ name: "中=文\r\n-B", files: ["f 12"] });
  expect((await posted(BODIES[2] ?? "")).message).toEqual({ files: ["g 3000"] });
});

test.each(SEEDS)(
  "a changed form is taken or refused as the caller's fault, and leaves no file behind (seed %i)",
  async (seed) => {
    const words = new Words(seededRandom(seed), VOCABULARY);
    let taken = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const parts = words.of(BODIES).split(words.of([/(?<=\r\n|; |--B)/u, /(?:)/u]));
      const body = words.below(4) === 0 ? `--B\r\n${words.stream(12).join("")}` : words.changed(parts).join("");
      const told = `seed ${seed} round ${round}: ${JSON.stringify(body)}`;
      const { status, code = "" } = await posted(body);
      if (status === "ok") taken += 1;
      else expect(REFUSALS, told).toContain(code);
    }
    expect(taken).toBeGreaterThan(ROUNDS / 20);
    expect(taken).toBeLessThan(ROUNDS);
    // Removed behind the answer.
    await eventually("no file is left", 30_000, async () => (await readdir(folder)).length === 0 || undefined);
  },
);
