import { readFile } from "node:fs/promises";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Random } from "../../common/time.ts";
import { endpoint } from "../../controller/http/interface/endpoint.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { openTestHttp, type TestHttp } from "../helpers/http/http-app.ts";
import { TIMES } from "../helpers/time/times.ts";

/**
 * Forms and multipart bodies, intact and damaged: each must be understood or refused with a reason; none may cause an
 * internal error.
 */

/** Number of cases in every run; `npm run soak` runs more. */
const CASES = 500 * TIMES;
const Nested = Type.Object({
  a: Type.Optional(Type.Union([Type.String(), Type.Integer(), Type.Null()])),
  b: Type.Optional(Type.Array(Type.String())),
});
const Input = Type.Object({
  name: Type.Optional(Type.String()),
  count: Type.Optional(Type.Integer()),
  flag: Type.Optional(Type.Boolean()),
  list: Type.Optional(Type.Array(Type.Integer())),
  nested: Type.Optional(Nested),
  all: Type.Optional(Type.Array(Nested)),
  free: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  any: Type.Optional(Type.Unknown()),
});
const NAMES = [
  "name",
  "count",
  "flag",
  "list",
  "nested",
  "all",
  "free",
  "any",
  "sessionid",
  "__proto__",
  "constructor",
  "toString",
  "",
  "ä",
  "a".repeat(2_000),
];
const KEYS = ["", "0", "1", "99999999999", "a", "b", "__proto__", "constructor", "]", "[", " "];
const VALUES = [
  "",
  "1",
  "-0",
  "1e400",
  "0x10",
  "null",
  "undefined",
  "true",
  "[object Object]",
  "{}",
  "[]",
  `{"a":1}`,
  `[{"a":null},{"b":[1]}]`,
  `{"__proto__":{"a":1}}`,
  "[".repeat(100),
  `{"a":${"[".repeat(70)}${"]".repeat(70)}}`,
  "\u0000",
  "\ud800",
  "%",
  "%zz",
  "x".repeat(5_000),
  "\r\n",
  "--B",
  `"`,
  "../../etc/passwd",
];
const TYPES = [
  "application/x-www-form-urlencoded",
  "application/json",
  "text/plain",
  "application/x-www-form-urlencoded; charset=latin1",
  "application/json; charset=nonsense",
  "",
  "x/y;;;",
];
const BOUNDARIES = ["B", "--B", "x".repeat(70), "B B", `"B"`, "B;", ""];

let http: TestHttp;
let session: string;

beforeAll(async () => {
  const common = { input: Input, output: Type.Unknown(), permission: "objects:write", summary: "" } as const;
  http = await openTestHttp({
    endpoints: [
      endpoint({
        ...common,
        method: "POST",
        path: "/form",
        body: "form",
        handler: async ({ input }) => ({ message: input }),
      }),
      endpoint({
        ...common,
        method: "POST",
        path: "/text",
        body: "text",
        handler: async ({ input, text }) => ({ message: { ...input, text } }),
      }),
      endpoint({
        ...common,
        method: "POST",
        path: "/upload",
        body: "multipart",
        handler: async ({ files }) => ({
          message: await Promise.all(files.map(async ({ path, size }) => (await readFile(path)).length === size)),
        }),
      }),
    ],
  });
  session = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

function pick<T>(random: Random, from: readonly T[]): T {
  const chosen = from[Math.floor(random.next() * from.length)];
  if (chosen === undefined) throw new RangeError("there is something to pick from");
  return chosen;
}

function fieldName(random: Random): string {
  let name = pick(random, NAMES);
  while (random.next() < 0.3) name += `[${pick(random, KEYS)}]`;
  return name;
}

function some<T>(random: Random, make: () => T): readonly T[] {
  return Array.from({ length: Math.floor(random.next() * 5) }, make);
}

/** A text with a part removed, doubled or replaced, or unchanged. */
function damaged(random: Random, text: string): string {
  if (random.next() < 0.5) return text;
  const [from, to] = [random.next() * text.length, random.next() * text.length].sort((one, other) => one - other);
  const middle = text.slice(from, to);
  return text.slice(0, from) + pick(random, ["", middle + middle, "\u0000", "\r\n", "%"]) + text.slice(to);
}

function form(random: Random): { readonly type: string; readonly payload: string } {
  const fields = some(
    random,
    () =>
      `${encodeURIComponent(fieldName(random))}=${random.next() < 0.5 ? encodeURIComponent(wellFormed(pick(random, VALUES))) : pick(random, VALUES)}`,
  );
  return {
    type: pick(random, TYPES),
    payload: damaged(random, random.next() < 0.8 ? fields.join("&") : pick(random, VALUES)),
  };
}

/** `encodeURIComponent` refuses a lone surrogate. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udfff]/g, "?");
}

function multipart(random: Random): { readonly type: string; readonly payload: string } {
  const boundary = pick(random, BOUNDARIES);
  const part = (): string => {
    const name = random.next() < 0.9 ? `; name="${fieldName(random)}"` : "";
    const file = random.next() < 0.5 ? `; filename="${pick(random, VALUES)}"` : "";
    const more =
      random.next() < 0.3
        ? `Content-Type: ${pick(random, TYPES)}\r\nContent-Transfer-Encoding: ${pick(random, ["base64", "7bit", "nonsense"])}\r\n`
        : "";
    return `--${boundary}\r\nContent-Disposition: form-data${name}${file}\r\n${more}\r\n${pick(random, VALUES)}\r\n`;
  };
  const payload = `${some(random, part).join("")}--${boundary}--\r\n`;
  return { type: `multipart/form-data; boundary=${boundary}`, payload: damaged(random, payload) };
}

test.each([
  ["forms", form, ["/form", "/text", "/upload"]],
  ["multipart bodies", multipart, ["/upload", "/form"]],
] as const)("%s", { timeout: 120_000 * TIMES }, async (_name, make, paths) => {
  const random = seededRandom(20_260_728);
  let understood = 0;
  for (let at = 0; at < CASES; at++) {
    const { type, payload } = make(random);
    const url = `${pick<string>(random, paths)}?sessionid=${session}`;
    const response = await http.app.inject({ method: "POST", url, payload, headers: { "content-type": type } });
    const answer = response.json<{ status: string; code?: string; message: unknown }>();
    const shown = `case ${String(at)}: ${type} ${JSON.stringify(payload.slice(0, 500))} answered ${response.body.slice(0, 300)}`;
    if (answer.status === "ok") understood++;
    else expect(["invalid", "syntax", "too_large"], shown).toContain(answer.code);
    expect(response.body, shown).not.toMatch(/Cannot read|is not a function|undefined \(reading|node_modules/);
  }
  // A generator that produces only invalid input would prove nothing.
  expect(understood).toBeGreaterThan(CASES / 20);
  expect(({} as { a?: unknown }).a).toBeUndefined();
});
