import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { SCRIPT_MESSAGE_MAX_CHARACTERS, WEBSOCKET_CLOSE_GRACE_MS, WEBSOCKET_PING_MS } from "../../../common/limits.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { HostObjects } from "../../scripting/index.ts";
import type { ObjectChange } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { publishChanges, wantsChanges } from "./changes.ts";
import { messageHostObjects } from "./host-objects.ts";
import { sendFrame } from "./sending.ts";
import { NotificationHub } from "./service.ts";
import { notificationSockets } from "./routes.ts";
import type { Notification } from "./types.ts";

function notification(members: Partial<Notification> = {}): Notification {
  return {
    keyspace: "/matrix",
    source: "s",
    subject: "alerts",
    title: "t",
    reply: "",
    msg: "m",
    about: undefined,
    ...members,
  };
}

const seesAll = { visible: (_principal: Principal, notification: Notification) => Promise.resolve(notification) };

describe("the hub", () => {
  test("tenant, subject, source and title decide; absent and empty mean any", () => {
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const got: string[] = [];
    hub.subscribe(testPrincipal(), { subject: "alerts" }, ({ msg }) => got.push(`any ${msg}`));
    hub.subscribe(testPrincipal(), { subject: "alerts", source: "", title: "" }, ({ msg }) => got.push(`empty ${msg}`));
    hub.subscribe(testPrincipal(), { subject: "alerts", source: "x" }, ({ msg }) => got.push(`source ${msg}`));
    hub.subscribe(testPrincipal(), { subject: "alerts", title: "t" }, ({ msg }) => got.push(`title ${msg}`));
    hub.subscribe(testPrincipal("administrator", "second"), { subject: "alerts" }, ({ msg }) =>
      got.push(`second ${msg}`),
    );
    hub.publish("matrix", notification({ msg: "1" }));
    hub.publish("matrix", notification({ msg: "2", subject: "events" }));
    expect(got).toEqual(["any 1", "empty 1", "title 1"]);
  });

  test("knows whether anybody listens, and forgets who left", () => {
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const end = hub.subscribe(testPrincipal(), { subject: "alerts" }, () => {});
    expect([hub.wanted("matrix", "alerts"), hub.wanted("second", "alerts"), hub.wanted("matrix", "events")]).toEqual([
      true,
      false,
      false,
    ]);
    end();
    end();
    expect(hub.wanted("matrix", "alerts")).toBe(false);
  });

  test("tells of each subject that begins or ends to have receivers, and of those it has", () => {
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const told: string[] = [];
    const stop = hub.onInterests(() => {
      told.push(
        hub
          .interests()
          .map(({ tenant, subject }) => `${tenant} ${subject}`)
          .join(),
      );
    });
    const listen = (subject: string) => hub.subscribe(testPrincipal(), { subject }, () => {});
    const [first, second, other] = [listen("alerts"), listen("alerts"), listen("events")];
    first();
    first();
    second();
    const again = listen("alerts");
    // The end of an earlier subscription removes no later one.
    second();
    other();
    again();
    stop();
    listen("alerts");
    expect(told).toEqual([
      "matrix alerts",
      "matrix alerts,matrix events",
      "matrix events",
      "matrix events,matrix alerts",
      "matrix alerts",
      "",
    ]);
  });

  test("sends what is published here to controllers that want it, once, and what comes from them to none", () => {
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const got: string[] = [];
    const detach = hub.attach({
      wants: (tenant, subject) => tenant === "matrix" && subject === "alerts",
      send: (tenant, { msg }) => got.push(`${tenant} ${msg}`),
    });
    hub.publish("matrix", notification({ msg: "1" }));
    hub.publish("matrix", notification({ msg: "2", subject: "events" }));
    hub.publish("second", notification({ msg: "3" }));
    hub.receive("matrix", notification({ msg: "4" }));
    expect([got, hub.wanted("matrix", "alerts"), hub.wanted("matrix", "events")]).toEqual([["matrix 1"], true, false]);
    detach();
    hub.publish("matrix", notification({ msg: "5" }));
    expect([got.length, hub.wanted("matrix", "alerts")]).toEqual([1, false]);
  });

  test("is listened to by those only who may", () => {
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const nobody = { ...testPrincipal(), grants: ["notifications:write"] };
    expect(() => hub.subscribe(nobody, { subject: "alerts" }, () => {})).toThrow("notifications:read");
  });

  test("a receiver that fails is nobody else's trouble", () => {
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const got: string[] = [];
    hub.subscribe(testPrincipal(), { subject: "alerts" }, () => {
      throw new Error("broken");
    });
    hub.subscribe(testPrincipal(), { subject: "alerts" }, ({ msg }) => got.push(msg));
    hub.publish("matrix", notification());
    expect(got).toEqual(["m"]);
  });
});

describe("a change of an object", () => {
  const change = {
    ...{ tenant: "matrix", class: "/matrix/box", id: "box:1", action: "UPDATE", fields: { a: 1 } },
    ...{ object: { values: { a: 1 }, vtimeMs: 2, ctimeMs: 1 }, announced: true },
  } as unknown as ObjectChange;
  const published = (changes: readonly ObjectChange[], isWanted = true) => {
    const frames: Notification[] = [];
    const hub = {
      publish: (_tenant: string, frame: Notification) => void frames.push(frame),
      wanted: (tenant: string, subject: string) => isWanted && tenant === "matrix" && subject === "datachange",
    };
    expect(wantsChanges(hub, "matrix")).toBe(isWanted);
    publishChanges(hub, changes);
    return frames;
  };

  test("is told of an announced one only, and where somebody listens", () => {
    expect(published([{ ...change, announced: false }])).toEqual([]);
    expect(published([change], false)).toEqual([]);
    expect(published([{ ...change, announced: false }, change])).toMatchObject([
      {
        ...{ keyspace: "/matrix", source: "objects", subject: "datachange", title: "/matrix/box" },
        msg: JSON.stringify({ class: "/matrix/box", id: "box:1", action: "UPDATE", fields: { a: 1 } }),
        about: { permission: "objects:read", class: "/matrix/box", id: "box:1", values: { a: 1 }, member: "fields" },
      },
    ]);
  });

  test("is the end of the object for who saw it before, and no more", () => {
    const [frame] = published([{ ...change, before: { values: { a: 0 }, vtimeMs: 1 } } as unknown as ObjectChange]);
    expect(frame?.about?.before).toEqual({
      ...{ values: { a: 0 }, vtimeMs: 1 },
      msg: JSON.stringify({ class: "/matrix/box", id: "box:1", action: "DELETE", fields: {} }),
    });
    expect(published([change])[0]?.about).not.toHaveProperty("before");
  });
});

describe("a frame of a user or a script", () => {
  const frame = { source: "s", subject: "alerts", title: "t", msg: "m" };
  const send = (more: Partial<typeof frame> = {}, principal = testPrincipal()) => {
    const published: unknown[] = [];
    sendFrame({ publish: (...call) => void published.push(call) }, principal, { ...frame, ...more });
    return published;
  };

  test("is one of the sender's tenant and tells of no object", () => {
    expect(send()).toEqual([["matrix", { ...frame, keyspace: "/matrix", reply: "", about: undefined }]]);
  });

  test("has a script's text as it is, and other values as JSON", async () => {
    const sent: unknown[] = [];
    const hub = { publish: (_tenant: string, { msg }: Notification) => void sent.push(msg) };
    const host = new HostObjects(messageHostObjects(hub)).bind({
      principal: testPrincipal(),
      kind: "serverjs",
      log: () => undefined,
      beforeChange: () => Promise.resolve(),
      load: () => Promise.reject(new Error("there is none")),
    });
    const { signal } = new AbortController();
    for (const msg of ["text", { n: 1 }])
      await host.call({ name: "message.send", args: ["s", "alerts", "t", msg], signal });
    expect(sent).toEqual(["text", '{"n":1}']);
  });

  test("is refused without the permission, on the subjects of the platform, and when it is too long", () => {
    expect(() => send({}, { ...testPrincipal(), grants: ["notifications:read"] })).toThrow("notifications:write");
    for (const subject of ["datachange", "deployment", "jobrun", "transfer"])
      expect(() => send({ subject })).toThrow(`Frames of ${subject} come from the platform`);
    expect(send({ msg: "x".repeat(SCRIPT_MESSAGE_MAX_CHARACTERS) })).toHaveLength(1);
    expect(() => send({ msg: "x".repeat(SCRIPT_MESSAGE_MAX_CHARACTERS + 1) })).toThrow(
      expect.objectContaining({ code: "too_large", details: { limit: "SCRIPT_MESSAGE_MAX_CHARACTERS" } }),
    );
  });
});

describe("sockets", () => {
  let http: TestHttp | undefined;
  afterEach(() => http?.[Symbol.asyncDispose]());

  interface Started {
    readonly http: TestHttp;
    readonly hub: NotificationHub;
    readonly clock: TestClock;
    readonly url: string;
    readonly port: number;
  }

  async function start(): Promise<Started> {
    const clock = new TestClock();
    const hub = new NotificationHub({ log: pino({ level: "silent" }) });
    const started = await openTestHttp({
      sockets: notificationSockets({ notifications: hub, rights: seesAll, log: pino({ level: "silent" }) }),
      runtime: testRuntime(clock),
    });
    http = started;
    await started.app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = started.app.server.address() as AddressInfo;
    return { http: started, hub, clock, port, url: `ws://127.0.0.1:${String(port)}/websocket` };
  }

  async function opened(url: string, headers: Record<string, string> = {}): Promise<WebSocket> {
    const socket = new WebSocket(url, { headers });
    await once(socket, "open");
    return socket;
  }

  async function refusal(url: string, headers: Record<string, string> = {}): Promise<unknown> {
    const socket = new WebSocket(url, { headers });
    socket.on("error", () => {});
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, AsyncIterable<Buffer>];
    let body = "";
    for await (const chunk of response) body += String(chunk);
    return JSON.parse(body);
  }

  test("frames are JSON text with six members of text, for the tenant of the session", async () => {
    const { http, hub, url } = await start();
    const mine = await opened(`${url}/my%20alerts?source=s&title=&sessionid=${await http.signIn("viewer")}`);
    const theirs = await opened(`${url}/my%20alerts?sessionid=${await http.signIn("admin", "second")}`);
    const wrong: unknown[] = [];
    theirs.on("message", (data) => wrong.push(data));
    const frame = once(mine, "message");
    const extra = { ...notification({ subject: "my alerts", msg: `{"a":"ü"}` }), secret: 1 };
    hub.publish("matrix", extra);
    const [data, binary] = (await frame) as [Buffer, boolean];
    expect(binary).toBe(false);
    expect(JSON.parse(String(data))).toEqual(notification({ subject: "my alerts", msg: `{"a":"ü"}` }));
    const theirFrame = once(theirs, "message");
    hub.publish("second", notification({ subject: "my alerts", keyspace: "/second" }));
    await theirFrame;
    expect(wrong).toHaveLength(1);
  });

  test("free text from a client changes nothing, and it closes with 1000", async () => {
    const { http, hub, url } = await start();
    const socket = await opened(`${url}/alerts`, { cookie: `matrixSession=${await http.signIn("admin")}` });
    socket.send("hello, is anybody there?");
    const frame = once(socket, "message");
    hub.publish("matrix", notification());
    await frame;
    socket.close(1000, "close");
    const [code] = (await once(socket, "close")) as [number];
    expect(code).toBe(1000);
    await expect.poll(() => hub.wanted("matrix", "alerts")).toBe(false);
  });

  test("strangers, unknown paths and pages of other sites are refused in the envelope", async () => {
    const { http, url } = await start();
    const session = await http.signIn("admin");
    expect(await refusal(`${url}/alerts`)).toEqual({ status: "signin", message: "/user/login" });
    expect(await refusal(`${url.replace("websocket", "elsewhere")}/alerts?sessionid=${session}`)).toMatchObject({
      status: "error",
      code: "not_found",
    });
    const fromElsewhere = { cookie: `matrixSession=${session}`, origin: "https://evil.example" };
    expect(await refusal(`${url}/alerts`, fromElsewhere)).toMatchObject({ status: "error", code: "denied" });
    await opened(`${url}/alerts`, { ...fromElsewhere, origin: `http://${new URL(url).host}` });
  });

  test("who lacks the permission is refused, and that is on record", async () => {
    const { http, url } = await start();
    await http.users.create(testPrincipal(), {
      username: "blind",
      password: PASSWORD,
      rights: { grants: ["hosts:read"], data: [] },
    });
    const basic = Buffer.from(`matrix.blind:${PASSWORD}`).toString("base64");
    expect(await refusal(`${url}/alerts`, { authorization: `Basic ${basic}` })).toMatchObject({ code: "denied" });
    expect(http.trail.records.at(-1)).toMatchObject({
      user: "blind",
      permission: "notifications:read",
      outcome: "denied",
      action: "WEBSOCKET /websocket/alerts",
    });
  });

  test("a receiver that does not read is closed with a reason and holds up nobody", async () => {
    const { http, hub, clock, url, port } = await start();
    const session = await http.signIn("admin");
    const slow = connect(port, "127.0.0.1");
    slow.write(
      `GET /websocket/alerts?sessionid=${session} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    );
    await once(slow, "data");
    slow.pause();
    const quick = await opened(`${url}/alerts?sessionid=${session}`);
    let received = 0;
    quick.on("message", () => received++);
    const msg = "x".repeat(100_000);
    let sent = 0;
    // The kernel buffers some megabytes before anything queues here.
    await expect
      .poll(
        () => {
          // On a busy machine the quick one would fall behind too.
          if (sent - received < 5) {
            hub.publish("matrix", notification({ msg }));
            sent++;
          }
          return sent > 300;
        },
        { interval: 1, timeout: 30_000 },
      )
      .toBe(true);
    await expect.poll(() => received).toBe(sent);
    let tail = Buffer.alloc(0);
    slow.on("data", (chunk: Buffer) => (tail = Buffer.concat([tail, chunk]).subarray(-200)));
    slow.resume();
    await expect.poll(() => tail.toString("utf8")).toContain("too slow");
    expect(tail.readUInt16BE(tail.indexOf("too slow") - 2)).toBe(1013);
    const ended = once(slow, "end");
    clock.advance(WEBSOCKET_CLOSE_GRACE_MS);
    await ended;
  });

  test("a dead peer is noticed, a live one stays", async () => {
    const { http, hub, clock, url, port } = await start();
    const session = await http.signIn("admin");
    const live = await opened(`${url}/live?sessionid=${session}`);
    const dead = connect(port, "127.0.0.1");
    dead.write(
      `GET /websocket/dead?sessionid=${session} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    );
    await once(dead, "data");
    const pinged = once(live, "ping");
    clock.advance(WEBSOCKET_PING_MS);
    await pinged;
    const echo = once(live, "pong");
    live.ping();
    await echo;
    // Both sockets wait for their next ping once the store has answered that their session is still valid.
    await expect.poll(() => clock.waiting).toBeGreaterThanOrEqual(2);
    const again = once(live, "ping");
    clock.advance(WEBSOCKET_PING_MS);
    await again;
    await expect.poll(() => hub.wanted("matrix", "dead")).toBe(false);
    expect(hub.wanted("matrix", "live")).toBe(true);
  });

  test("a line ends when its session does, and when the controller stops", async () => {
    const { http, clock, url } = await start();
    const session = await http.signIn("admin");
    const out = await opened(`${url}/alerts?sessionid=${session}`);
    await http.users.signOut(testPrincipal(), session);
    const closed = once(out, "close");
    clock.advance(WEBSOCKET_PING_MS);
    expect((await closed)[0]).toBe(1008);
    const stays = await opened(`${url}/alerts?sessionid=${await http.signIn("viewer")}`);
    const left = once(stays, "close");
    await http.app.close();
    expect((await left)[0]).toBe(1001);
  });
});
