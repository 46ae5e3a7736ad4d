import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { CONSOLE_LOG_CLASSES, ConsoleLogService, consoleLogArea } from "./index.ts";
import { visibleObjects } from "../query/index.ts";

const NAME = "/matrix/rules/access log";
const URL_NAME = encodeURIComponent(NAME);
const WAIT_MS = 30_000;

let engine: TestEngine;
let objects: ObjectService;
let logs: ConsoleLogService;
let http: TestHttp;
let admin: string;
let address: string;

beforeEach(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  for (const definition of CONSOLE_LOG_CLASSES) objects.registerSystemClass(definition);
  logs = new ConsoleLogService({ objects, clock: realClock });
  const { endpoints = [], sockets = [] } = consoleLogArea(logs);
  http = await openTestHttp({ endpoints, sockets });
  admin = await http.signIn("admin");
  await http.app.listen({ host: "127.0.0.1", port: 0 });
  address = `127.0.0.1:${String((http.app.server.address() as AddressInfo).port)}`;
});
afterEach(async () => {
  http.app.server.closeAllConnections();
  await http[Symbol.asyncDispose]();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

let said = 0;

async function say(msg: string, level = 4, sttime?: number): Promise<void> {
  const timeMs = Date.now();
  const values = { name: NAME, level, msg, ...(sttime !== undefined && { sttime }) };
  const record = { values, timeMs, identity: `said/${said++}` };
  await objects.unrestricted.ingest(testPrincipal(), "/matrix/consolelog/rule", [record]);
  logs.stored("matrix", "rule");
}

interface Entry {
  readonly edtime: string;
  readonly sttime?: string;
  readonly level: number;
  readonly msg: string;
}

interface Page {
  readonly logs: readonly Entry[];
  readonly position: string;
}

async function read(more = ""): Promise<Page> {
  const { message } = await http.call(admin, { url: `/consolelog/rule?name=${URL_NAME}${more}` });
  return message as Page;
}

const cookie = () => ({ cookie: `matrixSession=${admin}`, "x-requested-with": "test" });

test("logs are read by name, with levels under both names, and go on at a position", async () => {
  await say("one", 1);
  await say("two", 2);
  await say("four");
  const all = await read();
  expect(all.logs.map(({ level, msg }) => [level, msg])).toEqual(
    expect.arrayContaining([
      [1, "one"],
      [4, "four"],
    ]),
  );
  expect((await read("&level=1&level=2")).logs.map(({ msg }) => msg).sort()).toEqual(["one", "two"]);
  expect((await read("&levels=error&level=2")).logs.map(({ msg }) => msg).sort()).toEqual(["four", "two"]);
  expect((await read("&limit=2")).logs).toHaveLength(2);
  expect((await read(`&position=${all.position}`)).logs).toEqual([]);
  const { code } = await http.call(admin, { url: `/consolelog/rule?name=other&position=${all.position}` });
  expect(code).toBe("invalid");
});

test.each(["rule", "serverjs", "trigger"])("%s has a log that is read, removed and truncated", async (kind) => {
  expect(await http.call(admin, { url: `/consolelog/${kind}?name=x` })).toMatchObject({ message: { logs: [] } });
  expect(await http.call(admin, { url: `/consolelog/${kind}` })).toMatchObject({ code: "invalid" });
  expect(await http.call(admin, { method: "DELETE", url: `/consolelog/${kind}` })).toMatchObject({ code: "invalid" });
  for (const url of [`/consolelog/${kind}?name=x`, `/consolelog/${kind}/truncate`])
    expect(await http.call(admin, { method: "DELETE", url })).toMatchObject({ status: "ok", message: "" });
  const viewer = await http.signIn("viewer");
  for (const url of [`/consolelog/${kind}?name=x`, `/consolelog/${kind}/truncate`])
    expect(await http.call(viewer, { method: "DELETE", url })).toMatchObject({ code: "denied" });
});

test("removing leaves nothing under the name", async () => {
  await say("gone");
  await http.call(admin, { method: "DELETE", url: `/consolelog/rule?name=${URL_NAME}` });
  expect((await read()).logs).toEqual([]);
});

test("times are ISO 8601 text with milliseconds and zone wherever entries are sent, and numbers in the class", async () => {
  const began = "2024-05-06T07:08:09.000Z";
  await say("timed", 4, Date.parse(began));
  const [read0] = (await read()).logs;
  const socket = new WebSocket(`ws://${address}/consolelog/rule/follow?name=${URL_NAME}`, { headers: cookie() });
  const [frame] = (await once(socket, "message")) as [Buffer];
  socket.terminate();
  const stream = await events({});
  await expect.poll(() => stream.pages(), { timeout: WAIT_MS }).toHaveLength(1);
  stream.response.destroy();
  const sent = [read0, (JSON.parse(String(frame)) as Page).logs[0], stream.pages()[0]?.logs[0]];
  for (const entry of sent) {
    expect(entry).toEqual({ edtime: read0?.edtime, sttime: began, level: 4, msg: "timed" });
    expect(entry?.edtime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  const rows = [];
  for await (const page of objects.unrestricted.read(testPrincipal(), {
    class: "/matrix/consolelog/rule",
    subtree: false,
  }))
    rows.push(...page);
  expect(rows[0]?.values["sttime"]).toBe(Date.parse(began));
  expect(rows[0]?.vtimeMs).toBe(Date.parse(read0?.edtime ?? ""));
});

test("a WebSocket is told what is stored, each entry once", async () => {
  await say("past");
  const socket = new WebSocket(`ws://${address}/consolelog/rule/follow?name=${URL_NAME}`, { headers: cookie() });
  const told: string[] = [];
  socket.on("message", (data: Buffer) => told.push(...(JSON.parse(String(data)) as Page).logs.map(({ msg }) => msg)));
  await once(socket, "open");
  await expect.poll(() => told, { timeout: WAIT_MS }).toEqual(["past"]);
  await say("now");
  await expect.poll(() => told, { timeout: WAIT_MS }).toEqual(["past", "now"]);
  socket.terminate();
});

test("a WebSocket with a position of another log is closed for good", async () => {
  const url = `ws://${address}/consolelog/rule/follow?name=${URL_NAME}&position=x`;
  const socket = new WebSocket(url, { headers: cookie() });
  socket.on("error", () => undefined);
  const [code] = (await once(socket, "close")) as [number];
  expect(code).toBe(1008);
});

test("an event stream that comes back goes on behind the last event it had", async () => {
  await say("past");
  const first = await events({});
  await expect.poll(() => first.told, { timeout: WAIT_MS }).toEqual(["past"]);
  const position = /^id: (.*)$/m.exec(first.text())?.[1] ?? "";
  first.response.destroy();
  await say("now");
  const second = await events({ "last-event-id": position });
  await expect.poll(() => second.told, { timeout: WAIT_MS }).toEqual(["now"]);
  second.response.destroy();
  const foreign = { "last-event-id": "end", accept: "application/problem+json" };
  expect((await events(foreign)).response.statusCode).toBe(400);
});

async function events(headers: Record<string, string>) {
  const sent = request(`http://${address}/consolelog/rule/follow?name=${URL_NAME}`, {
    headers: { ...cookie(), ...headers },
    agent: false,
  });
  sent.on("error", () => undefined);
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  const told: string[] = [];
  const pages = () => {
    const whole = text.slice(0, text.lastIndexOf("\n\n") + 1);
    return [...whole.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as Page);
  };
  response.on("error", () => undefined);
  response.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    told.splice(0, told.length, ...pages().flatMap((page) => page.logs.map(({ msg }) => msg)));
  });
  return { response, told, pages, text: () => text };
}
