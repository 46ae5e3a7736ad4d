import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { Type } from "typebox";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  SHUTDOWN_ANSWERS_MS,
  SHUTDOWN_SOCKETS_MS,
  SHUTDOWN_WORK_MS,
  WEBSOCKET_REFUSED_GRACE_MS,
} from "../../../common/limits.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { endpoint, type Endpoint } from "../interface/endpoint.ts";
import { socketEndpoint } from "../sockets/socket.ts";

/** An orderly stop over real sockets: what becomes of the calls that are carried out then. */

const Nothing = Type.Object({});
const CLOSE = "Connection: close\r\n";
const UPGRADE =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const begun = new Set<string>();
const signals = new Map<string, AbortSignal>();
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
    handler: ({ signal }) => {
      begun.add("/short");
      signals.set("/short", signal);
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
    sockets: [
      socketEndpoint({
        path: "/listen",
        permission: "objects:read",
        summary: "",
        input: Nothing,
        frames: Type.Unknown(),
        open: () => void begun.add("/listen"),
      }),
    ],
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

interface Sent {
  readonly answer: Promise<string>;
  readonly write: (raw: string) => void;
}

/** Sends raw bytes over a connection that stays open, and resolves with all that comes until the server closes it. */
async function sent(raw: string): Promise<Sent> {
  const socket = connect(portOf(http), "127.0.0.1").setEncoding("utf8");
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
  return { answer: read(), write: (more) => socket.write(more) };
}

function head(method: string, path: string, more = ""): string {
  return `${method} ${path}?sessionid=${session} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
}

function send(method: string, path: string, more = ""): Promise<Sent> {
  return sent(head(method, path, `Content-Length: 0\r\n${more}`));
}

async function begin(method: string, path: string): Promise<Sent> {
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

test("a connection with several calls ends with the last answer", async () => {
  const { answer } = await sent(head("GET", "/short") + head("GET", "/short"));
  await expect.poll(() => begun.has("/short")).toBe(true);
  const closed = await stop();
  begun.clear();
  finish();
  await expect.poll(() => begun.has("/short")).toBe(true);
  finish();
  expect((await answer).match(/"message":"done"/g)).toHaveLength(2);
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
  prove("orderly-stop", { "ended as unavailable": 1, "ended as unknown_outcome": 1 });
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

test("a call whose body did not come whole does nothing, also when the rest comes behind its answer", async () => {
  const socket = connect({ port: portOf(http), host: "127.0.0.1", allowHalfOpen: true }).setEncoding("utf8");
  socket.write(`${head("POST", "/changing", "Content-Type: application/json\r\nContent-Length: 3\r\n")}{}`);
  await expect.poll(async () => (await http.app.inject("/metrics")).body).toMatch(/^odp_http_body_bytes [1-9]/m);
  const closed = await stop();
  const answered = once(socket, "data");
  const ended = once(socket, "end");
  clock.advance(SHUTDOWN_WORK_MS);
  expect(String(await answered)).toContain(`"code":"unavailable"`);
  await ended;
  socket.end(" ");
  await closed.done;
  expect(begun).toEqual(new Set());
});

test("a call that is over by then hears nothing of the stop", async () => {
  const over = await begin("GET", "/short");
  finish();
  await expect.poll(() => overCalls()).toBe(1);
  await begin("POST", "/changing");
  const closed = await stop();
  clock.advance(SHUTDOWN_WORK_MS);
  await closed.done;
  expect(await over.answer).toContain(`"message":"done"`);
  expect(signals.get("/short")?.aborted).toBe(false);
});

test("a call that comes after the others were ended is refused", async () => {
  const late = await sent("GET /short?sessionid=");
  await expect.poll(() => connections()).toBe(1);
  const closed = await stop();
  clock.advance(SHUTDOWN_WORK_MS);
  late.write(`${session} HTTP/1.1\r\nHost: x\r\n\r\n`);
  expect(await late.answer).toContain(`"code":"unavailable"`);
  expect(begun).toEqual(new Set());
  await closed.done;
});

test("a WebSocket that is asked for during the stop is refused", async () => {
  const late = await sent(`GET /listen?sessionid=${session} HTTP/1.1\r\n`);
  await expect.poll(() => connections()).toBe(1);
  const closed = await stop();
  late.write(`Host: x\r\n${UPGRADE}\r\n`);
  expect(await late.answer).toMatch(/^HTTP[^]*"code":"unavailable"/);
  await closed.done;
});

test("a WebSocket whose client ignores that it is closed is cut off", async () => {
  const { answer } = await sent(head("GET", "/listen", UPGRADE));
  await expect.poll(() => begun.has("/listen")).toBe(true);
  const closed = await stop();
  clock.advance(SHUTDOWN_SOCKETS_MS);
  await closed.done;
  expect(await answer).toMatch(/^HTTP\/1\.1 101 [^]*the controller stops/);
});

test("a WebSocket that was refused is cut off when its client keeps the connection, and holds no stop", async () => {
  const socket = connect({ port: portOf(http), host: "127.0.0.1", allowHalfOpen: true }).setEncoding("utf8");
  socket.write(`GET /listen HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\nbytes behind it`);
  const ended = once(socket, "end");
  expect(String((await once(socket, "data"))[0])).toContain(`"status":"signin"`);
  await ended;
  const closed = await stop();
  expect(await connections()).toBe(1);
  clock.advance(WEBSOCKET_REFUSED_GRACE_MS);
  await closed.done;
  socket.destroy();
});

function portOf({ app }: TestHttp): number {
  return (app.server.address() as AddressInfo).port;
}

/** Once the server takes no new connection. */
async function stop(): Promise<{ readonly done: PromiseLike<void> }> {
  const done = http.app.close();
  await expect.poll(() => http.app.server.listening).toBe(false);
  return { done };
}

/** Calls of GET /short whose answers were sent. */
async function overCalls(): Promise<number> {
  const { body } = await http.app.inject("/metrics");
  return Number(/^odp_http_call_seconds_count\{[^}]*"\/short"[^}]*\} (\d+)/m.exec(body)?.[1] ?? 0);
}

async function connections(): Promise<number> {
  return new Promise((resolve, reject) =>
    http.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
