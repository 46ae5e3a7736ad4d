import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHosts, type TestHosts } from "../helpers/hosts/hosts.ts";
import { eventually } from "../helpers/programs/programs.ts";
import type { EmulatedCommand, EmulatedEnd } from "./agent.ts";
import { EmulatedFleet, type Admission } from "./fleet.ts";

const NAMES = ["one", "two", "three"];
const DEADLINE_MS = 30_000;

let hosts: TestHosts;
let fleet: EmulatedFleet;
let behave: (command: EmulatedCommand) => EmulatedEnd | Promise<EmulatedEnd>;

beforeAll(async () => {
  hosts = await openTestHosts();
  const admission: Admission = {
    token: async (host) => (await hosts.hosts.tokens.create(hosts.principal(), { host })).token,
    enrol: (request) => hosts.hosts.agents.enrol(request),
  };
  fleet = await EmulatedFleet.start(NAMES, admission, (command) => behave(command));
});
afterAll(async () => {
  await fleet.stop();
  await hosts[Symbol.asyncDispose]();
});

const dispatch = (host: string, options: { timeoutMs?: number; signal?: AbortSignal; heard?: string[] } = {}) =>
  hosts.hosts.dispatch(
    hosts.principal(),
    host,
    { kind: "exec", line: `say ${host}` },
    {
      timeoutMs: 60_000,
      commandId: randomBytes(8).toString("hex"),
      onOutput: ({ data }) => void options.heard?.push(Buffer.from(data).toString()),
      ...options,
    },
  );

test("each host answers as it is told to, with its line, output and exit code, over a connection of its own", async () => {
  behave = ({ host, command }) => ({
    output: [command.body?.$case === "exec" ? command.body.value.line : ""],
    code: host === "two" ? 3 : 0,
  });
  const heard: string[] = [];
  const ends = await Promise.all(NAMES.map((host) => dispatch(host, { heard })));
  expect(ends.map(({ state, code }) => [state, code])).toEqual([
    ["ok", 0],
    ["failed", 3],
    ["ok", 0],
  ]);
  expect(heard.sort()).toEqual(["say one", "say three", "say two"]);
  expect(hosts.hosts.agents.sessionCount).toBe(NAMES.length);
});

test("a command goes on while its host is away, begins once, and its end is told in the next session", async () => {
  let end: (of: EmulatedEnd) => void = () => undefined;
  behave = () => new Promise<EmulatedEnd>((resolve) => (end = resolve));
  const agent = fleet.agent("one");
  const before = agent.begun.size;
  const outcome = dispatch("one");
  await eventually("it has begun", DEADLINE_MS, () => agent.begun.size > before || undefined);
  agent.cut();
  end({ output: ["late"] });
  expect(await outcome).toMatchObject({ state: "ok", code: 0 });
  expect(agent.begun.size).toBe(before + 1);
  await eventually("all is acknowledged", DEADLINE_MS, () => agent.told || undefined);
});

test("a command that never ends is over at its deadline, and when it is cancelled", async () => {
  behave = () => new Promise<EmulatedEnd>(() => undefined);
  const cancelled = new AbortController();
  const agent = fleet.agent("two");
  const before = agent.begun.size;
  const ends = dispatch("two", { signal: cancelled.signal });
  await eventually("it has begun", DEADLINE_MS, () => agent.begun.size > before || undefined);
  cancelled.abort();
  expect(await ends).toMatchObject({ state: "cancelled" });
  expect(await dispatch("three", { timeoutMs: 200 })).toMatchObject({ state: "timeout" });
});
