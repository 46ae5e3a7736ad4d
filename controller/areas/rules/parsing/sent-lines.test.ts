import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { InjectOptions } from "fastify";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  CHANGE_BATCH_MAX,
  RECORD_MAX_BYTES,
  SCRIPT_MESSAGE_MAX_CHARACTERS,
  SENT_FRAMES_MAX,
  SENT_FRAMES_MAX_CHARACTERS,
  SENT_LINES_MAX,
} from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Value } from "../../../../common/value.ts";
import { NotificationHub, notificationsArea, type Notification } from "../../notifications/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { FileParser, RuleService, RuleTrials, SentLines } from "../index.ts";
import { HostObjects } from "../../../scripting/index.ts";
import { forwardHostObject } from "../host-objects.ts";
import { ruleRoutes } from "../routes.ts";
import { visibleObjects } from "../../query/index.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/sent";

let http: TestHttp;
let objects: ObjectService;
let rules: RuleService;
let sentLines: SentLines;
const hub = new NotificationHub({ log: pino({ level: "silent" }) });

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  rules = new RuleService({ stores, entries: testEntries(stores), objects });
  const parts = { rules, objects, clock: realClock };
  sentLines = new SentLines({ ...parts, notifications: hub, random: runtime.random });
  const fileParser = new FileParser({ ...parts, files: { openServed: () => Promise.reject(new Error("not asked")) } });
  const trials = new RuleTrials({ hostObjects: () => new HostObjects([]), objects, rules, runtime });
  const rights = { visible: (_by: Principal, frame: Notification) => Promise.resolve(frame) };
  const { sockets = [] } = notificationsArea({ notifications: hub, rights, log: runtime.log });
  http = await openTestHttp({ endpoints: ruleRoutes({ rules, fileParser, sentLines, trials }), sockets });
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  for (const path of ["/matrix/sent", "/matrix/narrow"])
    await objects.createClass(ADMIN, { path, kind: "record", columns });
  const options = "--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";
  await rules.put(ADMIN, KEY, `--class=/matrix/sent\n${options}`);
  await rules.put(ADMIN, "/matrix/rules/narrow", `--class=/matrix/narrow\n${options}`);
  await http.app.listen({ port: 0, host: "127.0.0.1" });
});
afterAll(async () => {
  await objects.close();
  await http[Symbol.asyncDispose]();
});

const basic = (user: string) => `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString("base64")}`;

async function send(query: string, payload: string | Buffer, headers: InjectOptions["headers"] = {}): Promise<unknown> {
  const authorization = basic("matrix.admin");
  const type = { "content-type": "text/plain" };
  const url = `/agent?${query}`;
  return (
    await http.app.inject({ method: "POST", url, payload, headers: { authorization, ...type, ...headers } })
  ).json();
}

async function namesOf(path: string): Promise<readonly unknown[]> {
  const names: unknown[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
    names.push(...page.map(({ values }) => values["name"]));
  return names.sort();
}

const stored = (records: number, more: object = {}) =>
  expect.objectContaining({ class: "/matrix/sent", records, failed: 0, errors: [], ...more }) as unknown;

test("lines sent with Basic credentials go through the rule, and one that does not fit is named beside the others", async () => {
  const before = (await namesOf("/matrix/sent")).length;
  const lines = Array.from({ length: CHANGE_BATCH_MAX + 2 }, (_, at) => `line,${at}`);
  lines[CHANGE_BATCH_MAX] = "bad,x";
  const answer = await send(`rule=${KEY}`, `${lines.join("\r\n")}\r\n\r\n`);
  const errors = [{ line: CHANGE_BATCH_MAX + 1, error: expect.stringContaining("INT") as unknown }];
  expect(answer).toEqual({ status: "ok", message: stored(CHANGE_BATCH_MAX + 1, { failed: 1, errors }) });
  expect((await namesOf("/matrix/sent")).length - before).toBe(CHANGE_BATCH_MAX + 1);
});

test("the ids of the lines of a call ascend in their order", async () => {
  const count = CHANGE_BATCH_MAX + 50;
  await send(`rule=${KEY}`, Array.from({ length: count }, (_, at) => `ordered,${at}`).join("\n"));
  const found: { id: string; n: number }[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: "/matrix/sent", subtree: false }))
    for (const { id, values } of page) if (values["name"] === "ordered") found.push({ id, n: Number(values["n"]) });
  const numbers = found.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ n }) => n);
  expect(numbers).toEqual(Array.from({ length: count }, (_, at) => at));
});

test("equal lines are records of their own, within a call and in the next", async () => {
  const before = (await namesOf("/matrix/sent")).length;
  for (const twins of ["twin,1\ntwin,1", "twin,1\ntwin,1"])
    expect(await send(`rule=${KEY}`, twins)).toMatchObject({ message: stored(2) });
  expect((await namesOf("/matrix/sent")).length - before).toBe(4);
});

test.each(["application/json", "application/x-www-form-urlencoded", "text/plain"])(
  "a line is no member of a form or of JSON, sent as %s",
  async (type) => {
    const line = `{"rule":"/matrix/rules/narrow","subject":"x"},7`;
    expect(await send(`rule=${KEY}`, line, { "content-type": type })).toMatchObject({ message: { failed: 1 } });
    expect(await send(`rule=${KEY}`, "subject=x,7", { "content-type": type })).toMatchObject({ message: stored(1) });
    expect(await namesOf("/matrix/narrow")).toEqual([]);
  },
);

test("lines are stored with the row condition of the caller, each that breaks it is named", async () => {
  const north: Principal = { ...ADMIN, data: [{ class: "/matrix", access: "write", where: "name = 'north'" }] };
  const { signal } = new AbortController();
  const request = { rule: "/matrix/rules/narrow", text: "north,1\nsouth,2\nnorth,3", signal };
  expect(await sentLines.take(north, request)).toMatchObject({ records: 2, failed: 1, errors: [{ line: 2 }] });
  expect(await namesOf("/matrix/narrow")).toEqual(["north", "north"]);
  const reader: Principal = { ...ADMIN, data: [{ class: "/matrix", access: "read" }] };
  await expect(sentLines.take(reader, request)).rejects.toMatchObject({ code: "denied" });
  const blind: Principal = { ...ADMIN, data: [{ class: "/matrix/sent", access: "write" }] };
  await expect(sentLines.take(blind, request)).rejects.toMatchObject({ code: "not_found" });
});

test("a nested member that no line has is told, by path", async () => {
  const key = "/matrix/rules/nested";
  await rules.put(ADMIN, key, "--class=/matrix/sent\n--parser=json\n--var_name=field user.nam\n--var_n=field user.n\n");
  const told = "--var_name: none of 2 records has a value at user.nam.";
  expect(await send(`rule=${key}`, '{"user":{"name":"a","n":1}}\n{"user":{"name":"b"}}\nno json')).toMatchObject({
    warnings: [told],
  });
  const answer = await send(`rule=${key}`, '{"user":{"name":"a","n":1}}\n{"user":{"nam":"b"}}');
  expect(answer).not.toHaveProperty("warnings");
});

test("a channel hears each line as a frame of its own, in their order, and other tenants hear none", async () => {
  const { port } = http.app.server.address() as AddressInfo;
  const at = `ws://127.0.0.1:${port}/websocket/news?sessionid=`;
  const frames: unknown[] = [];
  const foreign: unknown[] = [];
  const sessions = [await http.signIn("viewer"), await http.signIn("viewer", "second")] as const;
  const mine = new WebSocket(at + sessions[0]);
  const theirs = new WebSocket(at + sessions[1]);
  mine.on("message", (data: Buffer) => frames.push(JSON.parse(data.toString())));
  theirs.on("message", (data: Buffer) => foreign.push(data));
  await Promise.all([once(mine, "open"), once(theirs, "open")]);
  const message = { frames: 2 };
  expect(await send("subject=news", 'first\n\n{"second":true}\n')).toEqual({ status: "ok", message });
  const frame = { keyspace: "/matrix", source: "admin", subject: "news", title: "", reply: "" };
  await expect.poll(() => frames.length).toBe(2);
  expect(frames).toEqual([
    { ...frame, msg: "first" },
    { ...frame, msg: '{"second":true}' },
  ]);
  expect(foreign).toEqual([]);
  mine.terminate();
  theirs.terminate();
});

test("channels of the platform itself are refused, and who may send no frames", async () => {
  for (const subject of ["datachange", "deployment", "jobrun", "transfer"])
    expect(await send(`subject=${subject}`, "forged")).toMatchObject({ status: "error", code: "invalid" });
  const author: Principal = { ...ADMIN, grants: ["rules:write"] };
  const { signal } = new AbortController();
  const asked = sentLines.take(author, { subject: "news", text: "a", signal });
  await expect(asked).rejects.toMatchObject({ code: "denied" });
});

test("a script sends a text of lines, a list of records or one value, with the rights it has", async () => {
  const send = (principal: Principal, ...args: Value[]) =>
    new HostObjects([forwardHostObject(sentLines)])
      .bind({
        principal,
        kind: "serverjs",
        log: () => {},
        beforeChange: () => Promise.resolve(),
        load: () => Promise.reject(new Error("not asked in this test")),
      })
      .call({ name: "forward.send", args, signal: new AbortController().signal });
  expect(await send(ADMIN, KEY, "text,1\ntext,2")).toMatchObject({ class: "/matrix/sent", records: 2, failed: 0 });
  expect(await send(ADMIN, KEY, ["list,1", "list,x", "list,3"])).toMatchObject({ records: 2, errors: [{ line: 2 }] });
  const json = "/matrix/rules/json";
  await rules.put(ADMIN, json, "--class=/matrix/sent\n--parser=json\n");
  expect(await send(ADMIN, json, { name: "value", n: 1 })).toMatchObject({ records: 1 });
  expect(await send(ADMIN, json, [{ name: "values" }, '{"name":"values"}'])).toMatchObject({ records: 2 });
  const sent = (await namesOf("/matrix/sent")).filter((name) => /^(text|list|value|values)$/.test(String(name)));
  expect(sent).toEqual(["list", "list", "text", "text", "value", "values", "values"]);
  await expect(send(ADMIN, "/matrix/rules/none", "a,1")).rejects.toMatchObject({ code: "not_found" });
  await expect(send(testPrincipal("viewer"), KEY, "a,1")).rejects.toMatchObject({ code: "denied" });
});

test("both a rule and a channel, or neither, and a rule that is not there, are refused", async () => {
  const either = { status: "error", code: "invalid", message: expect.stringContaining("either rule") as unknown };
  expect(await send(`rule=${KEY}&subject=news`, "a,1")).toMatchObject(either);
  expect(await send("", "a,1")).toMatchObject(either);
  expect(await send("rule=/matrix/rules/none", "a,1")).toMatchObject({ status: "error", code: "not_found" });
  expect(await send("rule=/second/rules/sent", "a,1")).toMatchObject({ status: "error", code: "invalid" });
});

test("who only looks, strangers, and pages of other sites send nothing", async () => {
  const before = await namesOf("/matrix/sent");
  for (const query of [`rule=${KEY}`, "subject=news"]) {
    const viewer = await send(query, "a,1", { authorization: basic("matrix.viewer") });
    expect(viewer).toMatchObject({ status: "error", code: "denied" });
    expect(await send(query, "a,1", { authorization: basic("second.admin") })).not.toMatchObject({
      message: stored(1),
    });
    expect(await send(query, "a,1", { authorization: "" })).toMatchObject({ status: "signin" });
    const page = await send(query, "a,1", { origin: "https://evil.example" });
    expect(page).toMatchObject({ status: "error", message: expect.stringContaining("another site") as unknown });
  }
  expect(await namesOf("/matrix/sent")).toEqual(before);
});

test("each call is an audit entry that names the rule or the channel", async () => {
  await send(`rule=${KEY}`, "a,1");
  await send("subject=news", "a,1");
  const told = http.trail.records.slice(-2).map(({ user, action, object }) => [user, action, object]);
  expect(told).toEqual([
    ["admin", "POST /agent", KEY],
    ["admin", "POST /agent", "news"],
  ]);
});

test.each([
  ["SENT_LINES_MAX", { rule: KEY }, "a,1\n".repeat(SENT_LINES_MAX + 1)],
  ["SENT_LINES_MAX", { rule: KEY }, `${"a,1\n".repeat(SENT_LINES_MAX)}\n\nb,2`],
  ["SENT_LINES_MAX", { subject: "news" }, "\n".repeat(8 * 1024 * 1024)],
  ["RECORD_MAX_BYTES", { rule: KEY }, `a,1\n${"ü".repeat(RECORD_MAX_BYTES / 2)},1`],
  ["SENT_FRAMES_MAX", { subject: "news" }, "a\n".repeat(SENT_FRAMES_MAX + 1)],
  ["SCRIPT_MESSAGE_MAX_CHARACTERS", { subject: "news" }, `a\n${"x".repeat(SCRIPT_MESSAGE_MAX_CHARACTERS + 1)}`],
  ["SENT_FRAMES_MAX_CHARACTERS", { subject: "news" }, `${"x".repeat(SENT_FRAMES_MAX_CHARACTERS / 10)}\n`.repeat(11)],
])("more than %s is refused as a whole, by its name", async (limit, to, text) => {
  const before = await namesOf("/matrix/sent");
  const heard: unknown[] = [];
  const end = hub.subscribe(ADMIN, { subject: "news" }, (frame) => heard.push(frame));
  const { signal } = new AbortController();
  await expect(sentLines.take(ADMIN, { ...to, text, signal })).rejects.toMatchObject({
    code: "too_large",
    details: { limit },
  });
  end();
  expect(heard).toEqual([]);
  expect(await namesOf("/matrix/sent")).toEqual(before);
});

test("a sent line has the time that its field says; one that says none keeps the present, which is told", async () => {
  const key = "/matrix/rules/dated";
  await rules.put(ADMIN, key, "--class=/matrix/narrow\n--parser=csv\n--fields=when,name\n--time=when");
  const ahead = new Date(realClock.nowMs() + 86_400_000).toISOString();
  const lines = ["2026-07-01 12:00:00Z,dated", "soon,undated", `${ahead},ahead`];
  const warning =
    "1 record has the time of reading in place of its own. " +
    'Line 2: The field when: "soon" is in no format that is known without a layout (--time_layout).';
  const errors = [{ line: 3, error: expect.stringContaining("more than 5 minutes ahead") as unknown }];
  expect(await send(`rule=${key}`, lines.join("\n"))).toMatchObject({
    message: { records: 2, failed: 1, errors },
    warnings: [warning],
  });
  const times: Record<string, number> = {};
  for await (const page of objects.unrestricted.read(ADMIN, { class: "/matrix/narrow", subtree: false }))
    for (const { values, vtimeMs } of page) times[String(values.name)] = vtimeMs;
  expect(times["dated"]).toBe(Date.parse("2026-07-01T12:00:00Z"));
  expect(times["undated"]).toBeGreaterThan(Date.parse("2026-07-01T12:00:00Z"));
  expect(times).not.toHaveProperty("ahead");
});
