import { describe, expect, test } from "vitest";
import { rows, http, admin, useThings } from "../../../test/helpers/http/http-things.ts";

describe("the HTTP interface", () => {
  useThings();

  describe("answers", () => {
    test("only declared members are sent", async () => {
      expect(await http.call(admin, { url: "/thing/a" })).toEqual({ status: "ok", message: { name: "a" } });
    });

    test.each([0, 1, 250, 20_000])("%i rows are one array, with meta", async (count) => {
      const answer = await http.call(admin, { url: `/rows?count=${String(count)}` });
      expect(answer.meta).toEqual({ type: "select" });
      expect(answer.message).toEqual(Array.from({ length: count }, (_, n) => ({ n })));
    });

    test("a failure before the first bytes gets its envelope", async () => {
      expect(await http.call(admin, { url: "/rows?count=500&failAt=200" })).toMatchObject({
        status: "error",
        code: "unavailable",
      });
      expect(rows.isOver).toBe(true);
    });

    test("bare content with a safe name", async () => {
      const response = await http.app.inject({ url: `/file?sessionid=${admin}` });
      expect(response.body).toBe("bytes");
      expect(response.headers["content-type"]).toBe("application/zip");
      expect(response.headers["content-disposition"]).toBe(
        `attachment; filename="a__.zip"; filename*=UTF-8''a%22%C3%A4.zip`,
      );
    });

    test("every answer carries the caller's trace, with a span of our own", async () => {
      const sent = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
      const kept = await http.app.inject({ url: "/healthz", headers: { traceparent: sent } });
      expect(kept.headers.traceparent).toMatch(
        new RegExp(`^00-${"1".repeat(32)}-(?!${"2".repeat(16)})[0-9a-f]{16}-01$`),
      );
      const made = await http.app.inject({ url: "/healthz", headers: { traceparent: "00-bad" } });
      expect(made.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    });
  });
});
