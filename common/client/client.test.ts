import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { OdpClient, OdpError, type ClientOptions, type Socket } from "./index.ts";
import { linesOf } from "./streams.ts";
import { CLIENT_FRAMES_MAX, CLIENT_RETRIES_MAX } from "../limits.ts";

/** The client against servers that misbehave. `test/openapi/client.test.ts` has it call a real controller. */

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** A client of a server, without pauses between attempts. */
async function clientOf(listener: RequestListener, options: Partial<ClientOptions> = {}) {
  const requests: IncomingMessage[] = [];
  server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { requests, url, client: new OdpClient({ url, random: { next: () => 0 }, token: "t", ...options }) };
}

function send(response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

const ok = (response: ServerResponse, message: unknown): void => send(response, 200, { status: "ok", message });
const problem = (code: string) => ({ type: `urn:odp:error:${code}`, code, detail: `It is ${code}.` });
const failure = (work: Promise<unknown>): Promise<OdpError> =>
  work.then(
    () => Promise.reject(new Error("It succeeded.")),
    (error: unknown) => (error instanceof OdpError ? error : Promise.reject(error as Error)),
  );
const change = { body: { key: "/a", value: "1" } };

test("a read is repeated until it succeeds, a change only if the controller says that nothing was done", async () => {
  const answers = ["unavailable", "unknown_outcome", "limited", undefined];
  const { client, requests } = await clientOf((_request, response) => {
    const code = answers[requests.length - 1];
    if (code === undefined) ok(response, []);
    else send(response, 503, problem(code));
  });
  expect(await client.call("getHost")).toEqual([]);
  expect(requests).toHaveLength(4);
  requests.length = 0;
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({
    code: "unknown_outcome",
    isUndone: false,
  });
  expect(requests).toHaveLength(2);
});

test("statements, scripts and jobs are not repeated after any answer, unless the caller says that it does no harm", async () => {
  const { client, requests } = await clientOf((_request, response) => send(response, 503, problem("unavailable")));
  const query = { mql: "select 1" };
  const path = { path: "backup@ops" };
  await failure(client.call("getMxobjectMql", { query }));
  await failure(client.call("getJobByPath", { path, query: { param: "{}" } }));
  await failure(client.call("postScriptExecJs", { body: "OUTPUT = 1" }));
  expect(requests).toHaveLength(3);
  await failure(client.call("getMxobjectMql", { query }, { isRepeatable: true }));
  expect(requests).toHaveLength(7);
});

test("a connection that breaks after the call was sent leaves a change unknown, and it is not repeated", async () => {
  const { client, requests } = await clientOf((request) => request.socket.destroy());
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({
    code: "unknown_outcome",
    isUndone: false,
  });
  expect(requests).toHaveLength(1);
  expect(await failure(client.call("getHost"))).toMatchObject({ code: "unavailable" });
  expect(requests).toHaveLength(5);
});

test("a refused connection is certain: a change is repeated, and nothing was done", async () => {
  let attempts = 0;
  const counted: typeof fetch = (to, init) => {
    attempts++;
    return fetch(to, init);
  };
  const { client } = await clientOf(() => undefined, { fetch: counted as never });
  await new Promise((resolve) => server?.close(resolve));
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({ code: "unavailable", isUndone: true });
  expect(attempts).toBe(4);
});

test("a client that only fails adds few calls: its repetitions are bounded, over all calls", async () => {
  const { client, requests } = await clientOf((_request, response) => send(response, 503, problem("unavailable")));
  await Promise.all(Array.from({ length: 20 }, () => failure(client.call("getHost"))));
  expect(requests).toHaveLength(20 + CLIENT_RETRIES_MAX);
});

test("Retry-After is waited for, unless the deadline comes first", async () => {
  const { client, requests } = await clientOf(
    (_request, response) => send(response, 429, problem("limited"), { "retry-after": "3600" }),
    { timeoutMs: 60_000 },
  );
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({
    code: "limited",
    retryAfterMs: 3_600_000,
  });
  expect(requests).toHaveLength(1);
});

test("a server that does not answer is left at the deadline, and a caller may leave before", async () => {
  const { client } = await clientOf(() => undefined);
  expect(await failure(client.call("getHost", {}, { timeoutMs: 20 }))).toMatchObject({ code: "deadline" });
  const leave = new AbortController();
  const call = failure(client.call("getHost", {}, { signal: leave.signal }));
  leave.abort(new Error("no longer needed"));
  expect(await call).toMatchObject({ code: "cancelled", cause: { message: "no longer needed" } });
  expect(await failure(client.call("getHost", {}, { signal: AbortSignal.abort() }))).toMatchObject({
    code: "cancelled",
  });
});

test("answers that no controller gives are told as such: pages, redirects, broken JSON, other lengths", async () => {
  const { client, requests } = await clientOf(
    (request, response) => {
      const { pathname } = new URL(request.url ?? "", "http://odp.example");
      if (pathname === "/host") response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>");
      else if (pathname === "/group") response.writeHead(302, { location: "https://elsewhere.example/" }).end();
      else if (pathname === "/pattern")
        response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok","message":NaN}');
      else
        response
          .writeHead(200, { "content-type": "application/json", "content-length": "1000" })
          .write('{"status":', () => response.destroy());
    },
    { attempts: 1 },
  );
  const page = await failure(client.call("getHost"));
  expect(page).toMatchObject({ code: "unavailable", message: expect.stringContaining("text/html") as string });
  expect(await failure(client.call("getGroup"))).toMatchObject({
    message: expect.stringContaining("https://elsewhere.example/") as string,
  });
  expect(await failure(client.call("getPattern"))).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("NaN") as string,
  });
  expect(await failure(client.call("getJob"))).toMatchObject({ code: "unavailable" });
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({ code: "unknown_outcome" });
  expect(requests).toHaveLength(5);
});

test("an answer beyond the bound is not read to its end", async () => {
  const { client } = await clientOf(
    (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = (): void => void response.write("[".repeat(60_000), more);
      more();
    },
    { maxBytes: 100_000 },
  );
  expect(await failure(client.call("getHost"))).toMatchObject({ code: "too_large", details: { limit: "maxBytes" } });
});

test("digits beyond 2^53 are kept both ways, and numbers that JSON lacks are refused before anything is sent", async () => {
  const { client, requests } = await clientOf((request, response) => {
    let text = "";
    request.on("data", (data: Buffer) => (text += data.toString()));
    request.on("end", () =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(`{"status":"ok","message":${JSON.parse(text).values[0]},"meta":{}}`),
    );
  });
  const body = { mql: "select ?", values: [9007199254740993n] };
  expect(await client.call("postMxobjectMql", { body })).toBe("9007199254740993");
  const refused = failure(client.call("postMxobjectMql", { body: { ...body, values: [Number.NaN] } }));
  expect(await refused).toMatchObject({ code: "invalid", isUndone: true });
  expect(requests).toHaveLength(1);
});

test("a path names what it says: its slashes stay, all else is encoded, and no step leads elsewhere", async () => {
  const { client, requests } = await clientOf((_request, response) => ok(response, ""));
  await client.call("deleteFsByPath", { path: { path: "/a b/c%2Fd/ü?#.txt" } });
  await client.call("getHostByName", { path: { name: "a/b" } });
  expect(requests.map(({ url }) => url)).toEqual(["/fs/a%20b/c%252Fd/%C3%BC%3F%23.txt", "/host/a%2Fb"]);
  for (const path of ["", "/", "../host/web-1", "a/./b", "a/..", "\ud800"])
    expect(await failure(client.call("deleteFsByPath", { path: { path } }))).toMatchObject({ code: "invalid" });
  expect(requests).toHaveLength(2);
});

test("credentials are sent as controllers read them, and an address with others is refused", async () => {
  const { requests, url } = await clientOf((_request, response) => ok(response, "0123"));
  const signed = new OdpClient({ url, user: "matrix.jürgen", password: "π:€" });
  await signed.call("getHost");
  const [, basic = ""] = requests[0]?.headers.authorization?.split(" ") ?? [];
  expect(Buffer.from(basic, "base64").toString("utf8")).toBe("matrix.jürgen:π:€");
  expect(() => new OdpClient({ url: "http://u:p@odp.example" })).toThrow("user name");
  expect(() => new OdpClient({ url: "odp.example" })).toThrow("no address");
  expect(() => new OdpClient({ url, token: "t", user: "u", password: "p" })).toThrow("Give one");
  const person = new OdpClient({ url: `${url}/behind/a/proxy/` });
  await person.signIn({ username: "ann", password: "p" });
  await person.call("getHost");
  expect(requests.at(-1)).toMatchObject({ url: "/behind/a/proxy/host", headers: { cookie: "matrixSession=0123" } });
});

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

test("what runs jobs, policies or deployments is not repeated after any answer", async () => {
  const { client, requests } = await clientOf((_request, response) => send(response, 503, problem("unavailable")));
  await failure(client.call("postJobRetryByRunid", { path: { runid: "r" } }));
  await failure(
    client.call("postMonitoringPolicyDeployByName", { path: { name: "p" }, body: { host: ["h"] } } as never),
  );
  await failure(
    client.call("postMonitoringPolicyUndeployByName", { path: { name: "p" }, body: { host: ["h"] } } as never),
  );
  expect(requests).toHaveLength(3);
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

test("what a platform would not send is refused before anything is sent", async () => {
  const { client, requests, url } = await clientOf((_request, response) => ok(response, []));
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const invalid = { code: "invalid", isUndone: true };
  expect(await failure(new OdpClient({ url, token: "€" }).call("getHost"))).toMatchObject(invalid);
  expect(await failure(client.call("postHost", { body: circle as never }))).toMatchObject(invalid);
  expect(await failure(client.call("getConfigGet", { query: { key: "/\ud800" } }))).toMatchObject(invalid);
  for (const address of [`${url}/?`, `${url}/#`]) expect(() => new OdpClient({ url: address })).toThrow(OdpError);
  expect(await new OdpClient({ url: `${url}/ `, token: "t" }).call("getHost")).toEqual([]);
  expect(requests).toHaveLength(1);
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

test("ten calls that succeed give back one repetition", async () => {
  let fails = true;
  const { client, requests } = await clientOf((_request, response) =>
    fails ? send(response, 503, problem("unavailable")) : ok(response, []),
  );
  await Promise.all(Array.from({ length: 20 }, () => failure(client.call("getHost"))));
  fails = false;
  for (let made = 0; made < 10; made++) await client.call("getHost");
  fails = true;
  requests.length = 0;
  await failure(client.call("getHost"));
  expect(requests).toHaveLength(2);
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
