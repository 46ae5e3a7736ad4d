import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { eventually } from "../../../test/helpers/programs/programs.ts";
import { slicesOfOneStep } from "../../../test/helpers/time/slices.ts";
import { Words } from "../../../test/helpers/mql/words.ts";
import { encodingNamed } from "../../../common/text/encodings.ts";
import { endpoint } from "../interface/endpoint.ts";
import { PartHeads } from "./part-heads.ts";
import { partText } from "./part-text.ts";
import { ReplacementCount } from "./replacements.ts";

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
  payload: string | Buffer,
): Promise<{ readonly status: string; readonly code?: string; readonly message: unknown }> {
  return (
    await http.app.inject({
      method: "POST",
      url: `/form?sessionid=${session}`,
      payload: typeof payload === "string" ? Buffer.from(payload) : payload,
      headers: { "content-type": TYPE },
    })
  ).json();
}

test("forms are taken as they are meant", async () => {
  expect((await posted(BODIES[0] ?? "")).message).toEqual({ name: "a", hosts: ["b", "c"], files: [] });
  expect((await posted(BODIES[1] ?? "")).message).toEqual({ name: "中=文\r\n-B", files: ["f 12"] });
  expect((await posted(BODIES[2] ?? "")).message).toEqual({ files: ["g 3000"] });
});

/** A part whose content is these bytes. */
const bytes = (head: string, ...content: readonly number[]): Buffer =>
  Buffer.concat([
    Buffer.from(`--B\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from("\r\n--B--\r\n"),
  ]);

test.each([
  ["in a text", bytes('name="name"', 0xc3, 0xa9, 0x61, 0xff), 'The part "name" is no utf-8 text at byte 4'],
  [
    "in a text that names its charset",
    bytes('name="name"\r\nContent-Type: text/plain; charset=utf-8', 0x61, 0xed, 0xa0, 0x80),
    'The part "name" is no utf-8 text at byte 2',
  ],
  [
    "in JSON",
    bytes('name="conf"\r\nContent-Type: application/json', 0x22, 0x61, 0xff, 0x22),
    'The part "conf" is no utf-8 text at byte 3',
  ],
  [
    "in the name of a part",
    Buffer.from(field("na\xffme", "a") + "--B--\r\n", "latin1"),
    'The name "na\ufffdme" of a part is no utf-8 text at byte 3',
  ],
  [
    "in the name of a file",
    Buffer.from(file("f", "\xff.txt", "a") + "--B--\r\n", "latin1"),
    'The file name "\ufffd.txt" of a part is no utf-8 text at byte 1',
  ],
])("bytes that are no UTF-8 are refused with their place: %s", async (_where, payload, message) => {
  expect(await posted(payload)).toMatchObject({
    code: "invalid",
    message: expect.stringContaining(message) as string,
  });
});

test("U+FFFD that a client sends is taken, and bytes that are no UTF-8 are refused beside it", async () => {
  const own = field("na\ufffdme", "") + field("name", "a\ufffd") + file("f", "\ufffd.txt", "\ufffd\ufffd");
  expect((await posted(`${own}--B--\r\n`)).message).toEqual({ name: "a\ufffd", files: ["f 6"] });
  const broken = Buffer.concat([Buffer.from(own), bytes('name="hosts"', 0x61, 0xff)]);
  expect(await posted(broken)).toMatchObject({ code: "invalid", message: expect.stringContaining("is no utf-8") });
});

test("U+FFFD in bytes is counted wherever they are cut", () => {
  const bytesOf = Buffer.from("\ufffd\ufffda\ufffd\u00ef\ufffc\ufffd");
  for (let first = 0; first <= bytesOf.length; first += 1) {
    for (let second = first; second <= bytesOf.length; second += 1) {
      const counted = new ReplacementCount();
      for (const part of [bytesOf.subarray(0, first), bytesOf.subarray(first, second), bytesOf.subarray(second)])
        counted.add(part);
      expect(counted.count, `${first} ${second}`).toBe(4);
    }
  }
});

test("the bytes of a file, and a text in a charset of its own, are taken", async () => {
  const latin = bytes('name="name"\r\nContent-Type: text/plain; charset=iso-8859-1', 0x61, 0xe9);
  expect((await posted(latin)).message).toEqual({ name: "a\u00e9", files: [] });
  expect((await posted(bytes('name="f"; filename="a"', 0xff, 0xfe, 0x00))).message).toEqual({ files: ["f 3"] });
});

/** Texts as old clients send them: GBK, and its characters of ASCII bytes. */
const GBK = [0xb1, 0xe0, 0xc2, 0xeb, 0x81, 0x41];

test("a text is read in the charset of its part, else in that of the field _charset_ before it", async () => {
  const own = bytes('name="name"\r\nContent-Type: text/plain; charset=GBK', ...GBK);
  expect((await posted(own)).message).toEqual({ name: "编码丄", files: [] });
  const common = Buffer.from(field("_charset_", "gb2312") + field("other", ""));
  expect(await posted(Buffer.concat([common, bytes('name="name"', ...GBK)]))).toMatchObject({
    message: { name: "编码丄", files: [] },
  });
  const utf8 = bytes('name="name"\r\nContent-Type: text/plain; charset=UTF-8', ...Buffer.from("编"));
  expect((await posted(Buffer.concat([common, utf8]))).message).toEqual({ name: "编", files: [] });
  const json = bytes('name="name"\r\nContent-Type: application/json; charset=gbk', 0x22, ...GBK, 0x22);
  expect((await posted(json)).message).toEqual({ name: "编码丄", files: [] });
});

test("a JSON part without a charset is read in that of the field _charset_ before it", async () => {
  const common = Buffer.from(field("_charset_", "gb2312") + field("other", ""));
  const json = bytes('name="name"\r\nContent-Type: application/json', 0x22, ...GBK, 0x22);
  expect(await posted(Buffer.concat([common, json]))).toMatchObject({ message: { name: "编码丄" } });
});

test("parts of one name have each the charset of their own", () => {
  const heads = new PartHeads("multipart/form-data; boundary=B");
  const typed = 'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain';
  heads.add(Buffer.from(`--B\r\n${typed}; charset=gbk\r\n\r\n\r\n--B\r\n${typed}\r\n\r\n`));
  expect([heads.charsetOf("a"), heads.charsetOf("a")]).toEqual(["gbk", undefined]);
});

test.each([
  ["charset='gbk'", "编码丄", GBK],
  ["charset = gbk", "编码丄", GBK],
  ["charset=", "é", [0xc3, 0xa9]],
  ['charset=""', "é", [0xc3, 0xa9]],
])("a part with %s is read as a body with it", async (parameter, text, sent) => {
  const part = bytes(`name="name"\r\nContent-Type: text/plain; ${parameter}`, ...sent);
  expect(await posted(part)).toMatchObject({ message: { name: text, files: [] } });
});

test("a charset of parts that is not read here is refused by name", async () => {
  for (const payload of [
    bytes('name="name"\r\nContent-Type: text/plain; charset=klingon', 0x61),
    Buffer.from(`${field("_charset_", "klingon")}--B--\r\n`),
  ])
    expect(await posted(payload)).toMatchObject({
      code: "invalid",
      message: expect.stringContaining("charset") as string,
    });
  expect((await posted(bytes('name="name"\r\nContent-Type: text/plain; charset=gbk', 0xb1))).message).toContain(
    'The part "name" is no gbk text at byte 1: name its charset in Content-Type',
  );
});

test("a long name has the charset of its part, and one that is not there has none", () => {
  const heads = new PartHeads("multipart/form-data; boundary=B");
  const name = "编".repeat(2_000);
  const typed = "Content-Type: text/plain; charset=gbk";
  heads.add(Buffer.from(`--B\r\nContent-Disposition: form-data; name="${name}"\r\n${typed}\r\n\r\n`));
  expect(heads.charsetOf("other")).toBeUndefined();
  expect(heads.charsetOf(name)).toBe("gbk");
});

test("a long part in another charset is decoded with a pause before each of its pieces but the first", async () => {
  const { seen, slices } = slicesOfOneStep();
  const sent = Buffer.from([0xb1, 0xe0]).toString("latin1").repeat(300_000);
  const charset = { own: undefined, common: encodingNamed("gbk"), slices };
  expect(await partText("The part", sent, charset)).toEqual({ text: "编".repeat(300_000), replacements: 0 });
  expect(seen.pauses).toBe(2);
});

test("heads of parts are found wherever a body is cut", () => {
  const body = Buffer.from(
    `preamble\r\n--B\r\n\r\nno head\r\n--B\r\nContent-Disposition: form-data; filename="a"; name="a\\"b"\r\n` +
      `content-type: text/plain; charset="GBK"\r\n\r\n\r\n--B\r\nContent-Disposition: form-data; name=c\r\n\r\n1\r\n--B--\r\n`,
  );
  for (let at = 0; at <= body.length; at++) {
    const heads = new PartHeads('multipart/form-data; boundary="B"');
    heads.add(body.subarray(0, at));
    heads.add(body.subarray(at));
    expect([heads.charsetOf('a"b'), heads.charsetOf("c"), heads.charsetOf("d")], String(at)).toEqual([
      "gbk",
      undefined,
      undefined,
    ]);
  }
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
