import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { Type } from "typebox";
import { afterAll, beforeAll } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { openTestHttp, type TestHttp } from "./http-app.ts";
import { endpoint, type Endpoint } from "../../../controller/http/interface/endpoint.ts";

/** A controller whose HTTP interface has endpoints of every form. */

/** The controller of the calling file. */
export let http: TestHttp;
/** Session of an administrator. */
export let admin: string;
/** Session of a user who may only read. */
export let viewer: string;

/** Opens a controller with `things` for all tests of the calling file or block. */
export function useThings(): void {
  beforeAll(async () => {
    http = await openTestHttp({ endpoints: things });
    admin = await http.signIn("admin");
    viewer = await http.signIn("viewer");
  });
  afterAll(() => http[Symbol.asyncDispose]());
}

/** `isOver`: true if no generator of `/rows` is at work. */
export const rows: { isOver: boolean } = { isOver: false };

/** One endpoint of each form of input and answer. */
export const things: readonly Endpoint[] = [
  endpoint({
    method: "GET",
    path: "/thing/:name",
    permission: "objects:read",
    summary: "one thing",
    input: Type.Object({ name: Type.String() }),
    output: Type.Object({ name: Type.String() }),
    handler: async ({ input }) => ({ message: { name: input.name, secret: "never sent" } as { name: string } }),
  }),
  endpoint({
    method: "POST",
    path: "/thing",
    permission: "objects:write",
    summary: "makes one",
    body: "json",
    input: Type.Object({ name: Type.String(), company: Type.Optional(Type.String()) }),
    output: Type.Unknown(),
    handler: async ({ input, principal }) => ({
      message: { ...input, tenant: principal.tenant, user: principal.user },
    }),
  }),
  endpoint({
    method: "GET",
    path: "/tree/*",
    permission: "objects:read",
    summary: "takes the rest",
    input: Type.Object({ "*": Type.String() }),
    output: Type.String(),
    handler: async ({ input }) => ({ message: input["*"] }),
  }),
  endpoint({
    method: "POST",
    path: "/upload",
    permission: "objects:write",
    summary: "reads files back",
    body: "multipart",
    uploads: "optional",
    input: Type.Object({ name: Type.Optional(Type.String()), hosts: Type.Optional(Type.Array(Type.String())) }),
    output: Type.Unknown(),
    handler: async ({ input, files }) => ({
      message: {
        ...input,
        files: await Promise.all(
          files.map(async ({ field, filename, path, size }) => ({
            field,
            filename,
            size,
            text: await readFile(path, "utf8"),
          })),
        ),
      },
    }),
  }),
  endpoint({
    method: "GET",
    path: "/fail/:code",
    permission: "objects:read",
    summary: "fails",
    input: Type.Object({ code: Type.String() }),
    output: Type.Unknown(),
    handler: async ({ input }) => {
      if (input.code === "bug") throw new TypeError("the secret is in the cellar");
      throw new AppError(input.code as "conflict", `it is ${input.code}`);
    },
  }),
  endpoint({
    method: "GET",
    path: "/rows",
    permission: "objects:read",
    summary: "many rows",
    input: Type.Object({ count: Type.Integer(), failAt: Type.Optional(Type.Integer()) }),
    output: Type.Array(Type.Object({ n: Type.Integer() })),
    handler: async ({ input }) => ({ rows: pages(input.count, input.failAt), meta: { type: "select" } }),
  }),
  endpoint({
    method: "GET",
    path: "/file",
    permission: "objects:read",
    summary: "bare bytes",
    input: Type.Object({}),
    output: Type.String(),
    bare: { content: { "application/zip": { summary: "The bytes" } }, only: true },
    handler: async () => ({
      content: Readable.from([Buffer.from("by"), Buffer.from("tes")]),
      contentType: "application/zip",
      filename: 'a"ä.zip',
    }),
  }),
  endpoint({
    method: "GET",
    path: "/hang",
    permission: "objects:read",
    summary: "never answers",
    input: Type.Object({}),
    output: Type.String(),
    handler: () => new Promise<never>(() => {}),
  }),
  endpoint({
    method: "POST",
    path: "/text",
    permission: "jobs:run",
    summary: "free text",
    body: "text",
    bodyMaxBytes: 100,
    input: Type.Object({}),
    output: Type.Unknown(),
    handler: async ({ text }) => ({ message: text ?? null }),
  }),
];

async function* pages(count: number, failAt = Infinity): AsyncGenerator<readonly unknown[]> {
  rows.isOver = false;
  try {
    for (let n = 0; n < count; n += 100) {
      if (n >= failAt) throw new AppError("unavailable", "the store went away");
      yield await Promise.resolve(
        Array.from({ length: Math.min(100, count - n) }, (_, at) => ({ n: n + at, secret: 1 })),
      );
      yield [];
    }
  } finally {
    rows.isOver = true;
  }
}
