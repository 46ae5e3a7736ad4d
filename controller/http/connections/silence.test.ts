import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { Readable } from "node:stream";
import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  HTTP_CALL_DEADLINE_MS,
  HTTP_PIECE_BYTES,
  HTTP_SILENCE_CHECK_MS,
  HTTP_SILENCE_MS,
  WEBSOCKET_PING_MS,
} from "../../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { endpoint, type Answer, type Endpoint } from "../interface/endpoint.ts";
import { socketEndpoint } from "../sockets/socket.ts";

/** Peers that neither read nor send; time passes only when a test says so. */

const LARGE_BYTES = 64 * 1_048_576;
const input = Type.Object({});
const read = { method: "GET", permission: "objects:read", summary: "", input, output: Type.Unknown() } as const;
const produced = { pieces: 0, over: 0 };
let goOn: () => void = () => {};
let begun: () => void = () => {};
let say: (text: string) => void = () => {};

function* endless(): Generator<Buffer> {
  try {
    for (;;) {
      produced.pieces++;
      yield Buffer.alloc(HTTP_PIECE_BYTES);
    }
  } finally {
    produced.over++;
  }
}

const endpoints: readonly Endpoint[] = [
  endpoint({
    ...read,
    path: "/download",
    bare: { content: { "application/octet-stream": { summary: "" } } },
    handler: async () => ({ content: Readable.from(endless()), contentType: "application/octet-stream" }),
  }),
  endpoint({ ...read, path: "/message", handler: async () => ({ message: "x".repeat(LARGE_BYTES) }) }),
  endpoint({
    ...read,
    path: "/long",
    handler: () =>
      new Promise<Answer<unknown>>((resolve) => {
        goOn = () => resolve({ message: "done" });
        begun();
      }),
  }),
  endpoint({
    ...read,
    method: "POST",
    path: "/upload",
    permission: "objects:write",
    handler: async ({ files }) => ({ message: files.map(({ size }) => size) }),
  }),
];
const sockets = [
  socketEndpoint({
    path: "/listen",
    permission: "objects:read",
    summary: "",
    input,
    frames: Type.Unknown(),
    open: ({ line }) => (say = (text) => line.send(text)),
  }),
];

let http: TestHttp;
let clock: TestClock;
let session: string;
let port: number;
/** The server's ends. */
let accepted: Socket[];

beforeEach(async () => {
  clock = new TestClock();
  http = await openTestHttp({ endpoints, sockets, runtime: testRuntime(clock), settings: { callsInFlightMax: 1 } });
  session = await http.signIn("admin");
  accepted = [];
  http.app.server.on("connection", (socket) => accepted.push(socket));
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  port = (http.app.server.address() as AddressInfo).port;
  Object.assign(produced, { pieces: 0, over: 0 });
});
afterEach(async () => {
  for (const socket of accepted) socket.destroy();
  await http[Symbol.asyncDispose]();
});

async function open(request: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.pause();
  await once(socket, "connect");
  socket.write(request);
  return socket;
}

const get = (path: string): string => `GET ${path}?sessionid=${session} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** Until the buffers of the system are full and bytes wait here. */
async function stuck(): Promise<void> {
  let before = -1;
  await expect
    .poll(
      () => {
        const [socket] = accepted;
        if (socket === undefined) return 0;
        const isStill = socket.bytesWritten - socket.writableLength === before;
        before = socket.bytesWritten - socket.writableLength;
        return isStill ? socket.writableLength : 0;
      },
      { interval: 200 },
    )
    .toBeGreaterThan(0);
}

const closed = (): Promise<unknown> => expect.poll(() => accepted.every(({ destroyed }) => destroyed)).toBe(true);
const stays = (): void => expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false]);

describe("a peer that reads nothing is cut off", () => {
  test("from a download, whose production ends", async () => {
    await open(get("/download"));
    await stuck();
    clock.advance(HTTP_SILENCE_MS - HTTP_SILENCE_CHECK_MS);
    stays();
    clock.advance(2 * HTTP_SILENCE_CHECK_MS);
    await closed();
    await expect.poll(() => produced.over).toBe(1);
  });

  test("from a large message, of which little waits for it", async () => {
    await open(get("/message"));
    await stuck();
    expect(accepted[0]?.writableLength).toBeLessThan(4 * HTTP_PIECE_BYTES);
    clock.advance(HTTP_SILENCE_MS + HTTP_SILENCE_CHECK_MS);
    await closed();
  });

  test("from a WebSocket, though it talks all the time", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/listen?sessionid=${session}`);
    socket.on("error", () => {});
    await once(socket, "open");
    socket.pause();
    // Less at once than the queue of a socket holds, so that not this bound ends it.
    await expect
      .poll(
        () => {
          if (accepted[0]?.writableLength === 0) say("x".repeat(HTTP_PIECE_BYTES));
          return accepted[0]?.writableLength;
        },
        { interval: 1, timeout: 30_000 },
      )
      .toBeGreaterThan(0);
    await stuck();
    for (let passedMs = 0; passedMs <= HTTP_SILENCE_MS; passedMs += WEBSOCKET_PING_MS / 2) {
      const { bytesRead = 0 } = accepted[0] ?? {};
      socket.send("still here");
      await expect.poll(() => accepted[0]?.destroyed === true || (accepted[0]?.bytesRead ?? 0) > bytesRead).toBe(true);
      clock.advance(WEBSOCKET_PING_MS / 2);
    }
    clock.advance(HTTP_SILENCE_CHECK_MS);
    await closed();
  });
});

test("a peer that reads little by little goes on for longer than a call may take", async () => {
  const socket = await open(get("/download"));
  for (let passedMs = 0; passedMs <= HTTP_CALL_DEADLINE_MS; passedMs += HTTP_SILENCE_MS / 2) {
    await stuck();
    const pieces = produced.pieces;
    while (produced.pieces === pieces) {
      socket.read();
      await new Promise((resolve) => setImmediate(resolve));
    }
    clock.advance(HTTP_SILENCE_MS / 2);
  }
  stays();
});

describe("an upload", () => {
  const begin = '--B\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n';
  const head = (length: number): string =>
    `POST /upload?sessionid=${session} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\n` +
    `Content-Length: ${String(length)}\r\n\r\n${begin}`;
  const received = (bytes: number): Promise<unknown> =>
    expect.poll(() => accepted[0]?.bytesRead ?? 0).toBeGreaterThanOrEqual(bytes);

  test("of which nothing more comes is cut off", async () => {
    const request = `${head(1_000_000)}the first of many bytes`;
    await open(request);
    await received(request.length);
    clock.advance(HTTP_SILENCE_MS - HTTP_SILENCE_CHECK_MS);
    stays();
    clock.advance(2 * HTTP_SILENCE_CHECK_MS);
    await closed();
  });

  test("and the memory of its fields is free then", async () => {
    const held = async (): Promise<string> => (await http.app.inject({ url: "/metrics" })).body;
    const field = '--B\r\nContent-Disposition: form-data; name="name"\r\n\r\nhalf a va';
    await open(head(1_000_000).replace(begin, field));
    await expect.poll(held).toMatch(/^odp_http_body_bytes [1-9]/m);
    clock.advance(HTTP_SILENCE_MS + 2 * HTTP_SILENCE_CHECK_MS);
    await expect.poll(held).toMatch(/^odp_http_body_bytes 0$/m);
  });

  test("that comes drop by drop goes on", async () => {
    const end = "\r\n--B--\r\n";
    const drops = 4;
    const request = head(begin.length + drops + end.length);
    const socket = await open(request);
    for (let drop = 1; drop <= drops; drop++) {
      socket.write("x");
      await received(request.length + drop);
      clock.advance(HTTP_SILENCE_MS - 2 * HTTP_SILENCE_CHECK_MS);
    }
    socket.write(end);
    const [answer] = (await once(socket.resume(), "data")) as [Buffer];
    expect(String(answer)).toContain(`"message":[${String(drops)}]`);
  });

  test("that waits here to be read is not its sender's delay", async () => {
    const first = await open(get("/long"));
    await new Promise<void>((resolve) => (begun = resolve));
    const body = "x".repeat(HTTP_PIECE_BYTES * 16);
    const end = "\r\n--B--\r\n";
    // The one place of the tenant is taken, so that its body is not read yet.
    const second = await open(head(begin.length + body.length + end.length) + body + end);
    await expect.poll(() => accepted[1]?.bytesRead ?? 0).toBeGreaterThan(0);
    clock.advance(HTTP_SILENCE_MS + HTTP_SILENCE_CHECK_MS);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    goOn();
    expect(String((await once(first.resume(), "data"))[0])).toContain("done");
    expect(String((await once(second.resume(), "data"))[0])).toContain(`"message":[${String(body.length)}]`);
  });
});

test("who waits for a long call owes nothing", async () => {
  const socket = await open(get("/long"));
  await new Promise<void>((resolve) => (begun = resolve));
  clock.advance(HTTP_SILENCE_MS + HTTP_SILENCE_CHECK_MS);
  stays();
  goOn();
  expect(String((await once(socket.resume(), "data"))[0])).toContain("done");
});
