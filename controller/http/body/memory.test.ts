import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Type } from "typebox";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  HTTP_BODY_MEMORY_OF_CALLER,
  HTTP_BODY_MEMORY_OF_TENANT,
  HTTP_BODY_MEMORY_RETRY_SECONDS,
  HTTP_BODY_READ_FACTOR,
  HTTP_SESSION_WITHIN_BYTES,
  HTTP_JSON_WORST_FACTOR,
  HTTP_STRANGER_FREE_BYTES,
  HTTP_SMALL_BODY_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import { parseJson } from "../../../common/json.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { BodyMemory, type CallMemory } from "./memory.ts";
import { holdDecoded } from "./weight.ts";
import { endpoint, type Answer, type Endpoint } from "../interface/endpoint.ts";

const MIB = 1_048_576;
const CALLER_BYTES = MIB * HTTP_BODY_MEMORY_OF_CALLER;
const TENANT_BYTES = MIB * HTTP_BODY_MEMORY_OF_TENANT;
const ADMIN = { tenant: "matrix", user: "admin" };
const VIEWER = { tenant: "matrix", user: "viewer" };
const OTHER = { tenant: "second", user: "admin" };
const LIMITED = expect.objectContaining({
  code: "limited",
  details: expect.objectContaining({ retryAfterSeconds: HTTP_BODY_MEMORY_RETRY_SECONDS }) as unknown,
}) as Error;
const TOO_LARGE = expect.objectContaining({ code: "too_large" }) as Error;

describe("the memory for bodies", () => {
  let memory: BodyMemory;
  beforeEach(() => (memory = new BodyMemory(1)));
  const open = (owner?: typeof ADMIN, remote = "192.0.2.1"): CallMemory => {
    const call = memory.open(remote);
    if (owner !== undefined) call.ownedBy(owner);
    return call;
  };

  test("is shared so that no caller, and no tenant, takes it all", () => {
    open(ADMIN).hold(CALLER_BYTES);
    expect(() => open(ADMIN).hold(1)).toThrow(LIMITED);
    const viewer = open(VIEWER);
    viewer.hold(TENANT_BYTES - CALLER_BYTES);
    expect(() => viewer.hold(1), "the tenant has no more").toThrow(LIMITED);
    const other = open(OTHER);
    other.hold(MIB - TENANT_BYTES);
    expect(() => other.hold(1), "the process has no more").toThrow(LIMITED);
    expect(memory.bytes).toBe(MIB);
  });

  test("of strangers counts by address, and all of them have no more than a tenant", () => {
    open(undefined, "2001:db8::1").hold(CALLER_BYTES);
    expect(() => open(undefined, "2001:db8::2").hold(1), "one network").toThrow(LIMITED);
    open(undefined, "192.0.2.2").hold(TENANT_BYTES - CALLER_BYTES + 2 * HTTP_STRANGER_FREE_BYTES);
    expect(() => open(undefined, "192.0.2.3").hold(HTTP_STRANGER_FREE_BYTES + 1)).toThrow(LIMITED);
  });

  test("of a small body of a stranger is there, however much others have sent from their addresses", () => {
    const large = new BodyMemory(64);
    for (const remote of ["192.0.2.1", "192.0.2.2"]) while (large.open(remote).fits(MIB)) large.open(remote).hold(MIB);
    const signIn = large.open("192.0.2.3");
    signIn.hold(HTTP_STRANGER_FREE_BYTES);
    expect(() => signIn.hold(MIB)).toThrow(LIMITED);
    signIn.ownedBy(ADMIN);
    signIn.hold(MIB);
  });

  test("moves to the caller and the tenant once they are known, and once more when they change", () => {
    const call = open();
    call.hold(CALLER_BYTES);
    call.ownedBy(ADMIN);
    open().hold(TENANT_BYTES - CALLER_BYTES);
    expect(() => open(ADMIN).hold(1)).toThrow(LIMITED);
    call.ownedBy(OTHER);
    open(ADMIN).hold(1);
    expect(() => open(OTHER).hold(1)).toThrow(LIMITED);
  });

  test("stays with the address when it does not fit to the caller, and all of it is free after the call", () => {
    open(ADMIN).hold(CALLER_BYTES);
    const call = open();
    call.hold(10);
    expect(() => call.ownedBy(ADMIN)).toThrow(LIMITED);
    expect(() => open().hold(CALLER_BYTES - 9)).toThrow(LIMITED);
    call.release();
    open().hold(CALLER_BYTES - 9);
  });

  test("of a call that needs more than its caller has is refused as too large: repeating it would not help", () => {
    const call = open(ADMIN);
    call.hold(10);
    expect(() => call.hold(CALLER_BYTES)).toThrow(TOO_LARGE);
    expect(memory.bytes).toBe(10);
  });

  test("is held by no call that is over", () => {
    const call = open(ADMIN);
    call.hold(10);
    call.release();
    call.release();
    call.hold(5);
    call.ownedBy(OTHER);
    expect([call.fits(MIB), memory.bytes, memory.shareCount]).toEqual([true, 0, 0]);
  });

  test("is as free as before after ten thousand calls of all kinds", () => {
    const random = seededRandom(7);
    const pick = (count: number): number => Math.floor(random.next() * count);
    const calls: CallMemory[] = [];
    let refused = 0;
    for (let at = 0; at < 10_000; at++) {
      const call = open([undefined, ADMIN, VIEWER, OTHER][pick(4)], `192.0.2.${String(pick(5))}`);
      calls.push(call);
      try {
        for (let part = pick(3); part >= 0; part--) call.hold(pick(CALLER_BYTES / 4) + 1);
        if (pick(3) === 0) call.ownedBy([ADMIN, VIEWER, OTHER][pick(3)] ?? ADMIN);
        if (pick(3) === 0) call.hold(-1);
      } catch {
        refused++;
      }
      expect(memory.bytes).toBeLessThanOrEqual(MIB);
      while (calls.length > pick(12)) calls.splice(pick(calls.length), 1)[0]?.release();
    }
    for (const call of calls) call.release();
    expect(refused).toBeGreaterThan(100);
    expect([memory.bytes, memory.shareCount]).toEqual([0, 0]);
  });
});

describe("the memory of a text once it is decoded", () => {
  const heldFor = async (text: string, mib = 1_024): Promise<number> => {
    const memory = new BodyMemory(mib);
    await holdDecoded(memory.open("192.0.2.1"), text);
    return memory.bytes;
  };
  const filled = (one: (at: number) => string): string =>
    `[${Array.from({ length: 20_000 }, (_, at) => one(at)).join()},0]`;

  test.each([
    ["empty objects", () => "{}"],
    ["empty lists", () => "[]"],
    ["lists in lists", () => "[[[[[[[[[[]]]]]]]]]]"],
    ["lists of one", () => "[0]"],
    ["objects of the same form", () => '{"a":0}'],
    ["objects of many forms", (at: number) => `{"${at.toString(36)}":0}`],
    ["objects with numbers as names", () => '{"999":0}'],
    ["numbers", () => "1e9"],
    ["a text with an escaped sign, and objects", () => '{"\\u0061":{"constructor":{}}}'],
    ["short texts", (at: number) => `"${at.toString(36)}"`],
  ])("is held before: %s", async (_, one) => {
    const text = filled(one);
    expect(text.length).toBeGreaterThan(HTTP_SMALL_BODY_MAX_CHARACTERS / 2);
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    collect();
    const before = process.memoryUsage().heapUsed;
    const value = parseJson(text);
    collect();
    const taken = process.memoryUsage().heapUsed - before;
    expect(value).toHaveLength(20_001);
    expect(await heldFor(text)).toBeGreaterThan(taken);
  });

  test("does not count the signs within texts, and not more for ordinary rows than they may need", async () => {
    const row = '{"host":"web-1","note":"a \\"text\\" of some words, {with} [signs]: many","value":12.5}';
    const text = filled(() => row);
    expect(await heldFor(text)).toBeLessThan(text.length * 10);
    const quoted = JSON.stringify(text);
    expect(await heldFor(`[${quoted},${quoted}]`)).toBeLessThan(quoted.length * 2.1);
  });

  test("of a small one is that of the worst form, unless there is no room for it", async () => {
    const small = `["${"x".repeat(4_000)}"]`;
    expect(await heldFor(small)).toBe(small.length * HTTP_JSON_WORST_FACTOR);
    const text = `["${"x".repeat(60_000)}"]`;
    expect(await heldFor(text)).toBeLessThan(text.length * 2);
    expect(await heldFor(`[${"{},".repeat(30_000)}0]`)).toBeLessThan(90_000 * HTTP_JSON_WORST_FACTOR);
  });

  test("of a text that is no JSON counts its lines", async () => {
    expect(await heldFor("a\n".repeat(50_000))).toBeGreaterThan(50_000 * 20);
    expect(await heldFor(`${"x".repeat(1_000)}\n`.repeat(100))).toBeLessThan(200_000);
  });
});

describe("calls", () => {
  const PIECE = 100 * 1_024;
  let http: TestHttp;
  let port: number;
  let sessions: { readonly admin: string; readonly viewer: string; readonly other: string };
  let goOn: () => void;
  const sockets = new Set<Socket>();
  /** The server's ends. */
  const accepted = { all: 0, open: 0 };
  const input = Type.Object({ name: Type.Optional(Type.String()) });
  const endpoints: readonly Endpoint[] = [
    endpoint({
      ...{ method: "POST", path: "/taken", permission: "objects:read", summary: "", input, output: Type.Unknown() },
      handler: async ({ text, input: { name } }) => ({ message: (text ?? name ?? "").length }),
    }),
    endpoint({
      ...{ method: "POST", path: "/held", permission: "objects:read", summary: "", input, output: Type.Unknown() },
      handler: () => new Promise<Answer<unknown>>((resolve) => (goOn = () => resolve({ message: "" }))),
    }),
  ];

  beforeAll(async () => {
    http = await openTestHttp({ endpoints, settings: { bodyMemoryMib: 1 } });
    await http.app.listen({ port: 0, host: "127.0.0.1" });
    http.app.server.on("connection", (socket) => {
      accepted.all++;
      accepted.open++;
      socket.once("close", () => accepted.open--);
    });
    port = (http.app.server.address() as AddressInfo).port;
    const [admin, viewer, other] = await Promise.all([
      http.signIn("admin"),
      http.signIn("viewer"),
      http.signIn("admin", "second"),
    ]);
    sessions = { admin, viewer, other };
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await closed();
    await expect.poll(held, { interval: 5 }).toBe(0);
  });
  afterAll(() => http[Symbol.asyncDispose]());

  const held = async (): Promise<number> =>
    Number(/^odp_http_body_bytes (\d+)/m.exec((await http.app.inject({ url: "/metrics" })).body)?.[1]);
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

  /** Sends the head and one piece of a body that has not ended. */
  async function begin(path: string, { type = "text/plain", piece = "x".repeat(PIECE), more = "" } = {}) {
    const socket = connect(port, "127.0.0.1");
    sockets.add(socket);
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: ${type}\r\n${more}\r\n`,
    );
    socket.write(chunk(piece));
    return socket;
  }
  const closed = (): Promise<unknown> =>
    expect.poll(() => accepted, { interval: 5 }).toEqual({ all: sockets.size, open: 0 });
  const session = (of: string): string => `/taken?sessionid=${of}`;
  const answered = async (socket: Socket): Promise<string> => String((await once(socket, "data"))[0]);

  test("whose bodies declare no length are refused beyond the share of their caller, while others are answered", async () => {
    const first = await begin(session(sessions.admin));
    await expect.poll(held).toBe(PIECE * HTTP_BODY_READ_FACTOR);
    const refused = await begin(session(sessions.admin));
    const answer = await answered(refused);
    expect(answer).toMatch(/^HTTP\/1\.1 500 /);
    expect(answer).toContain(`"code":"limited"`);
    expect(answer).toMatch(new RegExp(`^retry-after: ${String(HTTP_BODY_MEMORY_RETRY_SECONDS)}\r$`, "im"));
    const precise = await begin(session(sessions.admin), { more: "Accept: application/problem+json\r\n" });
    expect(await answered(precise)).toMatch(/^HTTP\/1\.1 429 [\s\S]*urn:odp:error:limited/);
    const others = await begin(session(sessions.other), { piece: "short" });
    others.write("0\r\n\r\n");
    expect(await answered(others)).toContain(`"message":5`);
    first.write("0\r\n\r\n");
    expect(await answered(first)).toContain(`"message":${String(PIECE)}`);
    await expect.poll(held).toBe(0);
    const again = await begin(session(sessions.admin));
    again.write("0\r\n\r\n");
    expect(await answered(again)).toContain(`"status":"ok"`);
  });

  test("count for the user whom the session at the beginning of their body makes known, and end without one", async () => {
    const type = "application/x-www-form-urlencoded";
    const form = (of: string): string => `sessionid=${of}&name=${"x".repeat(PIECE)}`;
    const waiting = await begin("/held", { type, piece: form(sessions.admin) });
    await expect.poll(held).toBeGreaterThan(PIECE * HTTP_BODY_READ_FACTOR);
    const refused = await begin("/held", { type, piece: form(sessions.admin) });
    expect(await answered(refused), "both are of one user").toContain(`"code":"limited"`);
    const nameless = await begin("/held", { type, piece: `name=${"x".repeat(HTTP_SESSION_WITHIN_BYTES)}` });
    expect(await answered(nameless)).toContain(`"status":"signin"`);
    waiting.write("0\r\n\r\n");
    await expect.poll(() => goOn).toBeDefined();
    const viewer = await begin("/taken", { type, piece: form(sessions.viewer) });
    await expect.poll(held).toBeGreaterThan(2 * PIECE * HTTP_BODY_READ_FACTOR);
    viewer.destroy();
    await expect.poll(held).toBeLessThan(2 * PIECE * HTTP_BODY_READ_FACTOR);
    const same = await begin(session(sessions.admin));
    expect(await answered(same), "the user has what came by the form").toContain(`"code":"limited"`);
    goOn();
    expect(await answered(waiting)).toContain(`"status":"ok"`);
    await expect.poll(held).toBe(0);
  });

  test("are refused where the values of a text need more than the caller has, also where it could be a free text", async () => {
    const socket = await begin(session(sessions.admin), { piece: `[${"{},".repeat(30_000)}0]` });
    socket.write("0\r\n\r\n");
    expect(await answered(socket)).toContain(`"code":"too_large"`);
  });

  test("hold nothing after any kind of end", async () => {
    const json = "application/json";
    const multipart = "multipart/form-data; boundary=B";
    const part = (type: string, value: string): string =>
      `--B\r\nContent-Disposition: form-data; name="name"\r\n${type}\r\n${value}`;
    const empties = `[${"{},".repeat(30_000)}0]`;
    const bodies = [
      { type: "text/plain", piece: "x" },
      { type: json, piece: '{"name":' },
      { type: json, piece: `[${"[],".repeat(2_000)}0]` },
      { type: json, piece: empties },
      { type: "application/x-www-form-urlencoded", piece: `name=${empties}` },
      { type: multipart, piece: part("", `${empties}\r\n--B--\r\n`) },
      { type: multipart, piece: part("", "value\r\n--B--\r\n") },
      { type: multipart, piece: part("", "x".repeat(3 * PIECE)) },
      { type: multipart, piece: part("Content-Type: application/json\r\n", '{"a":1}\r\n--B--\r\n') },
      { type: multipart, piece: part("Content-Type: application/json\r\n", `${empties}\r\n--B--\r\n`) },
      { type: multipart, piece: part("Content-Type: application/json\r\n", '{"a":') },
    ];
    const codes: (string | undefined)[] = [];
    for (const path of [session(sessions.admin), "/taken"]) {
      for (const body of bodies) {
        const whole = await begin(path, body);
        whole.write("0\r\n\r\n");
        codes.push(/"(?:code|status)":"(?!error)(\w+)"/.exec(await answered(whole))?.[1]);
        whole.destroy();
        await closed();
        (await begin(path, body)).destroy();
        await closed();
        await expect.poll(held, { interval: 5 }).toBe(0);
      }
    }
    expect(codes.slice(0, bodies.length)).toEqual([
      "ok",
      "syntax",
      "ok",
      "too_large",
      "too_large",
      "too_large",
      "ok",
      "too_large",
      "ok",
      "too_large",
      "invalid",
    ]);
    expect(new Set(codes.slice(bodies.length))).toEqual(new Set(["signin", "too_large"]));
  });
});
