import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { TEST_SECRETS, testPrincipal, TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { AppError } from "../../../../common/errors.ts";
import { endpoint } from "../../../http/interface/endpoint.ts";
import { socketEndpoint } from "../../../http/sockets/socket.ts";
import type { KvStore } from "../../../store/kv.ts";
import { UserService } from "../service.ts";

/**
 * The clocks of both controllers are stopped, so nothing is read again after a time, and no ping or heartbeat is sent.
 * Everything that ends here ends because of the watch.
 */

const admin = testPrincipal();
const output = Type.Object({});
const input = Type.Object({});
const silent = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

const endpoints = [
  endpoint({
    method: "GET",
    path: "/stream",
    permission: "objects:read",
    summary: "",
    input,
    output,
    events: true,
    handler: ({ signal }) =>
      Promise.resolve({
        events: (async function* () {
          yield { data: {} };
          await silent(signal);
        })(),
      }),
  }),
  endpoint({
    method: "GET",
    path: "/long",
    permission: "objects:read",
    summary: "",
    input,
    output,
    handler: async ({ signal }) => {
      reached();
      await silent(signal);
      return { message: {} };
    },
  }),
];
const sockets = [
  socketEndpoint({
    path: "/socket",
    permission: "objects:read",
    summary: "",
    input,
    frames: Type.Unknown(),
    open: () => {},
  }),
];

let reached: () => void = () => {};
let http: TestHttp;
let other: UserService;
let port: number;

beforeEach(async () => {
  http = await openTestHttp({ endpoints, sockets, runtime: testRuntime(new TestClock(Date.now())) });
  await http.users.create(admin, { username: "ann", password: PASSWORD, rights: { role: "viewer" } });
  http.users.start();
  other = new UserService({
    runtime: { ...testRuntime(new TestClock(Date.now())), random: seededRandom(1) },
    stores: http.engine,
    tenants: http.tenants,
    audit: http.audit,
    secrets: TEST_SECRETS,
  });
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  port = (http.app.server.address() as AddressInfo).port;
});
afterEach(async () => {
  await http.users.stop();
  await http[Symbol.asyncDispose]();
});

async function session(username = "ann"): Promise<string> {
  const request = { company: "matrix", username, password: PASSWORD, remote: "", traceparent: "" };
  return (await http.users.signIn(request)).session;
}

/** Starts a socket, a stream and a long call with one session; answers how each of them ends. */
const standing = (id: string) => begun({ query: `?sessionid=${id}` });

/** Resolves when all three are under way. */
async function begun({ query = "", authorization }: { readonly query?: string; readonly authorization?: string }) {
  const headers = authorization === undefined ? {} : { authorization };
  const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/socket${query}`, { headers });
  await once(socket, "open");
  const closed = once(socket, "close").then(([code]) => code as number);
  const ask = request({ port, path: `/stream${query}`, headers }).end();
  const [stream] = (await once(ask, "response")) as [IncomingMessage];
  await once(stream, "data");
  stream.resume();
  const streamed = once(stream, "end").then(() => "over");
  const working = new Promise<void>((resolve) => (reached = resolve));
  const called = http.app
    .inject({ url: `/long${query}`, headers })
    .then((answer) => answer.json<{ code: string }>().code);
  await working;
  return { over: Promise.all([closed, streamed, called]) };
}

const idOf = async (name: string) => (await other.directory.reader.subtree(admin, `/${name}`)).id;
const principal = { ...admin, user: "ann" };

describe("at another controller", () => {
  const ends: readonly (readonly [string, (id: string) => Promise<unknown>])[] = [
    ["the user is deleted", async () => other.directory.remove(admin, await idOf("ann"))],
    ["the user is made inactive", async () => other.directory.change(admin, await idOf("ann"), { active: false })],
    [
      "an organisation above the user is made inactive",
      async () => {
        const { id: plant } = await other.directory.createOrganization(admin, { username: "plant" });
        await other.directory.move(admin, await idOf("ann"), plant);
        await other.directory.change(admin, plant, { active: false });
      },
    ],
    ["the password changes", () => other.setPassword(admin, "ann", "another password")],
    ["the rights change", () => other.update(admin, "ann", { rights: { grants: ["hosts:read"], data: [] } })],
    ["the session ends", (id) => other.signOut(principal, id)],
  ];
  test.each(ends)("%s: sockets, streams, calls and sign-ins end here", async (_what, change) => {
    const id = await session();
    expect(await http.users.bySession(id, "")).toMatchObject({ user: "ann" });
    const { over } = await standing(id);
    const others = await session("viewer");
    const stays = new WebSocket(`ws://127.0.0.1:${String(port)}/socket?sessionid=${others}`);
    await once(stays, "open");
    await expect.poll(() => http.users.bySession(id, "")).toMatchObject({ user: "ann" });
    await started();
    await change(id);
    expect(await over).toEqual([1008, "over", "denied"]);
    expect(await http.users.bySession(id, "")).toBeUndefined();
    expect(stays.readyState).toBe(WebSocket.OPEN);
    stays.terminate();
  });

  test("a second factor becomes required: what goes on here ends, and the session is good for the duty alone", async () => {
    const id = await session();
    const { over } = await standing(id);
    await started();
    await other.signInPolicy.set(admin, { secondFactor: "everybody" });
    expect(await over).toEqual([1008, "over", "denied"]);
    expect(await http.users.bySession(id, "")).toMatchObject({ user: "ann", owes: "second factor" });
  });

  test.each(["token", "Basic"])("a second factor becomes required: what a program has open by %s ends", async (way) => {
    const scopes = ["*:read"];
    const token = await http.users.signIns.makeToken(
      { ...principal, grants: scopes },
      { name: "t", scopes, days: 1, remote: "" },
    );
    const login = Buffer.from(`matrix.ann:${PASSWORD}`).toString("base64");
    const { over } = await begun({ authorization: way === "token" ? `Bearer ${token}` : `Basic ${login}` });
    await started();
    await other.signInPolicy.set(admin, { secondFactor: "everybody" });
    expect(await over).toEqual([1008, "over", "denied"]);
  });

  test("a change that leaves rights as they are ends nothing", async () => {
    const id = await session();
    const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/socket?sessionid=${id}`);
    await once(socket, "open");
    await started();
    await other.directory.change(admin, await idOf("ann"), { details: { remark: "seen" } });
    // The change of another user follows on the same watch.
    await other.update(admin, "viewer", { active: false });
    await expect.poll(async () => http.users.bySession(id, "")).toMatchObject({ user: "ann" });
    expect(socket.readyState).toBe(WebSocket.OPEN);
    socket.terminate();
  });

  /** Resolves when the watch of this controller reports a write of the other one. */
  async function started(): Promise<void> {
    let isTold = false;
    http.users.onChange(({ user }) => (isTold ||= user === "admin"));
    const request = { company: "matrix", username: "admin", password: PASSWORD, remote: "", traceparent: "" };
    await expect
      .poll(async () => {
        await other.signOut(principal, (await other.signIn(request)).session);
        return isTold;
      })
      .toBe(true);
  }
});

test("a tenant that is deleted is told once by each watch, however often it is asked for afterwards", async () => {
  let isThere = true;
  const ends: (() => void)[] = [];
  const kv = (inner: KvStore): KvStore =>
    wrappedKv(inner, {
      async *watch() {
        await new Promise<void>((resolve) => ends.push(resolve));
        yield [];
        throw new AppError("not_found", "There is no tenant matrix.");
      },
    });
  const users = new UserService({
    runtime: testRuntime(new TestClock(Date.now())),
    stores: {
      system: () => http.engine.system(),
      tenant: async (name) => {
        if (!isThere) throw new AppError("not_found", `There is no tenant ${name}.`);
        const store = await http.engine.tenant(name);
        return { ...store, kv: kv(store.kv) };
      },
    },
    tenants: http.tenants,
    audit: http.audit,
  });
  const id = await session();
  const told: unknown[] = [];
  const asked: Promise<unknown>[] = [];
  users.start();
  await users.bySession(id, "");
  await expect.poll(() => ends.length).toBe(3);
  users.onChange((change) => {
    told.push(change);
    asked.push(users.bySession(id, ""));
  });
  isThere = false;
  for (const end of ends) end();
  await expect.poll(() => told.length).toBeGreaterThan(0);
  for (let asking = 0; asking < 5; asking++) expect(await users.bySession(id, "")).toBeUndefined();
  await Promise.all(asked);
  expect(told).toEqual([{ tenant: "matrix" }, { tenant: "matrix" }, { tenant: "matrix" }]);
  await users.stop();
});

describe("what a broken watch may have missed is asked again when it is there again:", () => {
  /** Watches that go on until the test breaks them, and a controller with such watches in one of its stores. */
  async function brokenIn(store: "system" | "tenant") {
    const watches: ((error: Error) => void)[] = [];
    const brittle = (inner: KvStore): KvStore =>
      wrappedKv(inner, {
        async *watch(_prefix, { signal }) {
          await new Promise((resolve, reject) => {
            watches.push(reject);
            if (signal.aborted) resolve(undefined);
            signal.addEventListener("abort", resolve);
          });
          yield [];
        },
      });
    const { engine } = http;
    const system = async () => ({ ...(await engine.system()), kv: brittle((await engine.system()).kv) });
    const tenant = async (name: string) => ({
      ...(await engine.tenant(name)),
      kv: brittle((await engine.tenant(name)).kv),
    });
    const clock = new TestClock(Date.now());
    const said: unknown[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void said.push(JSON.parse(line)) });
    const users = new UserService({
      runtime: { ...testRuntime(clock), random: seededRandom(2), log },
      stores: {
        system: store === "system" ? system : () => engine.system(),
        tenant: store === "tenant" ? tenant : (name) => engine.tenant(name),
      },
      tenants: http.tenants,
      audit: http.audit,
    });
    const changes: unknown[] = [];
    users.onChange((change) => changes.push(change));
    users.start();
    await users.bySession(await session(), "");
    const breaks = async (error: Error) => {
      const [before, waiting] = [changes.length, clock.waiting];
      watches[0]?.(error);
      await expect.poll(() => clock.waiting).toBeGreaterThan(waiting);
      clock.advance(1_000);
      await expect.poll(() => changes.slice(before)).toContainEqual({ tenant: "matrix" });
    };
    return { users, watches, breaks, said };
  }

  test("users of a tenant", async () => {
    const { users, watches, breaks, said } = await brokenIn("tenant");
    // The watches of users, of organisations and of the sign-in policy.
    await expect.poll(() => watches.length).toBe(3);
    await http.users.update(admin, "ann", { active: false });
    await breaks(new AppError("compacted", "the history is gone"));
    expect(said).toEqual([]);
    await users.stop();
  });

  test("sessions of the tenants in use, and the log says why it broke", async () => {
    const { users, watches, breaks, said } = await brokenIn("system");
    await expect.poll(() => watches.length).toBe(1);
    await breaks(new AppError("unavailable", "the store is away"));
    expect(said).toMatchObject([{ reason: expect.stringContaining("the store is away") as string }]);
    await users.stop();
    expect(said).toHaveLength(1);
  });
});
