import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { JobOutputEnd, JobOutputPart } from "../../../../common/api/jobs.ts";
import { FOLLOW_PIECE_BYTES } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { AppendNotifier } from "../../../store/tail.ts";
import type { CommandOutcome, DispatchOptions } from "../../hosts/index.ts";
import type { DataRule } from "../../permissions/index.ts";
import { OutputFollowing } from "./following.ts";

/** The output of a run, followed over both transports from a position to the end. */

/** Timeout of tests that move megabytes through a real cluster beside other suites. */
const LONG_MS = 180_000;

let world: Awaited<ReturnType<typeof openMonitoring>>;
let admin: string;
let address: string;
/** The server side of the connections. */
let accepted: Socket[];
const sockets: WebSocket[] = [];

beforeEach(async () => {
  world = await openMonitoring();
  admin = await world.http.signIn("admin");
  accepted = [];
  world.http.app.server.on("connection", (socket) => accepted.push(socket));
  await world.http.app.listen({ host: "127.0.0.1", port: 0 });
  address = `127.0.0.1:${String((world.http.app.server.address() as AddressInfo).port)}`;
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  world.http.app.server.closeAllConnections();
  await world[Symbol.asyncDispose]();
});

interface StartedRun {
  readonly runId: string;
  /** Writes a piece of output, and returns when it is taken in. */
  readonly write: (text: string) => void;
  readonly end: (outcome?: Partial<CommandOutcome>) => void;
}

async function startRun(): Promise<StartedRun> {
  let started: (options: DispatchOptions) => void = () => undefined;
  let end: StartedRun["end"] = () => undefined;
  const options = new Promise<DispatchOptions>((resolve) => (started = resolve));
  const ended = new Promise<Partial<CommandOutcome>>((resolve) => (end = (outcome = {}) => resolve(outcome)));
  world.hosts.dispatch = async (_principal, host, _command, given) => {
    started(given);
    const outcome = await ended;
    return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: Date.now(), ...outcome };
  };
  const param = encodeURIComponent(JSON.stringify({ cmd: "work", "HOST!": "h1" }));
  const { message } = await world.http.call(admin, { url: `/job/exec/remote_command@system/common?param=${param}` });
  const { onOutput } = await options;
  return { runId: String(message), write: (text) => onOutput?.({ stderr: false, data: Buffer.from(text) }), end };
}

/** The output that a reader got; every part begins where the last one ended. */
class Reading {
  text = "";
  position: number;
  end: JobOutputEnd | undefined;
  /** How the transport closed; absent while it is open. */
  closed: string | undefined;

  constructor(from: number) {
    this.position = from;
  }

  take(part: JobOutputPart): void {
    if (part.end !== undefined) {
      this.end = part.end;
      return;
    }
    const bytes = Buffer.from(part.data ?? "", "base64");
    expect(part.from).toBe(this.position);
    expect(part.to).toBe(this.position + bytes.length);
    expect(bytes.length).toBeLessThanOrEqual(FOLLOW_PIECE_BYTES);
    this.position += bytes.length;
    this.text += bytes.toString();
  }

  async reads(text: string): Promise<void> {
    await expect.poll(() => this.text, { timeout: LONG_MS }).toBe(text);
  }

  async over(how: string): Promise<void> {
    await expect.poll(() => this.closed, { timeout: LONG_MS }).toBe(how);
  }
}

interface Asked {
  readonly from?: number;
  /** A query instead of `from`, such as `tail=4`. */
  readonly part?: string;
  readonly headers?: Record<string, string>;
}

const path = (runId: string, from: number, part = `from=${String(from)}`): string => `/job/output/${runId}/h1?${part}`;
const signedIn = (): Record<string, string> => ({ cookie: `matrixSession=${admin}` });

async function events(runId: string, { from = 0, part, headers = signedIn() }: Asked = {}) {
  const sent = request(`http://${address}${path(runId, from, part)}`, { headers, agent: false });
  sent.on("error", () => undefined);
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const reading = new Reading(Number(headers["last-event-id"] ?? from));
  let rest = "";
  response.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (data !== undefined) reading.take(JSON.parse(data) as JobOutputPart);
    }
  });
  response.on("end", () => (reading.closed = "whole")).on("error", () => (reading.closed = "broken"));
  return { reading, response, pause: () => response.pause(), resume: () => response.resume() };
}

async function socket(runId: string, { from = 0, part, headers = signedIn() }: Asked = {}) {
  const opened = new WebSocket(`ws://${address}${path(runId, from, part)}`, { headers });
  sockets.push(opened);
  const reading = new Reading(from);
  opened.on("error", () => undefined);
  opened.on("message", (data: Buffer) => reading.take(JSON.parse(String(data)) as JobOutputPart));
  opened.on("close", (code) => (reading.closed = String(code)));
  await once(opened, "open");
  return { reading, pause: () => opened.pause(), resume: () => opened.resume() };
}

const TRANSPORTS = [
  ["event stream", events, "whole"],
  ["WebSocket", socket, "1000"],
] as const;

describe.each(TRANSPORTS)("by %s", (_name, follow, whole) => {
  test("10,000 pieces come without a hole and nothing twice, whenever the reader came and from wherever", async () => {
    const run = await startRun();
    const lines = Array.from({ length: 10_000 }, (_, at) => `line ${String(at)}\n`);
    const text = lines.join("");
    const readers = [await follow(run.runId)];
    for (const [at, line] of lines.entries()) {
      run.write(line);
      if (at % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      // Readers start in the past, in the middle of the writes, and at a position that is not written yet.
      if (at === 5_000) for (const from of [17, 50_000, 80_000]) readers.push(await follow(run.runId, { from }));
    }
    run.end({ state: "failed", code: 3, message: "exit code 3" });
    for (const { reading } of readers) await reading.over(whole);
    readers.push(await follow(run.runId), await follow(run.runId, { from: text.length }));
    for (const [at, { reading }] of readers.entries()) {
      await reading.over(whole);
      const from = [0, 17, 50_000, 80_000, 0, text.length][at];
      expect(reading.text === text.slice(from), `reader ${String(at)}`).toBe(true);
      expect(reading.end).toEqual({ state: "failed", code: 3, message: "exit code 3" });
    }
  });

  test(
    "a reader that stalls holds up neither the run nor others, has little waiting, and misses nothing",
    async () => {
      const run = await startRun();
      const stalled = await follow(run.runId);
      const [server] = accepted;
      run.write("begin");
      await stalled.reading.reads("begin");
      stalled.pause();
      const large = "x".repeat(10 * 1_048_576);
      run.write(large);
      run.end();
      const other = await follow(run.runId);
      await other.reading.over(whole);
      await expect.poll(() => server?.writableLength ?? 0).toBeGreaterThan(0);
      expect(server?.writableLength).toBeLessThan(8 * FOLLOW_PIECE_BYTES);
      stalled.resume();
      await stalled.reading.over(whole);
      expect(stalled.reading.text === `begin${large}`).toBe(true);
    },
    LONG_MS,
  );

  test("from the tail, by bytes and by lines, it goes on live to the end of the run", async () => {
    const run = await startRun();
    const begun = "one\ntwo\nthree\nfo";
    run.write(begun);
    const first = await follow(run.runId);
    await first.reading.reads(begun);
    const asked = [
      ["tail=4", "e\nfo"],
      ["lines=2", "three\nfo"],
      ["lines=99&tail=6", "ree\nfo"],
    ] as const;
    const readers = await Promise.all(
      asked.map(([part, tail]) => follow(run.runId, { part, from: begun.length - tail.length })),
    );
    for (const [at, { reading }] of readers.entries()) await reading.reads(asked[at]?.[1] ?? "");
    const rest = Array.from({ length: 100 }, (_, at) => `${String(at)}\n`).join("");
    for (const line of rest.split(/(?<=\n)/)) run.write(line);
    run.end({ state: "failed", code: 3, message: "exit code 3" });
    for (const [at, { reading }] of readers.entries()) {
      await reading.over(whole);
      expect(reading.text).toBe((asked[at]?.[1] ?? "") + rest);
      expect(reading.end).toMatchObject({ state: "failed", code: 3 });
    }
  });

  test("rights that are taken away end it before the next piece", async () => {
    const run = await startRun();
    const { reader, update } = await user([{ class: "/", access: "read" }]);
    const { reading } = await follow(run.runId, { headers: reader });
    run.write("seen");
    await reading.reads("seen");
    await update([{ class: "/", access: "read", where: "host = 'h2'" }]);
    run.write("unseen");
    await expect.poll(() => reading.closed).toBe(follow === socket ? "1008" : "broken");
    expect(reading.text).toBe("seen");
    run.end();
  });
});

let users = 0;

async function user(data: readonly DataRule[], grants: readonly string[] = ["jobs:read", "objects:read"]) {
  const username = `reader${String(users++)}`;
  await world.http.users.create(testPrincipal(), { username, password: PASSWORD, rights: { grants, data } });
  const authorization = `Basic ${Buffer.from(`matrix.${username}:${PASSWORD}`).toString("base64")}`;
  const update = (rules: readonly DataRule[]) =>
    world.http.users.update(testPrincipal(), username, { rights: { grants, data: rules } });
  return { reader: { authorization }, update };
}

test("who may not see the run, or its output, is told nothing on either way", async () => {
  const run = await startRun();
  run.write("secret");
  const all: DataRule = { class: "/", access: "read" };
  const cases: readonly (readonly [code: string, data: readonly DataRule[], grants?: readonly string[]])[] = [
    ["denied", [all], ["objects:read"]],
    ["denied", [{ ...all, hidden: ["out"] }]],
    ["not_found", [{ ...all, where: "host = 'h2'" }]],
    ["not_found", [all, { class: "/matrix/jobs", access: "none" }]],
  ];
  for (const [code, data, grants] of cases) {
    const { reader } = await user(data, grants);
    const { body, statusCode } = await world.http.app.inject({ url: path(run.runId, 0), headers: reader });
    expect([statusCode, (JSON.parse(body) as { code: string }).code], code).toEqual([500, code]);
    const opened = new WebSocket(`ws://${address}${path(run.runId, 0)}`, { headers: reader });
    sockets.push(opened);
    const heard: unknown[] = [];
    opened.on("message", (data: Buffer) => heard.push(String(data))).on("error", () => undefined);
    await new Promise((resolve) => opened.on("close", resolve));
    expect(heard).toEqual([]);
  }
  const second = await world.http.signIn("admin", "second");
  expect(await world.http.call(second, { url: path(run.runId, 0) })).toMatchObject({ code: "not_found" });
  run.end();
});

test("a client that comes back goes on where it was, and one that has the end is told to stay away", async () => {
  const run = await startRun();
  run.write("0123456789");
  const first = await events(run.runId, { from: 2 });
  await first.reading.reads("23456789");
  first.response.destroy();
  run.write("more");
  run.end();
  const { reading } = await events(run.runId, { from: 2, headers: { ...signedIn(), "last-event-id": "10" } });
  await reading.over("whole");
  expect(reading).toMatchObject({ text: "more", end: { state: "ok" } });
  const { response } = await events(run.runId, { headers: { ...signedIn(), "last-event-id": "end" } });
  expect(response.statusCode).toBe(204);
  const wrong = { url: path(run.runId, 0), headers: { "last-event-id": "-1" } };
  expect(await world.http.call(admin, wrong)).toMatchObject({ code: "invalid" });
});

test("a controller that stops ends both in good order and without the end of the run", async () => {
  const run = await startRun();
  run.write("until here");
  const [stream, line] = [await events(run.runId), await socket(run.runId)];
  for (const { reading } of [stream, line]) await reading.reads("until here");
  await world.http.app.close();
  await stream.reading.over("whole");
  await line.reading.over("1001");
  expect([stream.reading.end, line.reading.end]).toEqual([undefined, undefined]);
  run.end();
});

test("what is stored is read from its end, by bytes and by lines, and by range, while the run goes on and after it", async () => {
  const run = await startRun();
  run.write("one\ntwo\nthree\nfo");
  const first = await events(run.runId);
  await first.reading.reads("one\ntwo\nthree\nfo");
  first.response.destroy();
  const part = async (query: string) => {
    const { body } = await world.http.app.inject({ url: `/job/output/${run.runId}/h1?${query}`, headers: signedIn() });
    const parts = [...body.matchAll(/^data: (.*)$/gm)].map(([, text]) => JSON.parse(text ?? "") as JobOutputPart);
    return parts.map(({ data, end }) => (end ? "|" : Buffer.from(data ?? "", "base64").toString())).join("");
  };
  expect(await part("from=4&to=7")).toBe("two");
  expect(await part("tail=4&to=16")).toBe("e\nfo");
  expect(await part("lines=2&to=16")).toBe("three\nfo");
  expect([await part("from=7&to=7"), await part("from=9&to=3")]).toEqual(["", ""]);
  run.write("ur\n");
  run.end();
  const whole = await events(run.runId, { from: 16 });
  await whole.reading.over("whole");
  expect(await part("lines=1")).toBe("four\n|");
  expect(await part("lines=99&tail=11")).toBe("three\nfour\n|");
  expect(await part("tail=999999&from=14")).toBe("four\n|");
  expect(await part("lines=0")).toBe("|");
  expect(await part("tail=-1")).toBe("");
});

test("what another controller appends is found by looking", async () => {
  const { engine: stores, objects } = world;
  const elsewhere = new OutputFollowing({ stores, objects, clock: realClock, appends: new AppendNotifier() });
  const run = await startRun();
  const principal = testPrincipal();
  const reader = { from: 0, signal: AbortSignal.timeout(50_000), present: () => Promise.resolve(principal) };
  const parts = await elsewhere.follow(principal, { runId: run.runId, host: "h1" }, reader);
  const reading = new Reading(0);
  const finished = (async () => {
    for await (const part of parts) reading.take(part);
  })();
  run.write("first ");
  await reading.reads("first ");
  run.write("second");
  run.end();
  await finished;
  expect(reading).toMatchObject({ text: "first second", end: { state: "ok" } });
});

test("a job whose directory has the same words is still itself", async () => {
  await world.jobs.save(testPrincipal(), { name: "job", dir: "output/a/b", exec: ["run"] });
  const found = await world.http.call(admin, { url: "/job/job@output/a/b" });
  expect(found).toMatchObject({ message: { fullname: "job@output/a/b" } });
});
