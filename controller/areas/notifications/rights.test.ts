import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Notification } from "./types.ts";
import {
  admin,
  hub,
  http,
  objects,
  query,
  url,
  useNotifications,
  FREE,
  BOB,
  mql,
  listener,
  change,
} from "../../../test/helpers/areas/notification-world.ts";

useNotifications();

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
  await objects.unrestricted.insert(admin, "/matrix/system/keeper", [{ name: "k", key: "sealed text" }]);
  await mql("insert into /matrix/ent/box (host, owner, secret) values ('far', 'ann', 's'), ('near', 'bob', 's')");
  await objects.unrestricted.remove(admin, [{ id: "keeper:k" }]);
  detach();
  expect(JSON.stringify(published)).not.toContain("sealed text");
  expect(published).toHaveLength(4);
  const bob = await listener(BOB);
  for (const notification of published) hub.receive("matrix", JSON.parse(JSON.stringify(notification)) as Notification);
  expect(await bob.heard()).toEqual([change("INSERT", "box:near", { host: "near", owner: "bob" })]);
});
