import type { FastifyReply } from "fastify";
import { expect, test } from "vitest";
import { setCookie, type CookieText } from "./cookie.ts";

function lineOf(cookie: CookieText): string | undefined {
  let line: string | undefined;
  setCookie({ header: (_name: string, value: string) => void (line = value) } as unknown as FastifyReply, "a", cookie);
  return line;
}

test.each<[string, CookieText]>([
  ["a=b%3B%C3%A9; Path=/; HttpOnly; SameSite=Lax", { text: "b;é", secure: false }],
  ["a=b; Max-Age=90; Path=/; HttpOnly; Secure; SameSite=Lax", { text: "b", secure: true, maxAge: 90 }],
  [
    "a=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/; HttpOnly; SameSite=Lax",
    { text: undefined, secure: false },
  ],
])("%s", (line, cookie) => {
  expect(lineOf(cookie)).toBe(line);
});
