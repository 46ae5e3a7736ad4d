import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Type } from "typebox";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { SIGN_IN_CACHE_MS } from "../../../common/limits.ts";
import { AppError } from "../../../common/errors.ts";
import { endpoint } from "../../http/interface/endpoint.ts";
import { socketEndpoint } from "../../http/sockets/socket.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { UserService } from "../users/index.ts";
import { GroupService } from "./service.ts";

/** The clocks stand still unless a test moves them, so every change is noticed through the watch. */

const admin = testPrincipal();
const silent = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

const common = { method: "GET", permission: "hosts:read", summary: "" } as const;
const endpoints = [
  endpoint({
    ...common,
    path: "/stream",
    input: Type.Object({}),
    output: Type.Object({}),
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
    ...common,
    path: "/long",
    input: Type.Object({}),
    output: Type.Object({}),
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
    permission: "hosts:read",
    summary: "",
    input: Type.Object({}),
    frames: Type.Unknown(),
    open: () => {},
  }),
];

let reached: () => void = () => {};
let http: TestHttp;
let other: GroupService;
let bob: string;

beforeEach(async () => {
  http = await openTestHttp({ endpoints, sockets, runtime: testRuntime(new TestClock()) });
  other = serviceOn(http.engine, new TestClock());
  const rights = { grants: [], data: [] };
  await http.users.create(admin, { username: "bob", password: PASSWORD, rights });
  await http.groups.create(admin, { name: "crew", member: ["U/bob"] });
  await http.groups.update(admin, { name: "viewers", member: ["G/crew"] });
  const caller = { company: "matrix", remote: "", traceparent: "" };
  bob = (await http.users.signIn({ ...caller, username: "bob", password: PASSWORD })).session;
  await http.app.listen({ port: 0, host: "127.0.0.1" });
});
afterEach(async () => {
  await other.close();
  await http[Symbol.asyncDispose]();
});

function serviceOn(stores: Stores, clock: TestClock): GroupService {
  return new GroupService({ stores, runtime: { ...testRuntime(clock), random: seededRandom(1) } });
}

test("a group loses its members at another controller: their sockets, streams and calls end here", async () => {
  const { port } = http.app.server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/socket?sessionid=${bob}`);
  await once(socket, "open");
  const closed = once(socket, "close").then(([code]) => code as number);
  const ask = request({ port, path: `/stream?sessionid=${bob}` }).end();
  const [stream] = (await once(ask, "response")) as [IncomingMessage];
  await once(stream, "data");
  stream.resume();
  const streamed = once(stream, "end").then(() => "over");
  const working = new Promise<void>((resolve) => (reached = resolve));
  const called = http.app
    .inject({ url: `/long?sessionid=${bob}` })
    .then((answer) => answer.json<{ code: string }>().code);
  await working;
  await other.update(admin, { name: "crew", member: [] });
  expect(await Promise.all([closed, streamed, called])).toEqual([1008, "over", "denied"]);
  expect(await http.users.bySession(bob, "")).toMatchObject({ groups: ["/everyone"], data: [] });
});

test("where the watch is mute the store is asked after the age of a read, and what it cannot say is an error", async () => {
  let isAway = false;
  const clock = new TestClock();
  const { engine } = http;
  const mute = serviceOn(
    {
      system: () => engine.system(),
      async tenant(name) {
        if (isAway) throw new AppError("unavailable", "the store is away");
        const store = await engine.tenant(name);
        const watch = async function* (_prefix: string, { signal }: { readonly signal: AbortSignal }) {
          await silent(signal);
          yield* [];
        };
        return { ...store, kv: wrappedKv(store.kv, { watch }) };
      },
    },
    clock,
  );
  const member = { username: "bob", isAdministrator: false };
  const rights = await mute.rightsOf("matrix", member);
  expect(rights?.grants).toContain("*:read");
  expect(await mute.rightsOf("matrix", member)).toBe(rights);
  await other.update(admin, { name: "crew", member: [] });
  clock.advance(SIGN_IN_CACHE_MS);
  expect((await mute.rightsOf("matrix", member))?.grants).toEqual(["files:read", "scripts:read"]);
  isAway = true;
  clock.advance(SIGN_IN_CACHE_MS);
  await expect(mute.rightsOf("matrix", member)).rejects.toMatchObject({ code: "unavailable" });
  await mute.close();
});

test("a refresh at one controller drops all that another one keeps, of groups and of who signed in", async () => {
  const { engine, tenants, audit } = http;
  // It watches no users and its clock stands still, so it keeps what it has cached.
  const runtime = testRuntime(new TestClock());
  const users = new UserService({ runtime, stores: engine, tenants, audit, groups: other });
  const wanted = { name: "t", scopes: ["*:read"], days: 1, remote: "" };
  // The store ends a token by its time of day, and the clocks here show another day than etcd's.
  const token = onCluster ? undefined : await http.users.signIns.makeToken({ ...admin, user: "bob" }, wanted);
  const basic = { login: "matrix.bob", password: PASSWORD, remote: "" };
  const known = async () => ({
    groups: [...((await other.rightsOf("matrix", { username: "bob", isAdministrator: false }))?.groups ?? [])].sort(),
    session: (await users.bySession(bob, ""))?.user,
    token: token && (await users.byToken(token, ""))?.user,
    basic: (await users.byPassword(basic, ""))?.user,
  });
  const before = await known();
  expect(before).toEqual({
    groups: ["/crew", "/everyone", "/viewers"],
    session: "bob",
    token: token && "bob",
    basic: "bob",
  });
  await behindTheirBacks();
  expect(await known()).toEqual(before);
  await http.groups.refresh(admin);
  const after = { groups: ["/everyone"], session: undefined, token: undefined, basic: undefined };
  // The watch reports all changes together. Only the session is polled, because a wrong password must not be retried.
  await expect.poll(async () => (await users.bySession(bob, ""))?.user).toBeUndefined();
  expect(await known()).toEqual(after);
});

/** Changes the store like a restored backup: no revision of groups and no epoch of users rises. */
async function behindTheirBacks(): Promise<void> {
  const [system, tenant] = [(await http.engine.system()).kv, (await http.engine.tenant("matrix")).kv];
  for (const { key, value } of (await tenant.list("perms/groups/")).entries)
    await tenant.put(key, encodeJson({ ...decodeStored<object>(value), member: [] }));
  for (const prefix of ["usersessions/", "tokens/"])
    for (const { key } of (await system.list(prefix)).entries) await system.delete(key);
  const [ofBob, ofAdmin] = [await tenant.get("users/bob"), await tenant.get("users/admin")];
  const { hash } = decodeStored<{ readonly hash: string }>(ofAdmin?.value ?? encodeJson({}));
  await tenant.put(
    "users/bob",
    encodeJson({ ...decodeStored<object>(ofBob?.value ?? encodeJson({})), hash: `${hash}x` }),
  );
}

test("calls at once share one read of the store", async () => {
  let reads = 0;
  const tenant = async (name: string) => {
    const store = await http.engine.tenant(name);
    const get: typeof store.kv.get = (...given) => ((reads += 1), store.kv.get(...given));
    return { ...store, kv: wrappedKv(store.kv, { get }) };
  };
  const counted = serviceOn({ system: () => http.engine.system(), tenant }, new TestClock());
  const rights = () => counted.rightsOf("matrix", { username: "bob", isAdministrator: false });
  await rights();
  await counted.refresh(admin);
  reads = 0;
  await rights();
  const alone = reads;
  await counted.refresh(admin);
  reads = 0;
  await Promise.all(Array.from({ length: 10 }, rights));
  expect(alone).toBeGreaterThan(0);
  expect(reads).toBe(alone);
  await counted.close();
});

test("a tenant that was removed and is there again is watched again", async () => {
  const groups = async () => (await other.rightsOf("matrix", { username: "bob", isAdministrator: false }))?.groups;
  expect(await groups()).toContain("/crew");
  await other.leave("matrix");
  expect(await groups()).toContain("/crew");
  await http.groups.update(admin, { name: "crew", member: [] });
  await expect.poll(groups).not.toContain("/crew");
});

test("of a tenant that is not there nobody has rights", async () => {
  expect(await other.rightsOf("gone", { username: "bob", isAdministrator: true })).toBeUndefined();
});

test("two controllers that change groups at the same time lose none of their changes, and make no circle", async () => {
  const names = Array.from({ length: 8 }, (_, at) => `g${String(at)}`);
  await Promise.all(names.map((name, at) => (at % 2 === 0 ? other : http.groups).create(admin, { name })));
  const found = await http.groups.list(admin);
  expect(found.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  const mutual = await Promise.allSettled([
    other.update(admin, { name: "g0", member: ["G/g1"] }),
    http.groups.update(admin, { name: "g1", member: ["G/g0"] }),
  ]);
  expect(mutual.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});

test("of a thousand groups in a chain the outermost has the innermost's members", async () => {
  const record = { parent: "", readonly: [], writable: [], readexps: [], fields: {}, tags: [] };
  const { kv } = await http.engine.tenant("matrix");
  const put = async (id: number, member: readonly string[]) => {
    const value = { ...record, id: String(id), name: `n${String(id)}`, member };
    return kv.put(`perms/groups/${String(id)}`, encodeJson(value));
  };
  const ids = Array.from({ length: 1_000 }, (_, at) => 1_000 + at);
  for (let at = 0; at < ids.length; at += 100)
    await Promise.all(
      ids.slice(at, at + 100).map((id) => put(id, id === 1_000 ? ["U/carol"] : [`G${String(id - 1)}`])),
    );
  await other.refresh(admin);
  expect((await other.rightsOf("matrix", { username: "carol", isAdministrator: false }))?.groups).toHaveLength(1_001);
});
