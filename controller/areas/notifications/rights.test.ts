import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/areas/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { DataRule } from "../permissions/index.ts";
import { QueryService } from "../query/index.ts";
import { publishChanges, wantsChanges } from "./changes.ts";
import { NotificationRights } from "./rights.ts";
import { notificationSockets } from "./routes.ts";
import { NotificationHub } from "./service.ts";
import type { Notification } from "./types.ts";

const admin = testPrincipal();
const log = pino({ level: "silent" });
const hub = new NotificationHub({ log });
let http: TestHttp;
let objects: ObjectService;
let query: QueryService;
let rights: NotificationRights;
let url: string;

beforeAll(async () => {
  const runtime = testRuntime(realClock);
  const sockets = notificationSockets({
    notifications: hub,
    log,
    rights: { visible: async (principal, notification) => rights.visible(principal, notification) },
  });
  http = await openTestHttp({ sockets, runtime });
  objects = new ObjectService({ stores: http.engine, runtime });
  objects.registerSystemClass({
    path: "/system/keeper",
    columns: [
      { name: "name", type: "varchar", title: "Name" },
      { name: "key", type: "text", sealed: true },
    ],
    keys: ["name"],
    guard: { reading: { permission: "objects:read" } },
  });
  objects.registerSystemClass({
    path: "/system/sealed",
    columns: [{ name: "name", type: "varchar", title: "Name" }],
    keys: ["name"],
    guard: { reading: { permission: "audit:read" } },
  });
  objects.registerSystemClass({
    path: "/system/shelf",
    columns: [
      { name: "name", type: "varchar", title: "Name" },
      { name: "holder", type: "varchar", title: "Holder" },
    ],
    keys: ["name"],
    guard: {
      reading: { permission: "objects:read" },
      limit: {
        columns: ["holder"],
        of:
          ({ user }) =>
          ({ holder }) =>
            holder === user,
      },
    },
  });
  objects.onChange(
    (changes) =>
      publishChanges(
        hub,
        changes.map((change) => ({ ...change, announced: true })),
      ),
    (tenant) => wantsChanges(hub, tenant),
  );
  rights = new NotificationRights({ objects });
  query = new QueryService({ objects, runtime });
  await mql(`create edgetype uplink;
    create class /matrix/ent/box (host varchar, owner varchar, secret varchar, size int, keys(host));
    create class /matrix/vault (code varchar, keys(code));
    create class /matrix/free (word varchar, keys(word))`);
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  url = `ws://127.0.0.1:${String((http.app.server.address() as AddressInfo).port)}/websocket`;
});
afterAll(async () => {
  await objects.close();
  await http[Symbol.asyncDispose]();
});

const FREE: DataRule = { class: "/matrix/free", access: "read" };
const BOB: readonly DataRule[] = [
  { class: "/matrix/ent", access: "read", where: "owner = 'bob'", hidden: ["secret"] },
  FREE,
];
let users = 0;
let fences = 0;

function mql(text: string): Promise<unknown> {
  return query.rows(admin, text);
}

interface Listener {
  readonly username: string;
  readonly socket: WebSocket;
  /** The object frames received since the last call. */
  readonly heard: () => Promise<readonly unknown[]>;
}

/** A user with these rights, signed in to listen. */
async function listener(
  data: readonly DataRule[],
  more: { grants?: readonly string[]; subject?: string } = {},
): Promise<Listener> {
  const username = `listener${users++}`;
  const grants = more.grants ?? ["notifications:read", "objects:read"];
  await http.users.create(testPrincipal(), { username, password: PASSWORD, rights: { grants, data } });
  const authorization = `Basic ${Buffer.from(`matrix.${username}:${PASSWORD}`).toString("base64")}`;
  const socket = new WebSocket(`${url}/${more.subject ?? "datachange"}`, { headers: { authorization } });
  await once(socket, "open");
  let frames: unknown[] = [];
  const told = (data: Buffer): unknown => JSON.parse((JSON.parse(String(data)) as Notification).msg);
  socket.on("message", (data: Buffer) => frames.push(told(data)));
  return {
    username,
    socket,
    async heard() {
      const word = `fence${fences++}`;
      hub.publish("matrix", {
        keyspace: "",
        source: "",
        subject: more.subject ?? "datachange",
        title: "",
        reply: "",
        msg: `"${word}"`,
        about: undefined,
      });
      await expect.poll(() => frames.at(-1)).toBe(word);
      const before = frames.filter((frame) => typeof frame === "object");
      frames = [];
      return before;
    },
  };
}

const change = (action: string, id: string, fields: object) => ({ class: "/matrix/ent/box", id, action, fields });

test("a socket is told of rows that its user may see, without the columns that are hidden from it", async () => {
  const all = await listener([{ class: "/", access: "read" }]);
  const bob = await listener(BOB);
  await mql("insert into /matrix/ent/box (host, owner, secret) values ('a', 'ann', 's1'), ('b', 'bob', 's2')");
  expect(await bob.heard()).toEqual([change("INSERT", "box:b", { host: "b", owner: "bob" })]);
  await mql("update /matrix/ent/box set secret='s3'; update /matrix/ent/box set size=3");
  expect(await bob.heard()).toEqual([change("UPDATE", "box:b", {}), change("UPDATE", "box:b", { size: 3 })]);
  await mql(
    "update /matrix/ent/box set owner='ann' where host='b'; update /matrix/ent/box set owner='bob' where host='a'",
  );
  expect(await bob.heard()).toEqual([change("DELETE", "box:b", {}), change("UPDATE", "box:a", { owner: "bob" })]);
  await mql("delete from /matrix/ent/box");
  expect(await bob.heard()).toEqual([change("DELETE", "box:a", {})]);
  expect(await all.heard()).toHaveLength(10);
});

test("a row that moves out of sight is gone to who saw it, and to nobody else", async () => {
  const bob = await listener(BOB);
  const eve = await listener([{ class: "/matrix/ent", access: "read", where: "owner = 'eve'" }, FREE]);
  const small = await listener([{ class: "/matrix/ent", access: "read", where: "size < 5", hidden: ["size"] }, FREE]);
  await mql("insert into /matrix/ent/box (host, owner, size) values ('moving', 'bob', 1)");
  for (const each of [bob, eve, small]) await each.heard();
  await mql("update /matrix/ent/box set owner=null where host='moving'");
  expect(await bob.heard()).toEqual([change("DELETE", "box:moving", {})]);
  expect(await eve.heard()).toEqual([]);
  expect(await small.heard()).toEqual([change("UPDATE", "box:moving", { owner: null })]);
  await mql(
    "update /matrix/ent/box set size=9 where host='moving'; update /matrix/ent/box set size=10 where host='moving'",
  );
  expect(await bob.heard()).toEqual([]);
  expect(await small.heard()).toEqual([change("DELETE", "box:moving", {})]);
  await mql("insert into /matrix/ent/box (host, owner) values ('moving', 'eve')");
  expect(await bob.heard()).toEqual([]);
  expect(await eve.heard()).toEqual([change("UPDATE", "box:moving", { host: "moving", owner: "eve" })]);
  await mql("insert into /matrix/ent/box (host, owner) values ('moving', 'ann')");
  expect(await eve.heard()).toEqual([change("DELETE", "box:moving", {})]);
});

test("of a row that moves out of sight nothing is told to whom its former state hid what the frame shows", async () => {
  const data = (hidden: readonly string[]): readonly DataRule[] => [
    { class: "/matrix/ent", access: "read", where: "owner = 'ann'", hidden },
  ];
  const frame: Notification = {
    ...{ keyspace: "/matrix", source: "secret of a", subject: "datachange", title: "", reply: "", msg: "{}" },
    about: {
      ...{ permission: "objects:read", class: "/matrix/ent/box", id: "box:a", vtimeMs: 2, ctimeMs: 1 },
      values: { host: "a", owner: "bob" },
      before: { values: { owner: "ann" }, vtimeMs: 1, msg: '"gone"' },
      told: ["secret"],
    },
  };
  const seen = (hidden: readonly string[]) => rights.visible({ ...admin, data: data(hidden) }, frame);
  expect(await seen([])).toMatchObject({ source: "secret of a", msg: '"gone"' });
  expect(await seen(["size"])).toMatchObject({ msg: '"gone"' });
  expect(await seen(["secret"])).toBeUndefined();
});

test("records are told like entities, and what is removed of them too", async () => {
  await mql("create class /matrix/ent/line (owner varchar, secret varchar) with kind='record'");
  const bob = await listener(BOB);
  await mql("insert into /matrix/ent/line (owner, secret) values ('ann', 's'), ('bob', 's')");
  await mql("delete from /matrix/ent/line");
  const told = await bob.heard();
  expect(told).toMatchObject([
    { action: "INSERT", fields: { owner: "bob" } },
    { action: "DELETE", fields: {} },
  ]);
  expect(JSON.stringify(told)).not.toContain("secret");
});

test("nothing is told of classes that may not be read, nor to who may not read objects at all", async () => {
  const bob = await listener(BOB);
  const blind = await listener([{ class: "/", access: "read" }], { grants: ["notifications:read"] });
  await mql("insert into /matrix/vault code='gold'; insert into /matrix/free word='open'");
  expect(await bob.heard()).toMatchObject([{ class: "/matrix/free" }]);
  expect(await blind.heard()).toEqual([]);
});

test("relations are told as far as their targets may be seen", async () => {
  await mql(
    "insert into /matrix/ent/box (host, owner) values ('hers', 'ann'), ('his', 'bob'); insert into /matrix/vault code='deep'",
  );
  const bob = await listener(BOB);
  const seer = await listener([
    { class: "/", access: "read" },
    { class: "/matrix/vault", access: "none" },
  ]);
  const uplink = (ids: readonly string[]) => [
    change("INSERT", "box:edge", { host: "edge", owner: "bob", uplink: ids }),
  ];
  await query.rows(admin, "insert json ?", [
    JSON.stringify({
      class: "/matrix/ent/box",
      host: "edge",
      owner: "bob",
      uplink: ["box:hers", "box:his", "vault:deep"],
    }),
  ]);
  expect(await bob.heard()).toEqual(uplink(["box:his"]));
  expect(await seer.heard()).toEqual(uplink(["box:hers", "box:his"]));
});

test("rights are those of now: what is taken away while the socket is open is not told any more", async () => {
  const bob = await listener(BOB);
  await mql("insert into /matrix/ent/box (host, owner, secret, size) values ('now', 'bob', 's', 1)");
  expect(await bob.heard()).toHaveLength(1);
  const rights = {
    grants: ["notifications:read", "objects:read"],
    data: [{ class: "/matrix/ent", access: "read", hidden: ["size", "secret"] } as const],
  };
  await http.users.update(testPrincipal(), bob.username, { rights });
  await mql("insert into /matrix/ent/box (host, owner, size) values ('later', 'ann', 1)");
  expect(await bob.heard()).toEqual([change("INSERT", "box:later", { host: "later", owner: "ann" })]);
  const closed = once(bob.socket, "close");
  await http.users.update(testPrincipal(), bob.username, { rights: { ...rights, grants: ["objects:read"] } });
  await mql("insert into /matrix/ent/box (host, owner) values ('last', 'bob')");
  expect((await closed)[0]).toBe(1008);
});

test("a session whose user changed hears nothing more", async () => {
  const { username } = await listener(BOB);
  const { session } = await http.users.signIn({
    company: "matrix",
    username,
    password: PASSWORD,
    remote: "test",
    traceparent: "",
  });
  const socket = new WebSocket(`${url}/datachange?sessionid=${session}`);
  await once(socket, "open");
  const heard: unknown[] = [];
  socket.on("message", (data) => heard.push(data));
  const closed = once(socket, "close");
  await http.users.update(testPrincipal(), username, { active: false });
  await mql("insert into /matrix/ent/box (host, owner) values ('gone', 'bob')");
  expect((await closed)[0]).toBe(1008);
  expect(heard).toEqual([]);
});

test("a condition that cannot be used tells nothing", async () => {
  const lost = await listener([{ class: "/matrix/ent", access: "read", where: "nothing like this" }, FREE]);
  await mql("insert into /matrix/ent/box (host, owner) values ('lost', 'bob')");
  expect(await lost.heard()).toEqual([]);
});

test("what comes from another controller is told by the rights here, and has no sealed column", async () => {
  const published: Notification[] = [];
  const detach = hub.attach({ wants: () => true, send: (_tenant, notification) => published.push(notification) });
  await objects.insert(admin, "/matrix/system/keeper", [{ name: "k", key: "sealed text" }]);
  await mql("insert into /matrix/ent/box (host, owner, secret) values ('far', 'ann', 's'), ('near', 'bob', 's')");
  await objects.remove(admin, [{ id: "keeper:k" }]);
  detach();
  expect(JSON.stringify(published)).not.toContain("sealed text");
  expect(published).toHaveLength(4);
  const bob = await listener(BOB);
  for (const notification of published) hub.receive("matrix", JSON.parse(JSON.stringify(notification)) as Notification);
  expect(await bob.heard()).toEqual([change("INSERT", "box:near", { host: "near", owner: "bob" })]);
});

test("frames of runs, deployments and imports tell of objects, too", async () => {
  const run = (host: string): Notification => ({
    keyspace: "/matrix",
    source: host,
    subject: "jobrun",
    title: "j@d",
    reply: "",
    msg: JSON.stringify({ host, name: "j@d", message: "m", startedMs: 1 }),
    about: {
      permission: "jobs:read",
      class: "/matrix/ent/box",
      id: undefined,
      values: { host, owner: host },
      vtimeMs: 1,
      ctimeMs: 1,
      told: ["host"],
      columns: { startedMs: "started" },
    },
  });
  const grants = ["notifications:read", "jobs:read"];
  const where = "id = 'box:bob'";
  const [some, hidden, none, blind] = await Promise.all([
    listener([{ class: "/matrix/ent", access: "read", where, hidden: ["message", "started"] }], {
      grants,
      subject: "jobrun",
    }),
    listener([{ class: "/matrix/ent", access: "read", hidden: ["host"] }], { grants, subject: "jobrun" }),
    listener([FREE], { grants, subject: "jobrun" }),
    listener([{ class: "/", access: "read" }], { grants: ["notifications:read"], subject: "jobrun" }),
  ]);
  for (const host of ["ann", "bob"]) hub.publish("matrix", run(host));
  expect(await some.heard()).toEqual([{ host: "bob", name: "j@d" }]);
  for (const blinded of [hidden, none, blind]) expect(await blinded.heard()).toEqual([]);
});

test("who lacks the permission of a class is told nothing of it, whatever rules he shares with who has it", async () => {
  const data: readonly DataRule[] = [{ class: "/", access: "read" }];
  await objects.insert(admin, "/matrix/system/sealed", [{ name: "a" }]);
  const frame = (about: object): Notification => ({
    ...{ keyspace: "/matrix", source: "objects", subject: "datachange", title: "", reply: "" },
    msg: JSON.stringify({ name: "a", uplink: ["sealed:a"] }),
    about: { permission: "objects:read", id: "x:a", values: {}, vtimeMs: 1, ctimeMs: 1, told: [], class: "", ...about },
  });
  const own = frame({ class: "/matrix/system/sealed", id: "sealed:a" });
  const related = frame({ class: "/matrix/free", relations: ["uplink"] });
  for (const [grants, seen] of [
    [["objects:read", "audit:read"], true],
    [["objects:read"], false],
  ] as const) {
    const receiver = { ...admin, grants, data };
    expect((await rights.visible(receiver, own)) !== undefined, grants.join()).toBe(seen);
    const msg = (await rights.visible(receiver, related))?.msg ?? "";
    expect(JSON.parse(msg), grants.join()).toEqual({ name: "a", uplink: seen ? ["sealed:a"] : [] });
  }
});

test("what the owner of a class closes to one receiver is told to others only, whatever rules they share", async () => {
  const data: readonly DataRule[] = [{ class: "/", access: "read" }];
  const [ann, bob] = ["ann", "bob"].map((user) => ({ ...admin, user, data }));
  await objects.insert(admin, "/matrix/system/shelf", [{ name: "a", holder: "ann" }]);
  const frame = (about: object): Notification => ({
    ...{ keyspace: "/matrix", source: "objects", subject: "datachange", title: "", reply: "" },
    msg: JSON.stringify({ name: "a", uplink: ["shelf:a"] }),
    about: { permission: "objects:read", id: "x:a", values: {}, vtimeMs: 1, ctimeMs: 1, told: [], class: "", ...about },
  });
  const own = frame({ class: "/matrix/system/shelf", values: { holder: "ann" } });
  const related = frame({ class: "/matrix/free", relations: ["uplink"] });
  for (const [receiver, seen] of [
    [ann, true],
    [bob, false],
  ] as const) {
    if (receiver === undefined) throw new Error("there are two");
    expect((await rights.visible(receiver, own)) !== undefined, receiver.user).toBe(seen);
    const msg = (await rights.visible(receiver, related))?.msg ?? "";
    expect(JSON.parse(msg), receiver.user).toEqual({ name: "a", uplink: seen ? ["shelf:a"] : [] });
  }
});

test("receivers of the same rules share one look at a frame, also at one of a class that is not known here", async () => {
  const frame: Notification = {
    ...{ keyspace: "/matrix", source: "objects", subject: "datachange", title: "", reply: "" },
    msg: JSON.stringify({ word: "x", secret: "y" }),
    about: {
      ...{ permission: "objects:read", class: "/matrix/later", id: undefined, values: { word: "x" } },
      ...{ vtimeMs: 1, ctimeMs: 1, told: [] },
    },
  };
  const data: readonly DataRule[] = [{ class: "/matrix", access: "read", hidden: ["secret"] }];
  const [one, other] = await Promise.all(["ann", "bob"].map((user) => rights.visible({ ...admin, user, data }, frame)));
  expect(JSON.parse(one?.msg ?? "")).toEqual({ word: "x" });
  expect(other).toBe(one);
  expect(await rights.visible({ ...admin, data: [{ class: "/matrix/free", access: "read" }] }, frame)).toBeUndefined();
  const known = { ...frame, about: { ...frame.about!, class: "/matrix/free", id: "free:x", values: {} } };
  const ofId = (id: string): readonly DataRule[] => [{ class: "/matrix/free", access: "read", where: `id = '${id}'` }];
  expect(await rights.visible({ ...admin, data: ofId("free:y") }, known)).toBeUndefined();
  expect(await rights.visible({ ...admin, data: ofId("free:x") }, known)).toBeDefined();
});
