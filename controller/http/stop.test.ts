import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { Type } from "typebox";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SHUTDOWN_ANSWERS_MS, SHUTDOWN_WORK_MS } from "../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../test/helpers/http-app.ts";
import { TestClock, testRuntime } from "../../test/helpers/runtime.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";

/** An orderly stop over real sockets: what becomes of the calls that are carried out then. */

const Nothing = Type.Object({});
const CLOSE = "Connection: close\r\n";
const begun = new Set<string>();
let finish: () => void = () => undefined;

async function* endless(): AsyncGenerator<readonly unknown[]> {
  begun.add("/rows");
  for (;;) yield await Promise.resolve([{ text: "x".repeat(100_000) }]);
}

const endpoints: readonly Endpoint[] = [
  endpoint({
    method: "GET",
    path: "/short",
    permission: "objects:read",
    summary: "",
    input: Nothing,
    output: Type.String(),
    handler: () => {
      begun.add("/short");
      return new Promise<{ message: string }>((resolve) => (finish = () => resolve({ message: "done" })));
    },
  }),
  endpoint({
    method: "POST",
    path: "/changing",
    permission: "objects:write",
    summary: "",
    input: Nothing,
    output: Type.String(),
    handler: () => {
      begun.add("/changing");
      return new Promise<never>(() => undefined);
    },
  }),
  endpoint({
    method: "GET",
    path: "/rows",
    permission: "objects:read",
    summary: "",
    input: Nothing,
    output: Type.Array(Type.Unknown()),
    handler: async () => ({ rows: endless() }),
  }),
];

let clock: TestClock;
let http: TestHttp;
let session: string;

beforeEach(async () => {
  clock = new TestClock();
  begun.clear();
  http = await openTestHttp({
    endpoints,
    runtime: testRuntime(clock),
    settings: { callsInFlightMax: 1, callsWaitingMax: 1 },
  });
  session = await http.signIn("admin");
  await http.app.listen({ port: 0, host: "127.0.0.1" });
});
afterEach(async () => {
  const disposed = http[Symbol.asyncDispose]();
  await stop();
  clock.advance(SHUTDOWN_WORK_MS);
  clock.advance(SHUTDOWN_ANSWERS_MS);
  await disposed;
});

/** Sends raw bytes over a connection that stays open, and resolves with all that comes until the server closes it. */
async function sent(raw: string): Promise<{ readonly answer: Promise<string> }> {
  const socket = connect((http.app.server.address() as AddressInfo).port, "127.0.0.1").setEncoding("utf8");
  await once(socket, "connect");
  socket.write(raw);
  const read = async (): Promise<string> => {
    let text = "";
    try {
      for await (const piece of socket) text += String(piece);
    } catch {
      text += "(reset)";
    }
    return text;
  };
  return { answer: read() };
}

function send(method: string, path: string, more = ""): Promise<{ readonly answer: Promise<string> }> {
  const line = `${method} ${path}?sessionid=${session} HTTP/1.1`;
  return sent(`${line}\r\nHost: x\r\nContent-Length: 0\r\n${more}\r\n`);
}

async function begin(method: string, path: string): Promise<{ readonly answer: Promise<string> }> {
  const call = await send(method, path);
  await expect.poll(() => begun.has(path)).toBe(true);
  return call;
}

test("a call that ends in time is answered, and its connection ends with the answer", async () => {
  const { answer } = await begin("GET", "/short");
  const closed = await stop();
  finish();
  expect(await answer).toMatch(/^HTTP\/1\.1 200 [^]*"message":"done"/);
  await closed.done;
});

test("calls that last longer are ended: one that waits did nothing, of one at work that is not known", async () => {
  const atWork = await begin("POST", "/changing");
  // There is room for one to wait: when one is refused, the other waits.
  const others = [(await send("GET", "/short", CLOSE)).answer, (await send("GET", "/short", CLOSE)).answer];
  expect(await Promise.race(others)).toContain(`"code":"limited"`);
  const closed = await stop();
  clock.advance(SHUTDOWN_WORK_MS);
  expect((await Promise.all(others)).map((answer) => /"code":"(\w+)"/.exec(answer)?.[1]).sort()).toEqual([
    "limited",
    "unavailable",
  ]);
  expect(await atWork.answer).toContain(`"code":"unknown_outcome"`);
  expect(begun).toEqual(new Set(["/changing"]));
  expect(http.trail.records.map(({ action, code }) => ({ action, code }))).toContainEqual({
    action: "POST /changing",
    code: "unknown_outcome",
  });
  await closed.done;
});

test("a stream of rows breaks off, and a request that never comes whole holds up nothing", async () => {
  const rows = await begin("GET", "/rows");
  const half = await sent("GET /short HTTP/1.1\r\nHost");
  await expect.poll(() => connections()).toBe(2);
  const closed = await stop();
  clock.advance(SHUTDOWN_WORK_MS);
  const text = await rows.answer;
  expect([text.startsWith("HTTP/1.1 200"), text.endsWith("\r\n0\r\n\r\n")]).toEqual([true, false]);
  clock.advance(SHUTDOWN_ANSWERS_MS);
  await half.answer;
  await closed.done;
});

/** Once the server takes no new connection. */
async function stop(): Promise<{ readonly done: PromiseLike<void> }> {
  const done = http.app.close();
  await expect.poll(() => http.app.server.listening).toBe(false);
  return { done };
}

async function connections(): Promise<number> {
  return new Promise((resolve, reject) =>
    http.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
