import { afterEach, beforeEach, expect, test } from "vitest";
import { BareAgent, openTestHosts, testPrincipalOf, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { ALONE } from "../../../../test/helpers/hosts/named-hosts.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { HOST_FACTS_MIN_INTERVAL_MS, HOST_STATES_MIN_INTERVAL_MS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { DepotUsers } from "../../depots/index.ts";
import { HostTargets } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../../query/index.ts";
import type { Rule } from "../../rules/index.ts";
import { policyClasses, PolicyService } from "../index.ts";

const admin = testPrincipalOf();
const LATER_MS = HOST_STATES_MIN_INTERVAL_MS;
let laterMs = 0;
let world: TestHosts;
let policies: PolicyService;
let query: QueryService;
const agents: BareAgent[] = [];

beforeEach(async () => {
  laterMs = 0;
  const clock = {
    ...realClock,
    nowMs: () => realClock.nowMs() + laterMs,
    monotonicMs: () => realClock.monotonicMs() + laterMs,
  };
  world = await openTestHosts({ runtime: testRuntime(clock) });
  const { objects, runtime, hosts, engine } = world;
  query = new QueryService({ objects, runtime });
  policies = new PolicyService({
    ...{ stores: engine, runtime, objects, hosts, controllers: ALONE },
    targets: new HostTargets({ query }),
    rules: { load: () => Promise.resolve({} as Rule) },
    depots: { toDeploy: () => Promise.reject(new Error("not asked")), users: new DepotUsers() },
    actAs: () => Promise.resolve(admin),
    limit: { percent: 20, hosts: 5 },
  });
  for (const definition of policyClasses(policies)) objects.registerSystemClass(definition);
});

afterEach(async () => {
  for (const agent of agents.splice(0)) agent.close();
  await policies.targets.close();
  await world[Symbol.asyncDispose]();
});

const place = (name: string, hosts: readonly string[], warn?: (text: string) => void) =>
  policies.save(admin, {
    spec: { kind: "command", name, rule: "/r", command: "true", ctype: 1, interval: 1, unit: "hour" },
    hosts,
    ...(warn && { warn }),
  });
const reports = (states: Readonly<Record<string, string>>) => ({
  $case: "heartbeat" as const,
  value: {
    values: {
      "policy/": "",
      ...Object.fromEntries(Object.entries(states).map(([name, state]) => [`policy/${name}`, state])),
    },
  },
});

/** An agent with a session, which has reported these states of policies. */
async function agentOn(host: string, states: Readonly<Record<string, string>>): Promise<BareAgent> {
  const agent = new BareAgent(world.agentPort, await world.enrol(host));
  agents.push(agent);
  await agent.hello();
  agent.send(reports(states));
  await expect.poll(async () => (await hostOf(host)).policies).toEqual(states);
  await expect
    .poll(async () => (await rowsOf(`/matrix/system/hostinfo where host = '${host}'`))[0]?.["status"])
    .toBe("online");
  return agent;
}

const hostOf = (host: string) => world.hosts.get(admin, host);
const rowsOf = (from: string, principal: Principal = admin): Promise<readonly Row[]> =>
  query.rows(principal, `select * from ${from} order by policy, host`.replace(/hostinfo(.*) order by.*/, "hostinfo$1"));
const statesOf = async (principal?: Principal) =>
  (await rowsOf("/matrix/system/policystate", principal)).map(({ policy, host, state, wanted, message }) =>
    [policy, host, state, wanted, message].join(" | "),
  );

test("each policy has a state on each host that is to run it, with the reason why it does not", async () => {
  await agentOn("up", { p: "running", q: "failed: The folder /logs is not there.", old: "running" });
  await agentOn("new", { p: "wanted" });
  await world.enrol("never");
  const gone = await agentOn("gone", { p: "running" });
  gone.close();
  for (const host of ["plain", "removed"]) await world.hosts.save(admin, { host });
  await place("p", ["up", "new", "never", "gone", "plain", "removed"]);
  await place("q", ["up", "new"]);
  await world.hosts.remove(admin, "removed");
  await expect.poll(async () => (await hostOf("gone")).status).toBe("offline");
  await expect
    .poll(() => statesOf())
    .toEqual([
      "old | up | leaving | false | The host is not to run the policy. Its agent has not reported yet that it ended it.",
      "p | gone | away | true | The agent is not connected. It was last reported as running.",
      "p | never | away | true | The agent is not connected.",
      "p | new | waiting | true | The agent has the policy and has not started it yet.",
      "p | plain | unable | true | This host has no agent and no credentials for SSH. A policy runs by one of them.",
      "p | removed | removed | true | There is no such host. The policy runs there once a host of this name joins.",
      "p | up | running | true | ",
      "q | new | waiting | true | The agent has not reported the policy yet.",
      "q | up | failed | true | The folder /logs is not there.",
    ]);
  await policies.undeploy(admin, "p");
  expect((await statesOf()).filter((state) => state.startsWith("p"))).toEqual([
    "p | gone | leaving | false | The host is not to run the policy. Its agent is not connected, and runs the policy until it is.",
    "p | new | leaving | false | The host is not to run the policy. Its agent has not reported yet that it ended it.",
    "p | up | leaving | false | The host is not to run the policy. Its agent has not reported yet that it ended it.",
  ]);
});

test("a state says since when it is so: a report of the same state keeps the time", async () => {
  const agent = await agentOn("up", { p: "running", q: "running" });
  await place("p", ["up"]);
  await place("q", ["up"]);
  const since = async () =>
    Object.fromEntries(
      (await rowsOf("/matrix/system/policystate")).map(({ policy, since }) => [policy, Number(since)]),
    );
  const first = await since();
  laterMs += LATER_MS;
  agent.send(reports({ p: "running", q: "failed: late" }));
  await expect.poll(async () => (await hostOf("up")).policies["q"]).toBe("failed: late");
  const second = await since();
  expect(second["p"]).toBe(first["p"]);
  expect(second["q"]).toBeGreaterThanOrEqual((first["q"] ?? NaN) + LATER_MS);
  laterMs += LATER_MS;
  agent.close();
  await expect.poll(async () => (await statesOf()).every((state) => state.includes("away"))).toBe(true);
  expect((await since())["p"]).toBeGreaterThanOrEqual((first["p"] ?? NaN) + 2 * LATER_MS);
});

test("a reader gets no state of hosts and policies that rules hide", async () => {
  for (const host of ["seen", "hidden"]) await world.hosts.save(admin, { host });
  await agentOn("seen", { secret: "running" });
  await place("p", ["seen", "hidden"]);
  await place("secret", ["seen"]);
  const all = { class: "/matrix", access: "write" as const };
  const narrow: Principal = {
    ...admin,
    data: [
      all,
      { ...all, class: "/matrix/system/hostinfo", where: "host = 'seen'" },
      { ...all, class: "/matrix/system/policy", where: "name = 'p'" },
    ],
  };
  expect((await statesOf(narrow)).map((state) => state.split(" | ").slice(0, 3))).toEqual([
    ["p", "hidden", "removed"],
    ["p", "seen", "waiting"],
  ]);
  await policies.undeploy(admin, "secret");
  expect((await statesOf(narrow)).filter((state) => state.startsWith("secret"))).toEqual([]);
});

test("columns that are hidden from a reader are as if they were never set", async () => {
  await agentOn("up", { p: "running" });
  await place("p", ["up"]);
  const all = { class: "/matrix", access: "write" as const };
  const without = (path: string, ...hidden: string[]): Principal => ({
    ...admin,
    data: [all, { ...all, class: `/matrix/system/${path}`, hidden }],
  });
  expect(await statesOf(without("policy", "hosts"))).toEqual([]);
  expect(await statesOf(without("hostinfo", "policies"))).toEqual([
    "p | up | waiting | true | The agent has not reported the policy yet.",
  ]);
  expect(await statesOf(without("hostinfo", "status"))).toEqual([
    "p | up | away | true | The agent is not connected. It was last reported as running.",
  ]);
});

test("a daemon that runs has the usage of its processes, as its agent told it last", async () => {
  const agent = await agentOn("up", { p: "running", q: "running", r: "failed: late", t: "running" });
  for (const name of ["p", "q", "r", "t"]) await place(name, ["up"]);
  const usage = {
    "usage/": "6",
    "usage/policy/p": '{"cpu":12.5,"memory":4096,"processes":2}',
    "usage/policy/q": '{"memory":1024,"processes":1}',
    "usage/policy/r": '{"cpu":1,"memory":1,"processes":1}',
    "usage/policy/s": "wrong",
    "usage/policy/t": '{"cpu":1e999,"memory":1.5}',
    "usage/extagent": '{"cpu":0,"memory":2048,"processes":1}',
  };
  laterMs += HOST_FACTS_MIN_INTERVAL_MS;
  agent.send({ $case: "heartbeat", value: { values: usage } });
  await expect.poll(async () => (await hostOf("up")).usage["extagent"]).toBe(usage["usage/extagent"]);
  const rows = await rowsOf("/matrix/system/policystate");
  expect(rows.map(({ policy, cpu_usedpercent, memory_bytes }) => [policy, cpu_usedpercent, memory_bytes])).toEqual([
    ["p", 12.5, 4096],
    ["q", null, 1024],
    ["r", null, null],
    ["t", null, null],
  ]);
  const [host] = await rowsOf("/matrix/system/hostinfo where host = 'up'");
  expect(host?.["usage"]).toMatchObject({ extagent: usage["usage/extagent"], "policy/p": usage["usage/policy/p"] });
});

test("a policy may have the name of a member of all objects", async () => {
  await agentOn("up", { other: "running" });
  await place("constructor", ["up"]);
  expect((await statesOf())[0]).toBe("constructor | up | waiting | true | The agent has not reported the policy yet.");
});

test("a policy that is placed on hosts without an agent is stored with a warning that names them", async () => {
  for (const host of ["plain", "bare"]) await world.hosts.save(admin, { host });
  await world.enrol("able");
  const told: string[] = [];
  const warn = (text: string) => void told.push(text);
  await place("p", ["plain", "able"], warn);
  await policies.deploy(admin, "p", ["bare"], { warn });
  await place("p", ["able"], warn);
  expect(told).toEqual([
    "There is no agent on plain: the policy runs there once one has joined.",
    "There is no agent on bare: the policy runs there once one has joined.",
  ]);
  await expect(place("p", ["able", "none"])).rejects.toMatchObject({ code: "not_found" });
});

const daemon = {
  kind: "command",
  name: "d",
  rule: "/r",
  command: "true",
  ctype: 1,
  interval: 1,
  unit: "hour",
} as const;
const log = { kind: "log", name: "l", rule: "/r", dir: "/var/log", match: ".*" } as const;
const overSsh = (host: string) =>
  world.hosts.save(admin, { host, config: { username: "odp", password: "secret", type: "linux" } });

test("a policy that only an agent can run is refused for a named host over SSH, and told for a matched one", async () => {
  await overSsh("ssh-1");
  for (const spec of [{ ...daemon, isdaemon: true }, log, { ...daemon, command: "cat $ODP_POLICY_CONF" }]) {
    await expect(policies.save(admin, { spec, hosts: ["ssh-1"] })).rejects.toMatchObject({ code: "unsupported" });
    await policies.save(admin, { spec });
    await expect(policies.deploy(admin, spec.name, ["ssh-1"])).rejects.toMatchObject({ code: "unsupported" });
    await policies.remove(admin, spec.name);
  }
  await policies.save(admin, { spec: { ...daemon, isdaemon: true }, hosts: ["ssh-*"] });
  await policies.save(admin, { spec: log, hosts: ["ssh-*"] });
  await place("p", ["ssh-1"]);
  expect(await statesOf()).toEqual([
    "d | ssh-1 | unable | true | A daemon is kept running by an agent, and this host has none.",
    "l | ssh-1 | unable | true | A log is followed by an agent, and this host has none.",
    "p | ssh-1 | waiting | true | No controller has run the policy over SSH yet.",
  ]);
});

test("a change that makes a deployed policy one that only an agent can run is refused", async () => {
  await overSsh("ssh-1");
  await place("p", ["ssh-1"]);
  await expect(policies.edit(admin, { name: "p", isdaemon: true })).rejects.toMatchObject({ code: "unsupported" });
  await policies.undeploy(admin, "p");
  await policies.edit(admin, { name: "p", isdaemon: true });
  await expect(policies.deploy(admin, "p")).rejects.toMatchObject({ code: "unsupported" });
});
