import { expect, test } from "vitest";
import type { DataRule } from "../permissions/index.ts";
import type { Notification } from "./types.ts";
import {
  admin,
  hub,
  objects,
  rights,
  useNotifications,
  FREE,
  listener,
} from "../../../test/helpers/areas/notification-world.ts";

useNotifications();

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
  await objects.unrestricted.insert(admin, "/matrix/system/sealed", [{ name: "a" }]);
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
  await objects.unrestricted.insert(admin, "/matrix/system/shelf", [{ name: "a", holder: "ann" }]);
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
