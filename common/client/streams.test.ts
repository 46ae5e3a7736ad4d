import { expect, test } from "vitest";
import { OdpClient, type OdpError, type Socket } from "./index.ts";
import { linesOf } from "./streams.ts";
import { CLIENT_FRAMES_MAX } from "../limits.ts";
import { clientOf, failure, problem, send } from "../../test/helpers/http/misbehaving-server.ts";

/** Streams of the client against servers that misbehave: uploads, downloads, lines, events, frames. */

test("an upload of a stream ends with its caller, whose source is told; its texts arrive unchanged", async () => {
  let isClosed = false;
  async function* endless() {
    try {
      for (;;) yield await Promise.resolve(new Uint8Array(64 * 1024));
    } finally {
      isClosed = true;
    }
  }
  const leave = new AbortController();
  const { client } = await clientOf((request) => request.once("data", () => leave.abort()));
  const uploadfile = [{ name: "endless", content: endless() }];
  const call = client.call("postFsByPath", { path: { path: "x" }, body: { uploadfile } }, { signal: leave.signal });
  expect(await failure(call)).toMatchObject({ code: "cancelled" });
  await expect.poll(() => isClosed).toBe(true);
});

test("a failure that comes while an upload is sent is told, and a stream is never sent twice", async () => {
  async function* twice() {
    yield await Promise.resolve(new Uint8Array(8));
    yield new Uint8Array(8);
  }
  const { client, requests } = await clientOf((request, response) =>
    request.resume().on("end", () => send(response, 503, problem("unavailable"))),
  );
  const body = { uploadfile: [{ name: "a", content: twice() }] };
  expect(await failure(client.call("postFsByPath", { path: { path: "x" }, body }))).toMatchObject({
    code: "unavailable",
  });
  expect(requests).toHaveLength(1);
});

test("lines are read at the pace of the reader; one that stops midway is no end", async () => {
  const { client } = await clientOf((_request, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write('{"sequence":1}\n\n{"seq', () => setImmediate(() => response.destroy()));
  });
  const read: unknown[] = [];
  const reading = async () => {
    for await (const line of client.lines("getAuditExport")) read.push(line);
  };
  expect(await failure(reading())).toMatchObject({ code: "unavailable" });
  expect(read).toEqual([{ sequence: 1 }]);
});

test("a silent stream is given up, and one whose reader leaves is closed", async () => {
  let closed: () => void = () => undefined;
  const isClosed = new Promise<void>((resolve) => (closed = resolve));
  const { client } = await clientOf((request, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" }).write('{"sequence":1}\n');
    request.socket.once("close", closed);
  });
  const reading = async () => {
    for await (const line of client.lines("getAuditExport", {}, { silenceMs: 50 }))
      expect(line).toEqual({ sequence: 1 });
  };
  expect(await failure(reading())).toMatchObject({ code: "deadline" });
  await isClosed;
  for await (const line of client.lines("getAuditExport")) if (line) break;
});

test("events go on after the last one when the connection breaks, and end with the event end", async () => {
  const told = [
    ['id: 1\ndata: {"to":1}\n\n', 'id: 2\ndata: {"to":2}\n\nid: 3\ndata: {"t'],
    [": heartbeat\n\n", 'id: 3\ndata: {"to":\ndata: 3}\n\n', "id: end\nevent: end\ndata: {}\n\n"],
  ];
  const { client, requests } = await clientOf((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write("retry: 1\n\n");
    for (const text of told[requests.length - 1] ?? []) response.write(text);
    setImmediate(() => response.destroy());
  });
  const path = { runid: "r", host: "h" };
  const read: unknown[] = [];
  for await (const { id, data } of client.events("getJobOutputByRunidByHost", { path })) read.push([id, data]);
  expect(read).toEqual([
    ["1", { to: 1 }],
    ["2", { to: 2 }],
    ["3", { to: 3 }],
    ["end", {}],
  ]);
  expect(requests.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2"]);
});

test("events that never come are asked for a few times, and a refusal once", async () => {
  const { client, requests } = await clientOf((request, response) => {
    if (request.url?.includes("denied")) return send(response, 403, problem("denied"));
    response.writeHead(200, { "content-type": "text/event-stream" }).end("retry: 1\n\n");
  });
  const follow = async (name: string) => {
    for await (const event of client.events("getConsolelogRuleFollow", { query: { name } }))
      expect(event).toBeUndefined();
  };
  expect(await failure(follow("/quiet"))).toMatchObject({ code: "unavailable" });
  expect(requests).toHaveLength(4);
  expect(await failure(follow("/denied"))).toMatchObject({ code: "denied" });
  expect(requests).toHaveLength(5);
});

class FakeSocket implements Socket {
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  onerror: Socket["onerror"] = null;
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
}

test("frames wait for a slow reader up to a bound, and the reason of a close is told", async () => {
  const sockets: FakeSocket[] = [];
  const openSocket = (): Socket => {
    const socket = new FakeSocket();
    sockets.push(socket);
    return socket;
  };
  const client = new OdpClient({ url: "http://odp.example", openSocket });
  const slow = client.socket("/config/watch");
  const first = slow.next();
  sockets[0]?.onopen?.({} as never);
  for (let frame = 0; frame <= CLIENT_FRAMES_MAX + 1; frame++)
    sockets[0]?.onmessage?.({ data: '{"ready":true}' } as never);
  expect((await first).value).toEqual({ ready: true });
  const rest = async () => {
    for await (const frame of slow) expect(frame).toEqual({ ready: true });
  };
  expect(await failure(rest())).toMatchObject({ code: "too_large", details: { limit: "CLIENT_FRAMES_MAX" } });
  expect(sockets[0]?.isClosed).toBe(true);

  const ends = [
    [1000, "over"],
    [1008, "signed out"],
    [1008, "not there, or not permitted"],
    [1001, "the controller stops"],
    [1006, ""],
  ] as const;
  const codes: unknown[] = [];
  for (const [code, reason] of ends) {
    const next = client.socket("/config/watch").next();
    sockets.at(-1)?.onclose?.({ code, reason } as never);
    codes.push(
      await next.then(
        ({ done }) => done,
        (error: OdpError) => error.code,
      ),
    );
  }
  expect(codes).toEqual([true, "signin", "denied", "unavailable", "unavailable"]);
  const leave = new AbortController();
  const left = failure(client.socket("/config/watch", {}, { signal: leave.signal }).next());
  leave.abort();
  expect(await left).toMatchObject({ code: "cancelled" });
  expect(sockets.at(-1)?.isClosed).toBe(true);
});

test("an unread download closes its connection when it is cancelled", async () => {
  let isClosed = (): void => undefined;
  const closed = new Promise<void>((resolve) => (isClosed = resolve));
  const { client } = await clientOf((request, response) => {
    request.socket.once("close", () => isClosed());
    response.writeHead(200, { "content-type": "application/octet-stream" }).write("a");
  });
  const file = await client.download("getFsByPath", { path: { path: "a" } });
  await file.body.cancel();
  await closed;
});

test("the 502 of a proxy is no file and no line, though it is JSON", async () => {
  const { client } = await clientOf((_request, response) => send(response, 502, { message: "Bad Gateway" }), {
    attempts: 1,
  });
  const path = { path: { path: "a" } };
  expect(await failure(client.download("getFsByPath", path))).toMatchObject({ code: "unavailable", status: 502 });
  expect(await failure(client.lines("getAuditExport", { query: { from: 0 } }).next())).toMatchObject({ status: 502 });
});

test("an upload whose source fails is not told as a connection that was refused", async () => {
  const { client } = await clientOf((request) => void request.resume());
  async function* source(): AsyncGenerator<Uint8Array> {
    throw Object.assign(new Error("no such file"), { code: "ECONNREFUSED", syscall: "connect" });
  }
  const body = { uploadfile: [{ name: "a", content: source() }] };
  const error = await failure(client.call("postFsByPath", { path: { path: "a" }, body }));
  expect(error).toMatchObject({ code: "unknown_outcome", isUndone: false, cause: { message: "no such file" } });
});

test("lines are whole whatever pieces they come in: half characters, half line ends", async () => {
  const bytes = new TextEncoder().encode("ä\r\n€b\n\nlast");
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (const byte of bytes) yield Uint8Array.of(byte);
  }
  const lines: string[] = [];
  for await (const line of linesOf(pieces())) lines.push(line);
  expect(lines).toEqual(["ä", "€b", "", "last"]);
});
