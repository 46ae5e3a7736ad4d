import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HTTP_PIECE_BYTES, HTTP_ROWS_BUFFER_BYTES, HTTP_TURN_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { slicesOfOneStep } from "../../../test/helpers/time/slices.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import { bodyPieces } from "./body.ts";
import { endpoint } from "../interface/endpoint.ts";

const PARTS = 8;
/** Its characters of two halves lie across every cut. */
const LONG = `x${"\u{1f600}".repeat((PARTS * HTTP_TURN_TEXT_MAX_CHARACTERS) / 2)}`;

describe("the bytes of a body", () => {
  test.each(["", "short", "\u{1f600}", "ä".repeat(HTTP_PIECE_BYTES), LONG])("are those of its text", async (text) => {
    const pieces = await bodyPieces(text, slicesOfOneStep().slices);
    expect(Buffer.concat(pieces).equals(Buffer.from(text))).toBe(true);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(HTTP_PIECE_BYTES);
  });

  test("are made with a pause after each part of a long text", async () => {
    const { seen, slices } = slicesOfOneStep();
    await bodyPieces(LONG, slices);
    expect(seen.pauses).toBeGreaterThanOrEqual(PARTS);
  });
});

describe("an answer of a long text", () => {
  let http: TestHttp;
  let session: string;
  beforeAll(async () => {
    const get = { method: "GET", permission: "objects:read", summary: "", input: Type.Object({}) } as const;
    const output = Type.Unknown();
    const endpoints = [
      endpoint({
        ...get,
        output,
        path: "/message",
        handler: async () => ({ message: LONG, meta: { total: 1 }, warnings: ["told"] }),
      }),
      endpoint({
        ...get,
        output: Type.Array(Type.String()),
        path: "/rows",
        handler: async () => ({ rows: pagesOf(PARTS), meta: {} }),
      }),
      endpoint({
        ...get,
        output,
        path: "/content",
        bare: { content: { "application/octet-stream": { summary: "" } } },
        handler: async () => ({
          content: Buffer.alloc(PARTS * HTTP_PIECE_BYTES),
          contentType: "application/octet-stream",
        }),
      }),
      endpoint({ ...get, output, path: "/json", bare: { json: output }, handler: async () => ({ json: LONG }) }),
    ];
    http = await openTestHttp({ endpoints });
    session = await http.signIn("admin");
  });
  afterAll(() => http[Symbol.asyncDispose]());

  test.each([
    ["/message", JSON.stringify({ status: "ok", message: LONG, meta: { total: 1 }, warnings: ["told"] })],
    ["/json", JSON.stringify(LONG)],
  ])("is that of JSON.stringify, and others have the thread while it is made: %s", async (path, text) => {
    using pauses = new CountedPauses();
    const answer = await http.app.inject({ url: `${path}?sessionid=${session}` });
    expect(answer.body === text).toBe(true);
    // Once for its text and once for its bytes.
    expect(pauses.count).toBeGreaterThanOrEqual(2 * PARTS);
  });

  test.each(["/rows", "/content"])("is sent with pauses to a reader that takes all at once: %s", async (path) => {
    using pauses = new CountedPauses();
    const answer = await http.app.inject({ url: `${path}?sessionid=${session}` });
    expect(answer.statusCode).toBe(200);
    expect(pauses.count).toBeGreaterThanOrEqual(PARTS);
  });
});

/** Each as long as a piece of an answer. */
async function* pagesOf(count: number): AsyncGenerator<readonly string[]> {
  for (let page = 0; page < count; page++) yield await Promise.resolve(["x".repeat(HTTP_ROWS_BUFFER_BYTES)]);
}
