import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHosts, testPrincipalOf, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { ALONE } from "../../../../test/helpers/hosts/named-hosts.ts";
import { TEST_SECRETS } from "../../../../test/helpers/time/runtime.ts";
import { depotClasses, DeploymentService, DepotService, DepotUsers } from "../../depots/index.ts";
import { ExtAgentService } from "../../extagents/index.ts";
import { jobClasses, JobRuns, JobService } from "../../jobs/index.ts";
import { policyClasses, PolicyService } from "../../policies/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../../query/index.ts";
import type { Rule } from "../../rules/index.ts";
import { HostTargets } from "./resolver.ts";

/** Calls of other areas that take hosts, on records of hosts that no agent and no credentials reach. */

const admin = testPrincipalOf();
const ALL = [{ class: "/matrix", access: "write" as const }];
/** A user who sees one of the hosts. */
const few: Principal = {
  ...admin,
  user: "few",
  data: [...ALL, { ...ALL[0]!, class: "/matrix/system/hostinfo", where: "host = 'web-1'" }],
};
const other: Principal = {
  ...admin,
  user: "other",
  data: [...ALL, { ...ALL[0]!, class: "/matrix/system/hostinfo", where: "host != 'web-1'" }],
};

let world: TestHosts;
let deployments: DeploymentService;
let agents: ExtAgentService;
let policies: PolicyService;
let jobs: JobService;
let runs: JobRuns;
/** Users with their present rights. */
let users: Readonly<Record<string, Principal>>;
beforeAll(async () => {
  world = await openTestHosts();
  const { engine: stores, objects, runtime, notifications, hosts } = world;
  const query = new QueryService({ objects, runtime });
  const targets = new HostTargets({ query });
  const depots = {
    toDeploy: (_principal: unknown, name: string, version = "") =>
      Promise.resolve({ name, version, files: [], command: "" }),
    isStored: () => Promise.resolve(true),
    users: new DepotUsers(),
  };
  const stored = { outcome: () => Promise.resolve(undefined) };
  const controllers = { own: "this", has: () => true };
  const common = { stores, runtime, objects, hosts, targets, depots, stored, controllers, notifications };
  deployments = new DeploymentService(common);
  agents = new ExtAgentService({ ...common, deployments, clock: runtime.clock });
  const rules = { load: () => Promise.resolve({} as Rule) };
  const limit = { percent: 20, hosts: 5 };
  policies = new PolicyService({ ...common, controllers: ALONE, limit, rules, actAs: () => Promise.resolve(admin) });
  jobs = new JobService(common);
  const authors = { present: (_tenant: string, user: string) => Promise.resolve(users[user]) };
  runs = new JobRuns({ ...common, jobs, secrets: TEST_SECRETS, authors });
  const classes = [...depotClasses(new DepotService(common)), ...policyClasses(policies), ...jobClasses(jobs)];
  for (const definition of classes) objects.registerSystemClass(definition);
  for (const host of ["web-1", "web-2"]) await hosts.save(admin, { host, tags: ["os/linux"] });
  await hosts.save(admin, { host: "db-1" });
  users = { [admin.user]: admin, few, other };
});
afterAll(async () => {
  await runs.close();
  await world[Symbol.asyncDispose]();
});

const hostsOf = (ended: readonly { readonly host: string }[]) => ended.map(({ host }) => host).sort();
const deployment = { depots: ["web"], versions: ["1.0.0"] };
const executed = async (principal: Principal, name: string, param: object = {}) =>
  hostsOf(await (await runs.execute(principal, name, { param: JSON.stringify(param) })).finished);
const define = (principal: Principal, name: string, ...host: string[]) =>
  jobs.save(principal, { name, exec: ["true"], host });

test("a deployment goes to the hosts that its expressions match, each once, and warns of an expression without a host", async () => {
  const warnings: string[] = [];
  const hosts = ["tag:os", "web-2", "none-*"];
  const warn = (text: string) => void warnings.push(text);
  expect(hostsOf(await deployments.deploy(admin, { ...deployment, hosts, warn }))).toEqual(["web-1", "web-2"]);
  expect(warnings).toEqual(["none-* matches no host now."]);
  expect(hostsOf(await deployments.undeploy(few, { ...deployment, hosts: ["*"] }))).toEqual(["web-1"]);
  expect(await deployments.deploy(admin, { ...deployment, hosts: ["tag:none"] })).toEqual([]);
});

test("external agents run on the hosts that their expressions match", async () => {
  expect(hostsOf(await agents.run(admin, "start", { hosts: ["web-*"] }))).toEqual(["web-1", "web-2"]);
});

test("a conf goes to the hosts that its expressions match", async () => {
  const spec = {
    kind: "command",
    name: "p",
    rule: "/r",
    command: "true",
    ctype: 1,
    interval: 1,
    unit: "hour",
  } as const;
  await policies.save(admin, { spec, hosts: ["db-1"] });
  const placed = await policies.confs.place(admin, { name: "p", hosts: ["tag:os"], content: Buffer.from("a") });
  expect(hostsOf(placed)).toEqual(["web-1", "web-2"]);
  expect(hostsOf(await policies.confs.withdraw(few, { name: "p", hosts: ["*"] }))).toEqual(["web-1"]);
  await expect(policies.confs.withdraw(admin, { name: "p", hosts: ["gone"] })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a job runs on the hosts that its expressions match when the run begins, and HOST! takes expressions", async () => {
  await define(admin, "wide", "tag:os", "db-1");
  expect(await executed(admin, "wide")).toEqual(["db-1", "web-1", "web-2"]);
  await world.hosts.save(admin, { host: "late-1", tags: ["os/linux"] });
  expect(await executed(admin, "wide")).toEqual(["db-1", "late-1", "web-1", "web-2"]);
  expect(await executed(admin, "wide", { "HOST!": "web-*" })).toEqual(["web-1", "web-2"]);
  const list = { "HOST!": ["where:host in ('web-1', 'db-1')"] };
  expect(await executed(admin, "wide", list)).toEqual(["db-1", "web-1"]);
  await world.hosts.remove(admin, "late-1");
});

test("an expression of a job matches hosts that both its author and its caller see at that time", async () => {
  await define(few, "narrow", "*", "db-1");
  expect(await executed(admin, "narrow")).toEqual(["db-1", "web-1"]);
  users = { [admin.user]: admin, few: { ...few, data: other.data }, other };
  expect(await executed(admin, "narrow")).toEqual(["db-1", "web-2"]);
  users = { [admin.user]: admin };
  expect(await executed(admin, "narrow")).toEqual(["db-1"]);
  users = { [admin.user]: admin, few, other };
  await define(few, "narrow", "web-*");
  await expect(executed(other, "narrow")).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("web-* of the job narrow matches no host now") as string,
  });
});

test("saving a job refuses a wrong expression, and warns of hosts that are not there", async () => {
  await expect(define(admin, "wrong", "where:status = 'online'")).rejects.toMatchObject({ code: "invalid" });
  const { warnings } = await define(admin, "absent", "web-1", "gone-1", "gone-2", "tag:none");
  expect(warnings).toEqual([
    "tag:none matches no host now.",
    "There is no host gone-1, gone-2: the job cannot run there.",
  ]);
});
