import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect } from "vitest";
import { WebSocket } from "ws";
import { realClock } from "../time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../http/http-app.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import type { DataRule } from "../../../controller/areas/permissions/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { publishChanges, wantsChanges } from "../../../controller/areas/notifications/changes.ts";
import { NotificationRights } from "../../../controller/areas/notifications/rights.ts";
import { notificationSockets } from "../../../controller/areas/notifications/routes.ts";
import { NotificationHub } from "../../../controller/areas/notifications/service.ts";
import type { Notification } from "../../../controller/areas/notifications/types.ts";

/** Users who listen to changes of objects over sockets, each with rights of their own. */

export const admin = testPrincipal();
const log = pino({ level: "silent" });
/** The hub that changes of `objects` go to. */
export let hub: NotificationHub;
export let http: TestHttp;
export let objects: ObjectService;
export let query: QueryService;
export let rights: NotificationRights;
/** Base URL of the sockets. */
export let url: string;

/** Opens a controller with classes of objects for all tests of the calling file. */
export function useNotifications(): void {
  beforeAll(async () => {
    hub = new NotificationHub({ log });
    const runtime = testRuntime(realClock);
    const sockets = notificationSockets({
      notifications: hub,
      log,
      rights: { visible: async (principal, notification) => rights.visible(principal, notification) },
    });
    http = await openTestHttp({ sockets, runtime });
    objects = new ObjectService({ visible: visibleObjects, stores: http.engine, runtime });
    objects.registerSystemClass({
      path: "/system/keeper",
      columns: [
        { name: "name", type: "varchar", meaning: "Name" },
        { name: "key", type: "text", sealed: true },
      ],
      keys: ["name"],
      guard: { reading: { permission: "objects:read" } },
    });
    objects.registerSystemClass({
      path: "/system/sealed",
      columns: [{ name: "name", type: "varchar", meaning: "Name" }],
      keys: ["name"],
      guard: { reading: { permission: "audit:read" } },
    });
    objects.registerSystemClass({
      path: "/system/shelf",
      columns: [
        { name: "name", type: "varchar", meaning: "Name" },
        { name: "holder", type: "varchar", meaning: "Holder" },
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
    objects.unrestricted.onChange(
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
}

/** A right to read the class `/matrix/free`. */
export const FREE: DataRule = { class: "/matrix/free", access: "read" };
/** Rights on the objects that bob owns, without their secrets. */
export const BOB: readonly DataRule[] = [
  { class: "/matrix/ent", access: "read", where: "owner = 'bob'", hidden: ["secret"] },
  FREE,
];

let users = 0;
let fences = 0;

/** Runs MQL as an administrator. */
export function mql(text: string): Promise<unknown> {
  return query.rows(admin, text);
}

interface Listener {
  readonly username: string;
  readonly socket: WebSocket;
  /** The object frames received since the last call. */
  readonly heard: () => Promise<readonly unknown[]>;
}

/** Signs a new user with these rights in, to listen. */
export async function listener(
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

/** Returns the frame of a change of a box. */
export const change = (action: string, id: string, fields: object) => ({
  class: "/matrix/ent/box",
  id,
  action,
  fields,
});
