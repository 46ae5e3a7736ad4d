import { once, setMaxListeners } from "node:events";
import { request as httpRequest } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  HTTP_BODY_MAX_BYTES,
  HTTP_FORM_MAX_FIELDS,
  HTTP_PIPELINED_AT_ONCE_MAX,
  HTTP_PIPELINED_MAX,
  STRANGER_CALLS_IN_FLIGHT_MAX,
  STRANGER_CALLS_WAITING_MAX,
  WEBSOCKET_PIECE_BYTES,
  WEBSOCKET_RECEIVED_MAX_BYTES,
} from "../../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/areas/http-app.ts";
import { BodyMemory } from "../body/memory.ts";
import { endpoint, type Endpoint } from "../interface/endpoint.ts";
import { takeInTurns } from "../connections/incoming.ts";

/**
 * Faults that show only on a real socket: broken bytes, clients that go away, answers that break off, receivers that do
 * not read.
 */

const LARGE = "x".repeat(1_000_000);
const produced = { answers: 0, pages: 0, ended: false, aborted: undefined as string | undefined };

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

let http: TestHttp;
let session: string;
let port: number;

beforeAll(async () => {
  http = await openTestHttp({ endpoints });
  session = await http.signIn("admin");
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  port = (http.app.server.address() as AddressInfo).port;
});
afterAll(() => http[Symbol.asyncDispose]());

async function open(): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

/** Sends raw bytes and answers everything that comes until the server closes. */
async function exchange(raw: string): Promise<string> {
  const socket = await open();
  socket.write(raw);
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
  return answer;
}

const head = (type: string, length: number, more = ""): string =>
  `POST /echo?sessionid=${session} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${String(length)}\r\n${more}\r\n`;

describe("broken bytes", () => {
  test("what is no HTTP gets the envelope and the end of the connection", async () => {
    const answer = await exchange("NONSENSE\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(`"status":"error"`);
  });

  test("a head that is too large is named as such", async () => {
    const answer = await exchange(`GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(100_000)}\r\n\r\n`);
    expect(answer).toContain("too_large");
  });

  test("a query of too many fields is refused, of a stranger too, and ends nothing but its call", async () => {
    const fields = "a&".repeat(HTTP_FORM_MAX_FIELDS + 1);
    for (const target of [`/echo?${fields}`, `/echo?sessionid=${session}&${fields}`]) {
      const answer = await exchange(
        `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      expect(answer).toMatch(/More than 2000 form or query fields.*"code":"too_large"/);
    }
    const nowhere = await exchange(`GET /nowhere?${fields} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(nowhere).toContain("not_found");
    expect((await http.app.inject({ url: `/healthz?${fields}` })).statusCode).toBe(200);
  });

  test("multipart that ends in the middle of a file", async () => {
    const body = `--B\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nhalf a fi`;
    expect(await exchange(head("multipart/form-data; boundary=B", body.length) + body)).toMatch(
      /"status":"error".*multipart body is broken.*"code":"invalid"/,
    );
  });

  test("multipart without any part, and with garbage in place of one", async () => {
    for (const body of ["garbage without a boundary", `--B\r\nno headers`, `--B\r\n\r\n\r\n--B--`]) {
      const answer = await exchange(head("multipart/form-data; boundary=B", body.length) + body);
      expect(answer).toMatch(/^HTTP\/1\.1 (200|500) /);
      expect(answer).not.toContain("internal");
    }
  });

  test("a stranger's file is refused before it is taken in", async () => {
    const socket = await open();
    socket.write(
      `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 100000000\r\n\r\n`,
    );
    socket.write(`--B\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nthe first of many bytes`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toContain('"status":"signin"');
    socket.destroy();
  });

  test("bytes that are no text in the charset they claim", async () => {
    const socket = await open();
    socket.write(head("text/plain; charset=utf-8", 2));
    socket.write(Buffer.from([0xc3, 0x28]));
    const chunks: string[] = [];
    for await (const chunk of socket) chunks.push(String(chunk));
    expect(chunks.join("")).toMatch(/no utf-8 text.*"code":"invalid"/);
  });

  test("a body that is too large gets its answer although the client sends on", async () => {
    const answer = await exchange(head("text/plain", HTTP_BODY_MAX_BYTES + 10) + "x".repeat(HTTP_BODY_MAX_BYTES + 10));
    expect(answer).toMatch(/"code":"too_large"/);
  });

  test("a client that goes away while it sends leaves no fault behind", async () => {
    const socket = await open();
    socket.write(head("text/plain", 100) + "some");
    socket.destroy();
    expect((await http.app.inject({ url: "/healthz" })).statusCode).toBe(200);
  });
});

describe("calls that are sent before earlier ones are answered", () => {
  const call = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

  test("are worked on as fast as their answers are read, and all answered in order", async () => {
    const socket = await open();
    socket.pause();
    const count = 100;
    produced.answers = 0;
    socket.write(call(`/large?sessionid=${session}`).repeat(count));
    await expect.poll(() => produced.answers).toBeGreaterThan(0);
    // The system takes some megabytes on both sides before anything has to wait.
    let before = -1;
    await expect
      .poll(
        () => {
          const still = produced.answers === before;
          before = produced.answers;
          return still;
        },
        { interval: 200 },
      )
      .toBe(true);
    expect(produced.answers).toBeLessThan(HTTP_PIPELINED_AT_ONCE_MAX + 30);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length)).resume();
    await expect.poll(() => bytes, { timeout: 30_000 }).toBeGreaterThan(count * LARGE.length);
    expect(produced.answers).toBe(count);
    socket.destroy();
  });

  test("are answered up to a bound, and the connection is closed in good order", async () => {
    const answer = await exchange(call("/healthz").repeat(HTTP_PIPELINED_MAX * 4));
    const answered = answer.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0;
    expect(answered).toBeGreaterThanOrEqual(HTTP_PIPELINED_MAX);
    expect(answered).toBeLessThan(HTTP_PIPELINED_MAX * 4);
    expect(answer.match(/connection: close/gi)).toHaveLength(1);
  });
});

describe("connections", () => {
  test("two Host headers are refused, for sockets too", async () => {
    expect(await exchange("GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 400 .*more than one Host header/s,
    );
    const upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    expect(await exchange(`GET /any HTTP/1.1\r\nHost: x\r\nHost: x\r\n${upgrade}\r\n`)).toContain(
      "more than one Host header",
    );
  });

  test("a request whose length is said in two ways is refused, and nothing behind it is taken for another", async () => {
    const call = (more: string) => `POST /echo?sessionid=${session} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
    const hidden = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    for (const more of [
      "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
      "Content-Length: 4\r\nContent-Length: 5\r\n",
      "Content-Length: 4, 5\r\n",
      "Content-Length: +4\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding : chunked\r\n",
    ]) {
      const answer = await exchange(`${call(more)}0\r\n\r\n${hidden}`);
      expect(answer.match(/^HTTP\/1\.1 \d+/gm), more).toEqual(["HTTP/1.1 400"]);
    }
  });

  test("an early answer reaches a client that asked for the end of the connection and still sends", async () => {
    const socket = connect((http.app.server.address() as AddressInfo).port, "127.0.0.1");
    const rest = 4_000_000;
    const seen = { answer: "", sent: false, error: undefined as unknown, endedAfter: undefined as boolean | undefined };
    socket.on("data", (data: Buffer) => (seen.answer += data.toString()));
    socket.on("error", (error) => (seen.error = error));
    socket.on("end", () => (seen.endedAfter = seen.sent));
    socket.write(`POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${100_000 + rest}\r\n\r\n`);
    socket.write("x".repeat(100_000));
    await expect.poll(() => seen.answer).toContain('"status":"signin"');
    socket.write("x".repeat(rest), () => (seen.sent = true));
    await expect.poll(() => seen.endedAfter ?? seen.error).toBe(true);
    expect(seen.answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("a head that does not arrive ends the connection when its deadline is over", async () => {
    await using impatient = await openTestHttp({ settings: { deadlines: { headMs: 100 } } });
    await impatient.app.listen({ port: 0, host: "127.0.0.1" });
    const socket = connect((impatient.app.server.address() as AddressInfo).port, "127.0.0.1");
    socket.write("GET /healthz HTTP/1.1\r\nHost:");
    const [answer] = (await Promise.race([once(socket, "data"), once(AbortSignal.timeout(20_000), "abort")])) as [
      unknown,
    ];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 408 /);
    socket.destroy();
  });

  test("strangers of one address take no place of others", async () => {
    const gone = new AbortController();
    setMaxListeners(0, gone.signal);
    const ask = (remoteAddress: string) =>
      http.app.inject({ url: "/stranger", remoteAddress, signal: gone.signal }).catch(() => undefined);
    const many = Array.from({ length: STRANGER_CALLS_IN_FLIGHT_MAX + STRANGER_CALLS_WAITING_MAX }, (_, at) =>
      ask(`2001:db8::${at.toString(16)}`),
    );
    await expect
      .poll(
        async () =>
          (await http.app.inject({ url: "/open", remoteAddress: "2001:db8::ffff" })).json<{ code?: string }>().code,
      )
      .toBe("limited");
    expect((await http.app.inject({ url: "/open", remoteAddress: "2001:db8:0:1::1" })).json()).toMatchObject({
      status: "ok",
    });
    expect((await http.app.inject({ url: "/open", remoteAddress: "192.0.2.1" })).json()).toMatchObject({
      status: "ok",
    });
    gone.abort();
    await Promise.all(many);
  });

  test("what a socket says is held up to the end of its message, and refused where there is no memory for it", async () => {
    const source = new PassThrough();
    const memory = new BodyMemory(1);
    let refused = 0;
    const turn = (): Promise<void> => Promise.resolve();
    takeInTurns(source, { turn, memory: memory.open("192.0.2.1"), onRefused: () => refused++ });
    // Frames that belong to no message, as pings, count for no more than the longest message.
    source.write(Buffer.alloc(2 * WEBSOCKET_RECEIVED_MAX_BYTES));
    await expect.poll(() => memory.bytes).toBe(WEBSOCKET_RECEIVED_MAX_BYTES);
    memory.open("192.0.2.1").hold(400 * 1_024);
    source.write(Buffer.alloc(WEBSOCKET_RECEIVED_MAX_BYTES));
    await expect.poll(() => refused).toBe(1);
    expect(source.isPaused()).toBe(true);
    source.destroy();
    await expect.poll(() => memory.bytes).toBe(400 * 1_024);
  });

  test("what a socket says is taken in pieces, one in a turn, in order, and no more is read meanwhile", async () => {
    const source = new PassThrough();
    const turns: (() => void)[] = [];
    const taken: Buffer[] = [];
    source.on("data", (piece: Buffer) => taken.push(piece));
    const memory = new BodyMemory();
    const turn = (): Promise<void> => new Promise((resolve) => turns.push(resolve));
    const ended = takeInTurns(source, { turn, memory: memory.open("192.0.2.1"), onRefused: () => {} });
    const sent = Buffer.from(Array.from({ length: WEBSOCKET_PIECE_BYTES * 3 + 1 }, (_, at) => at % 251));
    source.write(sent.subarray(0, WEBSOCKET_PIECE_BYTES + 1));
    source.write(sent.subarray(WEBSOCKET_PIECE_BYTES + 1));
    await expect.poll(() => turns.length).toBe(1);
    expect(source.isPaused()).toBe(true);
    while (Buffer.concat(taken).length < sent.length) {
      const pieces = taken.length;
      await expect.poll(() => turns.length).toBe(1);
      turns.shift()?.();
      await expect.poll(() => taken.length).toBe(pieces + 1);
    }
    expect(Buffer.concat(taken).equals(sent)).toBe(true);
    expect(Math.max(...taken.map(({ length }) => length))).toBe(WEBSOCKET_PIECE_BYTES);
    expect(memory.bytes).toBe(sent.length);
    ended();
    expect(memory.bytes).toBe(0);
  });
});

describe("offers of HTTP/2", () => {
  test("are ignored each, however many come at once", async () => {
    const offer =
      "Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    const paths = ["/healthz", `/echo-none`, "/healthz", "/openapi.json", "/healthz"];
    const last = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const answer = await exchange(paths.map((path) => `GET ${path} HTTP/1.1\r\n${offer}`).join("") + last);
    expect(answer.match(/HTTP\/1\.1 (200|500)/g)).toHaveLength(6);
  });

  test("are ignored, with and without a body", async () => {
    const offer = "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    const get = await exchange(
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${offer}\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(get.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    const body = `{"name":"a"}`;
    const socket = await open();
    socket.write(
      `POST /echo?sessionid=${session} HTTP/1.1\r\nHost: x\r\n${offer}Content-Type: text/plain\r\nContent-Length: ${String(body.length)}\r\n\r\n`,
    );
    const first = once(socket, "data");
    socket.write(body);
    expect(String((await first)[0])).toContain(`"message":{"name":"a"}`);
    socket.destroy();
  });
});

describe("streams", () => {
  test("an error after the head ends the connection instead of a false end", async () => {
    const request = httpRequest({ port, path: `/stream?failAfter=5&sessionid=${session}` });
    request.end();
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    let text = "";
    const reading = (async () => {
      for await (const chunk of response) text += String(chunk);
    })();
    await expect(reading).rejects.toThrow("aborted");
    expect(text.startsWith(`{"status":"ok","message":[`)).toBe(true);
    expect(() => JSON.parse(text) as unknown).toThrow();
  });

  test("who does not read is not produced for, and who goes away ends the production", async () => {
    const socket = await open();
    socket.pause();
    socket.write(`GET /stream?failAfter=100000&sessionid=${session} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect.poll(() => produced.pages).toBeGreaterThan(0);
    // Socket buffers on both sides hold some megabytes; ten gigabytes would come without back-pressure.
    let before = -1;
    await expect
      .poll(
        () => {
          const still = produced.pages === before;
          before = produced.pages;
          return still;
        },
        { interval: 200 },
      )
      .toBe(true);
    expect(produced.pages).toBeLessThan(500);
    socket.destroy();
    await expect.poll(() => produced.ended).toBe(true);
    expect(produced.aborted).toBe("cancelled");
  });

  test("HEAD of a long answer is a head, and nothing is produced for it", async () => {
    const answer = await exchange(
      `HEAD /stream?failAfter=100000&sessionid=${session} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(answer.endsWith("\r\n\r\n")).toBe(true);
    await expect.poll(() => produced.ended).toBe(true);
    expect(produced.pages).toBeLessThan(500);
  });

  test("a handler is told when its client goes away", async () => {
    produced.aborted = undefined;
    const socket = await open();
    socket.write(`GET /wait?sessionid=${session} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect
      .poll(async () => (await http.app.inject({ url: "/metrics" })).body)
      .toContain(`odp_http_calls_in_flight{tenant="matrix"} 1`);
    socket.destroy();
    await expect.poll(() => produced.aborted).toBe("cancelled");
    await expect
      .poll(async () => (await http.app.inject({ url: "/metrics" })).body)
      .not.toContain(`odp_http_calls_in_flight{tenant="matrix"}`);
  });
});
