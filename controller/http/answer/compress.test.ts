import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HTTP_COMPRESS_MIN_BYTES, HTTP_PIECE_BYTES } from "../../../common/limits.ts";
import { AppError } from "../../../common/errors.ts";
import { MIB } from "../../../common/limits/units.ts";
import { ANY_TYPE } from "./forms.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { acceptsGzip } from "./compress.ts";
import { endpoint, type Answer, type Endpoint } from "../interface/endpoint.ts";

const LONG = "a text that says the same again, ".repeat(HTTP_PIECE_BYTES / 10);
/** Long also when it is compressed. */
const VARIED = Array.from({ length: 40_000 }, (_, at) => (at * 7_919) % 104_729).join();
const ROWS = Array.from({ length: 1_000 }, (_, at) => ({ at, text: "x".repeat(100) }));
const HEADERS = { ETag: "", "Cache-Control": "", "X-Made": "" };

const answers: Readonly<Record<string, () => Answer<unknown>>> = {
  "/message": () => ({ message: LONG }),
  "/rows": () => ({
    rows: (async function* () {
      yield await Promise.resolve(ROWS);
    })(),
  }),
  "/csv": () => ({ content: Readable.from([LONG, "end"]), contentType: "text/csv; charset=utf-8" }),
  "/exact": () => ({ content: "x".repeat(HTTP_COMPRESS_MIN_BYTES), contentType: "text/plain" }),
  "/short": () => ({ content: "x".repeat(HTTP_COMPRESS_MIN_BYTES - 1), contentType: "text/plain" }),
  "/zip": () => ({ content: LONG, contentType: "application/zip" }),
  "/lines": () => ({ content: Readable.from([LONG]), contentType: "application/x-ndjson" }),
  "/kept": () => ({ message: LONG, headers: { "Cache-Control": "no-transform" } }),
  "/versioned": () => ({ message: LONG, headers: { ETag: `"1"` } }),
  "/broken": () => ({ content: Readable.from(failing(VARIED, VARIED, VARIED, VARIED)), contentType: "text/plain" }),
  "/broken-early": () => ({
    content: Readable.from(failing()),
    contentType: "text/csv",
    filename: "a.csv",
    headers: { ETag: `"1"` },
  }),
};

async function* failing(...before: readonly string[]): AsyncGenerator<string> {
  for (const one of before) yield await Promise.resolve(one);
  throw new AppError("unavailable", "the source went away");
}

const taken: unknown[] = [];

const takesText = endpoint({
  method: "POST",
  path: "/take",
  permission: "objects:write",
  summary: "",
  input: Type.Object({}),
  body: "raw",
  output: Type.Unknown(),
  handler: async ({ text, files }) => {
    taken.push(text ?? files.length);
    return { message: "taken" };
  },
});

const answering: readonly Endpoint[] = Object.entries(answers).map(([path, answer]) =>
  endpoint({
    method: "GET",
    path,
    permission: "objects:read",
    summary: "",
    input: Type.Object({}),
    output: Type.Unknown(),
    bare: { content: { [ANY_TYPE]: { summary: "" } } },
    statuses: { 200: { summary: "", headers: HEADERS } },
    handler: async () => answer(),
  }),
);

let http: TestHttp;
let session: string;
beforeAll(async () => {
  http = await openTestHttp({ endpoints: [...answering, takesText] });
  session = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

async function ask(path: string, encoding: string | undefined = "gzip") {
  const headers = encoding === undefined ? {} : { "accept-encoding": encoding };
  const response = await http.app.inject({ url: `${path}?sessionid=${session}`, headers });
  const isPacked = response.headers["content-encoding"] === "gzip";
  const text = isPacked ? gunzipSync(response.rawPayload).toString() : response.body;
  return { text, isPacked, vary: response.headers.vary, sent: response.rawPayload.length, headers: response.headers };
}

describe("a body that is sent compressed", () => {
  const bomb = gzipSync(Buffer.alloc(64 * MIB));

  async function send(headers: Readonly<Record<string, string>>, payload: string | Buffer = bomb, by = session) {
    taken.length = 0;
    return (await http.app.inject({ method: "POST", url: `/take?sessionid=${by}`, headers, payload })).body;
  }

  test.each(["gzip", "X-GZIP", "deflate", "br", "zstd", "identity, gzip"])(
    "is refused by name, and neither unpacked nor taken as it is: %s",
    async (coding) => {
      expect(await send({ "content-encoding": coding })).toMatch(/compressed \(Content-Encoding: .*"code":"invalid"/);
      const multipart = "multipart/form-data; boundary=b";
      expect(await send({ "content-encoding": coding, "content-type": multipart })).toContain(`"code":"invalid"`);
      expect(taken).toEqual([]);
    },
  );

  test("tells that only to a caller who is signed in", async () => {
    expect(await send({ "content-encoding": "gzip" }, bomb, "none")).toContain(`"status":"signin"`);
  });

  test("is none where another name stands there, or no body comes", async () => {
    expect(await send({ "content-encoding": "utf-8" }, "a text")).toContain("taken");
    expect(taken).toEqual(["a text"]);
    expect(await send({ "content-encoding": "identity" }, "a text")).toContain("taken");
    const url = `/short?sessionid=${session}`;
    expect((await http.app.inject({ url, headers: { "content-encoding": "gzip" } })).body).toHaveLength(
      HTTP_COMPRESS_MIN_BYTES - 1,
    );
  });
});

describe("a text", () => {
  test("is compressed for who takes it, whatever kind of answer it is, and says so to caches", async () => {
    for (const path of ["/message", "/rows", "/csv", "/exact"]) {
      const plain = await ask(path, "identity");
      const packed = await ask(path);
      expect([plain.isPacked, packed.isPacked], path).toEqual([false, true]);
      expect([plain.vary, packed.vary], path).toEqual(["accept-encoding", "accept-encoding"]);
      expect(packed.text).toBe(plain.text);
      expect(packed.sent).toBeLessThan(plain.sent / 5);
      expect(packed.headers).not.toHaveProperty("content-length");
    }
  });

  test("that is short, and what is no text or is told as it comes, is sent as it is", async () => {
    for (const path of ["/short", "/zip", "/lines", "/kept"]) {
      const { isPacked, vary } = await ask(path);
      expect([isPacked, vary], path).toEqual([false, undefined]);
    }
  });

  test("has a version that is the same in both forms", async () => {
    expect((await ask("/versioned", "identity")).headers.etag).toBe(`"1"`);
    expect((await ask("/versioned")).headers.etag).toBe(`W/"1"`);
  });

  test("that breaks off does not look whole", async () => {
    await expect(ask("/broken").then(({ text }) => text)).rejects.toThrow();
  });

  test("whose source fails before the head is sent is a failure like any other", async () => {
    const headers = { "accept-encoding": "gzip" };
    const response = await http.app.inject({ url: `/broken-early?sessionid=${session}`, headers });
    expect(response.statusCode).toBe(500);
    expect(response.headers).toMatchObject({ "content-type": "application/json; charset=utf-8" });
    for (const name of ["content-encoding", "content-disposition", "etag"])
      expect(response.headers).not.toHaveProperty(name);
    expect(response.json()).toMatchObject({ status: "error", code: "unavailable" });
  });

  test("is not compressed where a page of another site may measure it", async () => {
    const headers = { "accept-encoding": "gzip", cookie: `matrixSession=${session}` };
    const foreign = await http.app.inject({ url: "/message", headers: { ...headers, "sec-fetch-site": "cross-site" } });
    expect([foreign.statusCode, foreign.headers["content-encoding"]]).toEqual([200, undefined]);
    const own = await http.app.inject({ url: "/message", headers: { ...headers, "sec-fetch-site": "same-origin" } });
    expect(own.headers["content-encoding"]).toBe("gzip");
  });
});

test("the document of the interface is the same in both forms", async () => {
  const { body } = await http.app.inject({ url: "/openapi.json" });
  const packed = await http.app.inject({ url: "/openapi.json", headers: { "accept-encoding": "gzip" } });
  expect(gunzipSync(packed.rawPayload).toString()).toBe(body);
});

test("the document of the interface is sent once to a client that keeps it, with a tag for each form", async () => {
  const plain = await http.app.inject({ url: "/openapi.json" });
  const packed = await http.app.inject({ url: "/openapi.json", headers: { "accept-encoding": "gzip" } });
  const [tag, weak] = [plain.headers.etag?.toString() ?? "", packed.headers.etag?.toString() ?? ""];
  expect(tag).toMatch(/^"[\w-]{20,}"$/);
  expect(weak).toBe(`W/${tag}`);
  for (const known of [tag, weak, `"other", ${weak}`, "*"]) {
    const again = await http.app.inject({ url: "/openapi.json", headers: { "if-none-match": known } });
    expect([again.statusCode, again.body], known).toEqual([304, ""]);
    expect(again.headers).toMatchObject({ etag: tag, "cache-control": "no-cache", vary: "accept-encoding" });
  }
  const other = await http.app.inject({ url: "/openapi.json", headers: { "if-none-match": `"other"` } });
  expect(other.statusCode).toBe(200);
  expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 5);
});

test.each([
  ["gzip", true],
  ["x-gzip", true],
  ["GZIP;q=0.5", true],
  ["br, gzip", true],
  ["*", true],
  ["br;q=1, *;q=0.1", true],
  [undefined, false],
  ["", false],
  ["identity", false],
  ["br", false],
  ["gzip;q=0", false],
  ["gzip; q = 0.000", false],
  ["*;q=0", false],
  ["*, gzip;q=0", false],
  ["gzip;q=0, *", false],
  ["xgzip", false],
])("Accept-Encoding %j takes gzip: %j", (header, takes) => {
  expect(acceptsGzip(header)).toBe(takes);
});
