import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { Type } from "typebox";
import { afterAll, beforeAll } from "vitest";
import { openTestHttp, type TestHttp } from "./http-app.ts";
import { endpoint, type Endpoint } from "../../../controller/http/interface/endpoint.ts";

/**
 * Faults that show only on a real socket: broken bytes, clients that go away, answers that break off, receivers that do
 * not read.
 */

export const LARGE = "x".repeat(1_000_000);
export const produced = { answers: 0, pages: 0, ended: false, aborted: undefined as string | undefined };

const endpoints: readonly Endpoint[] = [
  endpoint({
    method: "POST",
    path: "/echo",
    permission: "objects:write",
    summary: "",
    input: Type.Object({ name: Type.Optional(Type.String()) }),
    output: Type.Unknown(),
    handler: async ({ input, text }) => ({ message: { ...input, text: text?.length } }),
  }),
  endpoint({
    method: "GET",
    path: "/stream",
    permission: "objects:read",
    summary: "",
    input: Type.Object({ failAfter: Type.Integer() }),
    output: Type.Array(Type.Unknown()),
    handler: async ({ input, signal }) => {
      produced.ended = false;
      signal.addEventListener("abort", () => (produced.aborted = String((signal.reason as { code?: string }).code)));
      return { rows: endless(input.failAfter) };
    },
  }),
  endpoint({
    method: "GET",
    path: "/large",
    permission: "objects:read",
    summary: "",
    input: Type.Object({}),
    output: Type.String(),
    handler: async () => {
      produced.answers++;
      return { message: LARGE };
    },
  }),
  endpoint({
    method: "GET",
    path: "/stranger",
    permission: "public",
    summary: "",
    input: Type.Object({}),
    output: Type.String(),
    handler: ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve({ message: "" }))),
  }),
  endpoint({
    method: "GET",
    path: "/open",
    permission: "public",
    summary: "",
    input: Type.Object({}),
    output: Type.String(),
    handler: async () => ({ message: "" }),
  }),
  endpoint({
    method: "GET",
    path: "/wait",
    permission: "objects:read",
    summary: "",
    input: Type.Object({}),
    output: Type.Unknown(),
    handler: ({ signal }) =>
      new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          produced.aborted = String((signal.reason as { code?: string }).code);
          resolve({ message: "" });
        }),
      ),
  }),
];

export let http: TestHttp;
export let session: string;
export let port: number;

/** Opens a server with a port of its own for all tests of the calling file. */
export function useWire(): void {
  beforeAll(async () => {
    http = await openTestHttp({ endpoints });
    session = await http.signIn("admin");
    await http.app.listen({ port: 0, host: "127.0.0.1" });
    port = (http.app.server.address() as AddressInfo).port;
  });
  afterAll(() => http[Symbol.asyncDispose]());
}

async function* endless(failAfter: number): AsyncGenerator<readonly unknown[]> {
  const row = { text: "x".repeat(1_000) };
  try {
    for (produced.pages = 0; produced.pages < failAfter; produced.pages++)
      yield await Promise.resolve(Array.from({ length: 100 }, () => row));
    throw new Error("the store went away in the middle");
  } finally {
    produced.ended = true;
  }
}

/** Opens a connection to the server. The caller closes it. */
export async function open(): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

/** Sends raw bytes and answers everything that comes until the server closes. */
export async function exchange(raw: string): Promise<string> {
  const socket = await open();
  socket.write(raw);
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
  return answer;
}
