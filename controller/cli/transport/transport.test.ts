import { createServer as createTlsServer } from "node:https";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { OdpClient, type ClientOptions, type OdpError } from "../../../common/client/index.ts";
import { CLI_CONNECT_MAX_MS } from "../../../common/limits.ts";
import { FakeAuthority } from "../../../test/helpers/hosts/fake-authority.ts";
import { clientOf, failure, send } from "../../../test/helpers/http/misbehaving-server.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { Transport } from "./transport.ts";

/** The transport of the command line behaves as the `fetch` of Node, by which each case is also made. */

const OK = '{"status":"ok","message":["ä"]}';
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

/** Listens on loopback until the test ends. Returns the port. */
async function portOf(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => undefined)));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** A server that answers the head of a request by these bytes, and then closes the connection. */
const rawPort = (answer: string | Uint8Array): Promise<number> =>
  portOf(createServer((socket) => void socket.once("data", () => socket.end(answer))));

const CHANGE = { body: { key: "/a", value: "1" } };

interface Seen extends Partial<Pick<OdpError, "code" | "isUndone" | "status">> {
  readonly message: string;
}

/** Outcomes that a caller sees of two calls: a read and a change. */
async function seen(options: Partial<ClientOptions> & { readonly url: string }): Promise<readonly Seen[]> {
  const client = new OdpClient({ token: "t", attempts: 1, ...options });
  const told = async (work: Promise<unknown>): Promise<Seen> => {
    try {
      return { message: JSON.stringify(await work) };
    } catch (error) {
      const { code, message, isUndone, status } = error as OdpError;
      return { code, message, isUndone, status };
    }
  };
  return [await told(client.call("getHost")), await told(client.call("postConfigSet", CHANGE))];
}

const deflated = gzipSync(OK);

test.each([
  ["a whole answer", `${HEAD}content-length: ${Buffer.byteLength(OK)}\r\n\r\n${OK}`],
  ["an answer until the connection ends", `${HEAD}connection: close\r\n\r\n${OK}`],
  ["no answer", ""],
  ["half a head", HEAD],
  ["half a body", `${HEAD}content-length: 1000\r\n\r\n${OK}`],
  ["half a chunk", `${HEAD}transfer-encoding: chunked\r\n\r\nff\r\n${OK}`],
  ["a redirect", "HTTP/1.1 307 Elsewhere\r\nlocation: http://elsewhere.example/\r\ncontent-length: 0\r\n\r\n"],
  ["no content", "HTTP/1.1 204 None\r\n\r\n"],
  ["a refusal of a proxy", "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<h1>"],
  [
    "a compressed answer",
    Buffer.concat([
      Buffer.from(`${HEAD}content-encoding: gzip\r\ncontent-length: ${deflated.length}\r\n\r\n`),
      deflated,
    ]),
  ],
  [
    "a broken compressed answer",
    `${HEAD}content-encoding: gzip\r\ncontent-length: ${Buffer.byteLength(OK)}\r\n\r\n${OK}`,
  ],
  [
    "a coding that is not known",
    `${HEAD}content-encoding: zip\r\ncontent-length: ${Buffer.byteLength(OK)}\r\n\r\n${OK}`,
  ],
])("%s is told as by the fetch of Node", async (_name, answer) => {
  const url = `http://127.0.0.1:${await rawPort(answer)}`;
  expect(await seen({ url, fetch: new Transport(realClock).fetch })).toEqual(await seen({ url }));
});

test("an answer that is not HTTP is no answer of a controller", async () => {
  const url = `http://127.0.0.1:${await rawPort("220 mail.example ESMTP\r\n")}`;
  const [read] = await seen({ url, fetch: new Transport(realClock).fetch });
  expect(read).toMatchObject({ code: "unavailable", isUndone: false });
  expect(read?.message).toContain("the answer is not HTTP (Expected HTTP/");
});

test.each(["127.0.0.1", "localhost", "odp.invalid"])(
  "a controller that is away is told as by the fetch of Node, and a change was certainly not made: %s",
  async (host) => {
    const server = createServer();
    const port = await portOf(server);
    await new Promise((resolve) => server.close(resolve));
    const url = `http://${host}:${port}`;
    const own = await seen({ url, fetch: new Transport(realClock).fetch });
    expect(own).toEqual(await seen({ url }));
    expect(own).toMatchObject([{ isUndone: true }, { isUndone: true }]);
  },
);

test("a certificate that is not trusted is told as by the fetch of Node, and a change was certainly not made", async () => {
  const server = createTlsServer(await (await FakeAuthority.make()).serverPair());
  const url = `https://127.0.0.1:${await portOf(server)}`;
  const [own, theirs] = [await seen({ url, fetch: new Transport(realClock).fetch }), await seen({ url })];
  expect(own.map(({ message }) => message)).toEqual(theirs.map(({ message }) => message));
  expect(own).toMatchObject([
    { code: "unavailable", isUndone: true },
    { code: "unavailable", isUndone: true },
  ]);
});

test("a port without TLS, and one with TLS and without https, are told", async () => {
  const port = await rawPort("HTTP/1.1 400 Bad Request\r\n\r\n");
  const [plain] = await seen({ url: `https://127.0.0.1:${port}`, fetch: new Transport(realClock).fetch });
  expect(plain?.message).toContain("wrong version number");
  const server = createTlsServer(await (await FakeAuthority.make()).serverPair());
  const url = `http://127.0.0.1:${await portOf(server)}`;
  expect(await seen({ url, fetch: new Transport(realClock).fetch })).toEqual(await seen({ url }));
});

test("a connection that is not made in time is given up, and a change was certainly not made", async () => {
  const waits: { readonly ms: number; readonly end: () => void }[] = [];
  const clock = { after: (ms: number, end: () => void) => (waits.push({ ms, end }), () => undefined) };
  // It accepts connections, and does not begin TLS.
  const server = createServer();
  const url = `https://127.0.0.1:${await portOf(server)}`;
  server.once("connection", () => waits[0]?.end());
  const client = new OdpClient({ url, token: "t", attempts: 1, fetch: new Transport(clock).fetch });
  expect(await failure(client.call("postConfigSet", CHANGE))).toMatchObject({
    code: "unavailable",
    isUndone: true,
    message: `${url} does not answer: no connection within ${CLI_CONNECT_MAX_MS} ms.`,
  });
  expect(waits.map(({ ms }) => ms)).toEqual([CLI_CONNECT_MAX_MS]);
});

test("calls share one connection, one after another, and have several at once", async () => {
  let connections = 0;
  const { client, server } = await clientOf(
    (_request, response) => send(response, 200, { status: "ok", message: [] }),
    {
      fetch: new Transport(realClock).fetch,
    },
  );
  server.on("connection", () => connections++);
  for (let call = 0; call < 5; call++) await client.call("getHost");
  expect(connections).toBe(1);
  await Promise.all(Array.from({ length: 3 }, () => client.call("getHost")));
  expect(connections).toBe(3);
});

/** So many pieces that no buffer holds them. */
const PIECES = 2_000;

test("an upload ends when its answer is whole, although the server would read on: its source is told", async () => {
  let [pieces, isClosed] = [0, false];
  async function* source() {
    try {
      for (; pieces < PIECES; pieces++) yield await Promise.resolve(new Uint8Array(64 * 1024));
    } finally {
      isClosed = true;
    }
  }
  const text = '{"code":"too_large","detail":"It is too large."}';
  const head = `HTTP/1.1 413 Large\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`;
  const port = await portOf(
    createServer((socket) => void socket.once("data", () => socket.write(head + text)).resume()),
  );
  const url = `http://127.0.0.1:${port}`;
  const client = new OdpClient({ url, token: "t", fetch: new Transport(realClock).fetch });
  const uploadfile = [{ name: "long", content: source() }];
  const call = client.call("postFsByPath", { path: { path: "x" }, body: { uploadfile } });
  expect(await failure(call)).toMatchObject({ code: "too_large", status: 413 });
  await expect.poll(() => isClosed).toBe(true);
  expect(pieces).toBeLessThan(PIECES);
});

test("the source of an upload is read at the pace of the server", async () => {
  let pieces = 0;
  async function* source() {
    for (; pieces < PIECES; pieces++) yield await Promise.resolve(new Uint8Array(64 * 1024));
  }
  const port = await portOf(createServer((socket) => void socket.pause()));
  const url = `http://127.0.0.1:${port}`;
  const client = new OdpClient({ url, token: "t", fetch: new Transport(realClock).fetch });
  const uploadfile = [{ name: "long", content: source() }];
  const call = client.call("postFsByPath", { path: { path: "x" }, body: { uploadfile } }, { timeoutMs: 300 });
  expect(await failure(call)).toMatchObject({ code: "deadline" });
  expect(pieces).toBeLessThan(PIECES);
});

test("a body arrives as it is: text, bytes, a Blob, a stream", async () => {
  const { client } = await clientOf(
    (request, response) => {
      const { "content-length": length } = request.headers;
      let text = "";
      request.setEncoding("utf8").on("data", (data: string) => (text += data));
      request.on("end", () =>
        send(response, 200, { status: "ok", message: [text, length].filter((part) => part !== undefined) }),
      );
    },
    { fetch: new Transport(realClock).fetch },
  );
  async function* stream() {
    yield await Promise.resolve(new TextEncoder().encode("ä"));
  }
  const sent = [];
  for (const body of ["ä", new TextEncoder().encode("ä"), new Blob(["ä"]), stream()])
    sent.push(await client.call("postScriptExecJs", { body }));
  expect(sent).toEqual([["ä", "2"], ["ä", "2"], ["ä", "2"], ["ä"]]);
});

test("a source that fails before there is a connection is no sign of a controller that is away", async () => {
  const { client } = await clientOf((request) => void request.resume(), { fetch: new Transport(realClock).fetch });
  async function* source(): AsyncGenerator<Uint8Array> {
    throw Object.assign(new Error("no such file"), { code: "ECONNREFUSED", syscall: "connect" });
  }
  const body = { uploadfile: [{ name: "a", content: source() }] };
  const error = await failure(client.call("postFsByPath", { path: { path: "a" }, body }));
  expect(error).toMatchObject({ code: "unknown_outcome", isUndone: false, cause: { message: "no such file" } });
});

test("a download is read at the pace of its reader, and one that is left closes its connection", async () => {
  let closed: () => void = () => undefined;
  const isClosed = new Promise<void>((resolve) => (closed = resolve));
  let written = 0;
  const { client } = await clientOf(
    (request, response) => {
      request.socket.once("close", closed);
      response.writeHead(200, { "content-type": "application/octet-stream" });
      const more = (): void => {
        while (response.write(new Uint8Array(1024 * 1024))) written++;
        response.once("drain", more);
      };
      more();
    },
    { fetch: new Transport(realClock).fetch },
  );
  const file = await client.download("getFsByPath", { path: { path: "a" } });
  for await (const piece of file) if (piece.length > 0) break;
  await isClosed;
  expect(written).toBeLessThan(64);
});

test("a call that its caller leaves ends at once: before the answer, and within it", async () => {
  const { client } = await clientOf(
    (request, response) => {
      if (request.url?.startsWith("/audit") === true)
        response.writeHead(200, { "content-type": "application/x-ndjson" }).write('{"sequence":1}\n');
    },
    { fetch: new Transport(realClock).fetch },
  );
  const [before, within] = [new AbortController(), new AbortController()];
  const call = failure(client.call("postConfigSet", CHANGE, { signal: before.signal }));
  before.abort();
  expect(await call).toMatchObject({ code: "cancelled" });
  const reading = async (): Promise<void> => {
    for await (const line of client.lines("getAuditExport", {}, { signal: within.signal }))
      if (line !== undefined) within.abort();
  };
  expect(await failure(reading())).toMatchObject({ code: "cancelled" });
  const silent = async (): Promise<void> => {
    for await (const line of client.lines("getAuditExport", {}, { silenceMs: 20 }))
      expect(line).toEqual({ sequence: 1 });
  };
  expect(await failure(silent())).toMatchObject({ code: "deadline" });
});
