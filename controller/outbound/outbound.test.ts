import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  SCRIPT_HTTP_DEADLINE_MS,
  SCRIPT_HTTP_MAX_BYTES,
  SCRIPT_HTTP_REDIRECTS_MAX,
  SCRIPT_HTTP_TENANT_AT_ONCE,
} from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { OpenAddresses } from "./addresses.ts";
import { Outbound, type OutboundRequest, type Resolve } from "./index.ts";

/** The open server listens here, and a closed one at 127.0.0.1, at the same port. */
const OPEN = "127.0.0.2";
const CLOSED = "127.0.0.1";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
let answer: Handler;
let reachedClosed = 0;
let port = 0;

const open = createServer((request, response) => answer(request, response));
const closed = createServer((_request, response) => {
  reachedClosed++;
  response.end("secret");
});
const listening = (server: typeof open, host: string, at: number): Promise<void> =>
  new Promise((resolve) => server.listen(at, host, resolve));

beforeAll(async () => {
  await listening(open, OPEN, 0);
  port = (open.address() as AddressInfo).port;
  await listening(closed, CLOSED, port);
});
beforeEach(() => {
  reachedClosed = 0;
  answer = (_request, response) => response.end("hello");
});
afterAll(() => {
  for (const server of [open, closed]) {
    server.closeAllConnections();
    server.close();
  }
});

function outbound(options: { readonly resolve?: Resolve; readonly clock?: TestClock } = {}): Outbound {
  return new Outbound({ networks: [`${OPEN}/32`], clock: new TestClock(), ...options });
}

const NEVER = new AbortController().signal;
const at = (host: string, path = "/"): string => `http://${host}:${port}${path}`;
const send = (request: Partial<OutboundRequest> = {}, by = outbound()) =>
  by.send("matrix", { method: "GET", url: at(OPEN), ...request }, NEVER);

/** Answers a name by one address after the other, the last one from then on. */
function resolving(...addresses: readonly string[]): Resolve {
  let next = 0;
  return (host) => {
    expect(host).toBe("name.example");
    const address = addresses[Math.min(next++, addresses.length - 1)] ?? "";
    return Promise.resolve([{ address, family: address.includes(":") ? 6 : 4 }]);
  };
}

describe("which addresses are open", () => {
  const nothing = new OpenAddresses([]);
  test.each([
    "127.0.0.1",
    "127.255.0.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
    "2001::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "not an address",
  ])("%s is closed", (address) => expect(nothing.includes(address)).toBe(false));

  test.each(["8.8.8.8", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700::1111"])("%s is open", (address) =>
    expect(nothing.includes(address)).toBe(true),
  );

  test("what the administrator opens is open in every way to write it", () => {
    const some = new OpenAddresses(["10.0.0.0/8", "fd00::/8"]);
    expect(["10.1.2.3", "::ffff:10.1.2.3", "fd12::1"].every((address) => some.includes(address))).toBe(true);
    expect(some.includes("127.0.0.1")).toBe(false);
  });

  test("where public ones are closed, too, those alone that the administrator lists", () => {
    const listed = new OpenAddresses(["203.0.114.7/32", "2600:1f00::/32", "10.0.0.0/8"], false);
    for (const address of ["203.0.114.7", "::ffff:203.0.114.7", "2600:1f00::1", "10.1.2.3"])
      expect(listed.includes(address), address).toBe(true);
    for (const address of [
      "203.0.114.8",
      "8.8.8.8",
      "::ffff:8.8.8.8",
      "2600:1f01::1",
      "2001:4860:4860::8888",
      "127.0.0.1",
    ])
      expect(listed.includes(address), address).toBe(false);
  });
});

test("no request leaves for a public address that is not on the list", async () => {
  const resolve = resolving("8.8.8.8");
  const listed = new Outbound({ networks: [`${OPEN}/32`], isPublicOpen: false, clock: new TestClock(), resolve });
  expect((await send({}, listed)).data).toBe("hello");
  for (const url of ["http://8.8.8.8/", "http://[2001:4860:4860::8888]/", "http://name.example/"])
    await expect(send({ url }, listed), url).rejects.toMatchObject({ code: "denied" });
});

describe("no request reaches a closed address", () => {
  test.each([
    CLOSED,
    "localhost",
    "2130706433",
    "0177.0.0.1",
    "0x7f.1",
    "127.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::1]",
    "0",
  ])("written as %s", async (host) => {
    await expect(send({ url: at(host) })).rejects.toMatchObject({ code: "denied" });
    expect(reachedClosed).toBe(0);
  });

  test("by a redirect, of whatever kind", async () => {
    for (const [status, location] of [
      [302, at(CLOSED)],
      [307, at("2130706433")],
      [301, `//[::ffff:127.0.0.1]:${port}/`],
      [308, at("localhost")],
    ] as const) {
      answer = (_request, response) => response.writeHead(status, { location }).end();
      await expect(send({ method: "POST", body: "x" })).rejects.toMatchObject({ code: "denied" });
    }
    expect(reachedClosed).toBe(0);
  });

  test("by a name that has another address the second time", async () => {
    const by = outbound({ resolve: resolving(OPEN, CLOSED) });
    expect((await send({ url: at("name.example") }, by)).data).toBe("hello");
    await expect(send({ url: at("name.example") }, by)).rejects.toMatchObject({ code: "denied" });
    const redirecting = outbound({ resolve: resolving(OPEN, "::ffff:127.0.0.1") });
    answer = (_request, response) => response.writeHead(302, { location: "/again" }).end();
    await expect(send({ url: at("name.example") }, redirecting)).rejects.toMatchObject({ code: "denied" });
    expect(reachedClosed).toBe(0);
  });

  test("by a name that has an open address beside it", async () => {
    const resolve: Resolve = () => Promise.resolve([CLOSED, OPEN].map((address) => ({ address, family: 4 })));
    expect((await send({ url: at("name.example") }, outbound({ resolve }))).data).toBe("hello");
    expect(reachedClosed).toBe(0);
  });

  test("by a protocol other than HTTP, or a method for tunnels", async () => {
    for (const url of ["file:///etc/passwd", "ftp://127.0.0.2/", "no address", "http://"])
      await expect(send({ url })).rejects.toMatchObject({ code: "invalid" });
    await expect(send({ method: "CONNECT" })).rejects.toMatchObject({ code: "invalid" });
    await expect(send({ method: "GET / HTTP/1.1\r\nx" })).rejects.toMatchObject({ code: "invalid" });
  });
});

test("what is sent arrives, and what comes back is answered, whatever its status", async () => {
  answer = (request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      const { method, url, headers } = request;
      const { host, "content-type": type } = headers;
      response.writeHead(404, { "x-many": ["a", "b"] }).end(JSON.stringify({ method, url, host, type, body }));
    });
  };
  const headers = { "content-type": "text/plain", host: "forged.example" };
  const found = await send({ method: "PATCH", url: at(OPEN, "/x?n=1"), headers, body: "ü" });
  expect(found).toMatchObject({ status: 404, headers: { "x-many": "a, b" } });
  expect(JSON.parse(found.data)).toEqual({
    method: "PATCH",
    url: "/x?n=1",
    host: `${OPEN}:${port}`,
    type: "text/plain",
    body: "ü",
  });
});

test("an answer is read in its charset, and as UTF-8 where it names none that is read here", async () => {
  for (const [type, bytes, text] of [
    ["text/html; charset=GBK", "b1e0", "编"],
    ["text/html; charset=klingon", "e7bc96", "编"],
    ["text/html", "e7bc96", "编"],
  ] as const) {
    answer = (_request, response) => response.writeHead(200, { "content-type": type }).end(Buffer.from(bytes, "hex"));
    expect((await send({ url: at(OPEN, "/") })).data, type).toBe(text);
  }
});

test("redirects are followed: after 303 by GET, and secrets stay with the server that was named", async () => {
  const seen: (readonly [string | undefined, string | undefined, string | undefined])[] = [];
  answer = (request, response) => {
    seen.push([request.method, request.headers.host, request.headers.authorization]);
    if (request.url === "/") response.writeHead(303, { location: at("name.example", "/end") }).end();
    else response.end("end");
  };
  const request = { method: "POST", body: "x", headers: { authorization: "Basic x", "content-type": "text/plain" } };
  expect((await send(request, outbound({ resolve: resolving(OPEN) }))).data).toBe("end");
  expect(seen).toEqual([
    ["POST", `${OPEN}:${port}`, "Basic x"],
    ["GET", `name.example:${port}`, undefined],
  ]);
});

test("an answer is bounded in size, redirects in number", async () => {
  answer = (_request, response) => response.end(Buffer.alloc(SCRIPT_HTTP_MAX_BYTES + 1));
  await expect(send()).rejects.toMatchObject({ details: { limit: "SCRIPT_HTTP_MAX_BYTES" } });
  let requests = 0;
  answer = (_request, response) => {
    requests++;
    response.writeHead(302, { location: "/again" }).end();
  };
  await expect(send()).rejects.toMatchObject({ details: { limit: "SCRIPT_HTTP_REDIRECTS_MAX" } });
  expect(requests).toBe(SCRIPT_HTTP_REDIRECTS_MAX + 1);
});

/** Fires when so many requests have arrived, none of which is answered. */
function arrivals(count: number): Promise<void> {
  return new Promise((resolve) => {
    let arrived = 0;
    answer = (_request, response) => {
      response.writeHead(200).write("a part");
      if (++arrived === count) resolve();
    };
  });
}

test("an answer that does not end is given up at its deadline, or with its script", async () => {
  const clock = new TestClock();
  const arrived = arrivals(1);
  const late = expect(send({}, outbound({ clock }))).rejects.toMatchObject({ code: "deadline" });
  await arrived;
  clock.advance(SCRIPT_HTTP_DEADLINE_MS);
  await late;
  expect(clock.waiting).toBe(0);

  const script = new AbortController();
  const again = arrivals(1);
  const over = expect(outbound().send("matrix", { method: "GET", url: at(OPEN) }, script.signal)).rejects.toMatchObject(
    { code: "cancelled" },
  );
  await again;
  script.abort();
  await over;
});

test("a tenant has so many requests at once; others have theirs, and all are free when they end", async () => {
  const by = outbound();
  const scripts = new AbortController();
  const arrived = arrivals(SCRIPT_HTTP_TENANT_AT_ONCE);
  const request = { method: "GET", url: at(OPEN) };
  const held = Promise.allSettled(
    Array.from({ length: SCRIPT_HTTP_TENANT_AT_ONCE }, () => by.send("matrix", request, scripts.signal)),
  );
  await arrived;
  await expect(by.send("matrix", request, NEVER)).rejects.toMatchObject({
    code: "limited",
    details: { limit: "SCRIPT_HTTP_TENANT_AT_ONCE" },
  });
  answer = (_request, response) => response.end("hello");
  expect((await by.send("second", request, NEVER)).data).toBe("hello");
  scripts.abort();
  await held;
  expect((await by.send("matrix", request, NEVER)).data).toBe("hello");
});

test("a server that is not there, or breaks off, is unavailable", async () => {
  await expect(send({ url: `http://${OPEN}:1/` })).rejects.toMatchObject({ code: "unavailable" });
  answer = (_request, response) =>
    response.writeHead(200, { "content-length": "9" }).write("a", () => response.destroy());
  await expect(send()).rejects.toMatchObject({ code: "unavailable" });
  answer = (request) => request.socket.end("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
  await expect(send()).rejects.toMatchObject({ code: "unavailable" });
});

describe("a connection that is dialled", () => {
  const dial = (host: string, to = port, by = outbound(), signal = NEVER) =>
    by.dial("matrix", { host, port: to, timeoutMs: 1_000 }, signal);

  test("is taken or not, and never by an address that is closed, whatever name it has", async () => {
    expect(await dial(OPEN)).toBe(true);
    expect(await dial(OPEN, 1)).toBe(false);
    await expect(dial(CLOSED)).rejects.toMatchObject({ code: "denied" });
    const named = outbound({ resolve: resolving(OPEN, CLOSED) });
    expect(await dial("name.example", port, named)).toBe(true);
    await expect(dial("name.example", port, named)).rejects.toMatchObject({ code: "denied" });
    expect(reachedClosed).toBe(0);
  });

  test("that takes too long is not there, and one of a script that is over is given up", async () => {
    const clock = new TestClock();
    let asked = (): void => undefined;
    const asking = new Promise<void>((resolve) => (asked = resolve));
    const by = outbound({
      clock,
      resolve: () => {
        asked();
        return new Promise(() => undefined);
      },
    });
    const dialled = dial("name.example", port, by);
    await asking;
    clock.advance(1_000);
    expect(await dialled).toBe(false);
    const over = new AbortController();
    const stopped = dial("name.example", port, by, over.signal);
    over.abort();
    await expect(stopped).rejects.toMatchObject({ code: "cancelled" });
  });
});
