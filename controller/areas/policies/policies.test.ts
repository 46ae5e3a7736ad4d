import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import type { DepotToDeploy } from "../hosts/index.ts";
import { noClasses } from "../../../test/helpers/objects/memory/objects.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { MemoryStores } from "../../../test/helpers/engines/memory/stores.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { DepotUsers } from "../depots/index.ts";
import type { SystemClass } from "../objects/index.ts";
import type { Rule } from "../rules/index.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvTxn } from "../../store/kv.ts";
import { policyClasses } from "./classes.ts";
import { PolicyService } from "./service.ts";
import { ALONE, NAMED_HOSTS, noReports } from "../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
const other = testPrincipal("administrator", "second");
const viewer = testPrincipal("viewer");

let refreshed: { tenant: string; hosts: readonly string[] }[];
let users: DepotUsers;
let engine: TestEngine | undefined;
let stores: Stores;
let policies: PolicyService;

function depotOf(name: string, version = "1.0.0"): Promise<DepotToDeploy> {
  if (name !== "web") return Promise.reject(new AppError("not_found", `There is no depot ${name}.`));
  return Promise.resolve({ name, version, files: [], command: "own" });
}

beforeEach(async () => {
  refreshed = [];
  users = new DepotUsers();
  engine = onCluster ? await openTestEngine() : undefined;
  stores = engine ?? new MemoryStores();
  policies = serviceOver(stores);
});

function serviceOver(over: Stores): PolicyService {
  return new PolicyService({
    targets: NAMED_HOSTS,
    controllers: ALONE,
    limit: { percent: 20, hosts: 5 },
    stores: over,
    runtime: testRuntime(),
    rules: {
      load: (_principal, key) =>
        key.includes("missing")
          ? Promise.reject(new AppError("not_found", `no rule ${key}`))
          : Promise.resolve({} as Rule),
    },
    objects: noClasses(),
    actAs: (tenant) => Promise.resolve(testPrincipal("administrator", tenant)),
    hosts: {
      wayTo: (_principal, host) => Promise.resolve(/^h\d+$/.test(host) ? ("agent" as const) : undefined),
      policyReports: () => noReports(),
      agentState: () => Promise.resolve(undefined),
      refresh: (tenant, hosts) => void refreshed.push({ tenant, hosts }),
    },
    depots: {
      toDeploy: (_principal, name, version) => depotOf(name, version),
      users,
    },
  });
}

afterEach(() => engine?.close());

const command = (more: Partial<PolicySpec> = {}): PolicySpec =>
  ({
    kind: "command",
    name: "uptime",
    rule: "/matrix/rules/uptime",
    command: "uptime",
    ctype: 1,
    interval: 5,
    unit: "second",
    ...more,
  }) as PolicySpec;
const log = (more: Partial<PolicySpec> = {}): PolicySpec =>
  ({
    kind: "log",
    name: "access",
    rule: "/matrix/rules/access",
    dir: "/var/log",
    match: "^(?<vhost>\\w+)\\.log(\\.(?<day>\\w+))?$",
    ...more,
  }) as PolicySpec;
const onHosts = (spec: PolicySpec, ...hosts: string[]) => policies.save(admin, { spec, hosts });
const names = async (host: string, tenant = "matrix") =>
  (await policies.desired(tenant, host)).policies.map((policy) => policy.name);
const revision = async (host: string) => (await policies.desired("matrix", host)).revision;

describe("saving", () => {
  test("warns of members without effect", async () => {
    const told: string[] = [];
    await policies.save(admin, { spec: command({ attrs: { timezone: "UTC" } }), warn: (text) => void told.push(text) });
    expect(told).toEqual(["The attribute timezone has no effect; did you mean time_zone?"]);
  });

  test("with hosts it is deployed at once: the hosts are told and get the whole spec", async () => {
    expect(await onHosts(command(), "h1", "h2", "h1")).toMatchObject({
      id: "policy:uptime",
      class: "/matrix/system/policy",
      status: "deployed",
      hosts: ["h1", "h2"],
    });
    expect(refreshed).toEqual([{ tenant: "matrix", hosts: ["h1", "h2"] }]);
    const [policy] = (await policies.desired("matrix", "h1")).policies;
    expect(JSON.parse(policy?.spec ?? "")).toEqual(command());
    expect(policy).toMatchObject({ name: "uptime" });
  });

  test("without hosts it is kept and runs nowhere until it is deployed", async () => {
    expect(await policies.save(admin, { spec: command() })).toMatchObject({ status: "undeployed", hosts: [] });
    await expect(policies.deploy(admin, "uptime")).rejects.toThrow("no hosts");
    expect(await policies.deploy(admin, "uptime", ["h1"])).toMatchObject({ status: "deployed", hosts: ["h1"] });
    expect(await names("h1")).toEqual(["uptime"]);
  });

  test("it is named to who asks what needs its rule, as far as he may see it", async () => {
    await policies.save(admin, { spec: command() });
    await policies.save(admin, { spec: command({ name: "other", rule: "/matrix/rules/other" }) });
    expect(await policies.needing(admin, "/matrix/rules/uptime")).toEqual(["uptime"]);
    expect(await policies.needing({ ...admin, grants: ["rules:write"] }, "/matrix/rules/uptime")).toEqual([]);
  });

  test("again with other hosts it moves: who is no longer named stops", async () => {
    await onHosts(command(), "h1", "h2");
    await onHosts(command(), "h2", "h3");
    expect([await names("h1"), await names("h2"), await names("h3")]).toEqual([[], ["uptime"], ["uptime"]]);
  });

  test("the same spec again restarts nothing; another one does", async () => {
    await onHosts(command(), "h1");
    const before = (await policies.desired("matrix", "h1")).policies[0]?.revision;
    await policies.save(admin, { spec: command(), hosts: ["h1", "h2"], tags: ["a"] });
    expect((await policies.desired("matrix", "h1")).policies[0]?.revision).toBe(before);
    await onHosts(command({ interval: 6 }), "h1", "h2");
    expect((await policies.desired("matrix", "h1")).policies[0]?.revision).toBeGreaterThan(before ?? 0);
  });

  test("an empty zone or encoding is none", async () => {
    await onHosts(command({ attrs: { time_zone: "", encoding: "" } }), "h1");
    expect(await policies.list(admin)).toHaveLength(1);
  });

  test.each<[string, PolicySpec, string]>([
    [
      "a rule that is not there",
      command({ rule: "/matrix/rules/missing" }),
      "rule /matrix/rules/missing cannot be used",
    ],
    ["a depot that is not there", command({ ctype: 0, depotname: "none", depotversion: "1.0.0" }), "no depot none"],
    ["ctype 0 without depot", command({ ctype: 0 }), "depotname is missing"],
    ["ctype 0 without version", command({ ctype: 0, depotname: "web" }), "depotversion is missing"],
    ["a zone that is not known", command({ attrs: { time_zone: "Mars/Base" } }), "no time zone"],
    ["a delimiter that does not parse", command({ delimiter: "(" }), "delimiter is refused"],
    ["a match with a back-reference", log({ match: "(a)\\1" }), "match is refused"],
    ["a matchregexp that does not parse", log({ matchregexp: "[" }), "matchregexp is refused"],
    ["an order by a group that match lacks", log({ priority: ["nope"] }), '"nope"'],
    ["a differentiator that match lacks", log({ differentiator: "nope" }), '"nope"'],
    ["a translation that is no table of numbers", log({ translation: { day: { mon: "x" } } } as never), "translation"],
    ["an interval of nothing", command({ interval: 0 }), "interval"],
    ["a name that is a path", command({ name: "../x" }), "slash"],
  ])("%s is refused by name, and nothing is kept", async (_what, spec, reason) => {
    await expect(onHosts(spec, "h1")).rejects.toThrow(reason);
    expect(await policies.list(admin)).toEqual([]);
    expect(refreshed).toEqual([]);
  });

  test("unknown hosts are named", async () => {
    await expect(onHosts(command(), "h1", "nope", "neither")).rejects.toThrow("no host nope, neither");
  });
});

describe("what a host is to do", () => {
  test("its revision rises with every change for it, and with no other", async () => {
    await onHosts(log(), "h1");
    const seen = [await revision("h1")];
    const steps = [
      () => onHosts(command(), "h1", "h2"),
      () => onHosts(command({ interval: 9 }), "h1", "h2"),
      () => policies.undeploy(admin, "uptime"),
      () => policies.deploy(admin, "uptime"),
      () => policies.remove(admin, "uptime", { force: true }),
      () => policies.remove(admin, "access", { force: true }),
    ];
    for (const step of steps) {
      await step();
      seen.push(await revision("h1"));
    }
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    const before = await revision("h1");
    await onHosts(command({ name: "elsewhere" }), "h2");
    expect(await revision("h1")).toBe(before);
  });

  test("a host nobody gave anything has revision 0 and no policies", async () => {
    expect(await policies.desired("matrix", "h9")).toEqual({ revision: 0, policies: [] });
  });

  test("a policy of type 0 brings its depot, with the policy's own command when it has one", async () => {
    await onHosts(command({ ctype: 0, depotname: "web", depotversion: "1.0.0" }), "h1");
    await onHosts(
      command({ name: "b", ctype: 0, depotname: "web", depotversion: "1.0.0", depotcommand: "make" }),
      "h1",
    );
    const { policies: desired } = await policies.desired("matrix", "h1");
    expect(desired.map((policy) => [policy.name, policy.depot?.command])).toEqual([
      ["b", "make"],
      ["uptime", "own"],
    ]);
  });

  test("many changes at once leave every host with what the last word says", async () => {
    await onHosts(command(), "h1", "h2", "h3");
    await Promise.allSettled([
      policies.undeploy(admin, "uptime"),
      policies.deploy(admin, "uptime", ["h4"]),
      policies.deploy(admin, "uptime"),
      onHosts(log(), "h1", "h4"),
      policies.undeploy(admin, "uptime"),
    ]);
    const { status, hosts } = await policies.get(admin, "uptime");
    for (const host of hosts) expect((await names(host)).includes("uptime")).toBe(status === "deployed");
    expect(await names("h1")).toContain("access");
  });

  test("after a controller that died in between, repair makes the lists follow", async () => {
    await onHosts(command(), "h1");
    const { kv } = await stores.tenant("matrix");
    await kv.delete("policies/host/h1");
    expect(await names("h1")).toEqual([]);
    await policies.repair("matrix");
    expect(await names("h1")).toEqual(["uptime"]);
  });

  test("after a controller that died before the hosts' lists, maintenance completes the change, and that one alone", async () => {
    await onHosts(command(), "h1");
    const { kv } = await stores.tenant("matrix");
    const targets = { hosts: ["h1", "h2"], deployed: true, tags: [], unsettled: ["h2"] };
    await kv.put("policies/targets/uptime", encodeJson(targets));
    await kv.delete("policies/host/h1");
    await policies.maintain("matrix");
    expect([await names("h1"), await names("h2")]).toEqual([[], ["uptime"]]);
    expect(refreshed.at(-1)?.hosts).toEqual(["h2"]);
  });
});

describe("removing", () => {
  test("stops it everywhere, forgets it, and a second time is not found", async () => {
    await onHosts(command(), "h1", "h2");
    await policies.remove(admin, "uptime", { force: true });
    expect([await names("h1"), await names("h2")]).toEqual([[], []]);
    expect(refreshed.at(-1)?.hosts).toEqual(["h1", "h2"]);
    await expect(policies.remove(admin, "uptime")).rejects.toMatchObject({ code: "not_found" });
    await expect(policies.deploy(admin, "uptime")).rejects.toMatchObject({ code: "not_found" });
  });

  test("is refused for a policy that is deployed, which goes on; force stops it", async () => {
    await onHosts(command(), "h1", "h2");
    await expect(policies.remove(admin, "uptime")).rejects.toMatchObject({
      code: "conflict",
      message: "The policy uptime is deployed to h1, h2. Undeploy it first, or send force=true to stop and delete it.",
    });
    expect(await names("h1")).toEqual(["uptime"]);
    await policies.undeploy(admin, "uptime");
    await policies.remove(admin, "uptime");
    expect(await policies.list(admin)).toEqual([]);
  });

  test("stops it also where another controller, which died, was about to: made again it runs nowhere else", async () => {
    await onHosts(command(), "h1");
    const { kv, ...store } = await stores.tenant("matrix");
    let settled = 0;
    const txn: typeof kv.txn = async (request) => {
      const answer = await kv.txn(request);
      if (!settles(request) || settled++ > 0) return answer;
      await kv.put("policies/host/h2", encodeJson({ policies: ["uptime"] }));
      await kv.put(
        "policies/targets/uptime",
        encodeJson({ hosts: ["h1", "h2"], deployed: false, tags: [], unsettled: ["h1", "h2"] }),
      );
      return answer;
    };
    const between: Stores = {
      system: () => stores.system(),
      tenant: () => Promise.resolve({ ...store, kv: wrappedKv(kv, { txn }) }),
    };
    await serviceOver(between).remove(admin, "uptime", { force: true });
    expect(settled).toBe(2);
    await onHosts(command(), "h1");
    expect([await names("h1"), await names("h2")]).toEqual([["uptime"], []]);
  });
});

/** True when the transaction notes that all hosts' lists follow the targets. */
function settles({ then }: KvTxn): boolean {
  const targets = then.find(({ key }) => key === "policies/targets/uptime");
  return targets?.kind === "put" && !("unsettled" in decodeStored<object>(targets.value));
}

describe("its depot", () => {
  const web = { tenant: "matrix", name: "web", version: "1.0.0" };
  beforeEach(() => onHosts(command({ ctype: 0, depotname: "web", depotversion: "1.0.0" }), "h1"));

  test("cannot be removed while a policy names that version", async () => {
    const deletion = { ...web, principal: admin };
    await expect(users.refuseDeletion(deletion)).rejects.toMatchObject({
      code: "conflict",
      message: "The depot web 1.0.0 is used by the policies uptime on h1. Change them first, or send force=true.",
    });
    await expect(users.refuseDeletion({ ...deletion, version: "1.0.1" })).resolves.toBeUndefined();
    await expect(users.refuseDeletion({ ...deletion, principal: other })).resolves.toBeUndefined();
    await policies.undeploy(admin, "uptime");
    await expect(users.refuseDeletion(deletion)).rejects.toThrow("policies uptime.");
  });

  test("cannot leave a host on which such a policy is deployed; policies that one may not see are counted", async () => {
    await onHosts(command({ name: "second", ctype: 0, depotname: "web", depotversion: "2.0.0" }), "h1", "h2");
    const leave = (versions: readonly string[], hosts: readonly string[], principal = admin) =>
      users.refuseDeparture({ principal, name: "web", hosts, leaves: (version) => versions.includes(version) });
    await expect(leave(["1.0.0"], ["h1", "h2"])).rejects.toThrow("web 1.0.0 is used by the policies uptime on h1.");
    await expect(leave(["1.0.0", "2.0.0"], ["h1", "h2"])).rejects.toThrow("second on h1, h2; uptime on h1.");
    await expect(leave(["1.0.0"], ["h2"])).resolves.toBeUndefined();
    await expect(leave(["3.0.0"], ["h1"])).resolves.toBeUndefined();
    const deployer = { ...admin, grants: ["depots:run"] };
    await expect(leave(["1.0.0"], ["h1"], deployer)).rejects.toThrow("is used by 1 policy that you may not see.");
    await policies.undeploy(admin, "uptime");
    await expect(leave(["1.0.0"], ["h1"])).resolves.toBeUndefined();
  });

  test("when its content is replaced, the hosts are told and see a new revision", async () => {
    const before = await revision("h1");
    await users.replaced(web);
    expect(await revision("h1")).toBeGreaterThan(before);
    expect(refreshed.at(-1)).toEqual({ tenant: "matrix", hosts: ["h1"] });
  });
});

test("tenants do not see each other's policies", async () => {
  await onHosts(command(), "h1");
  expect(await policies.list(other)).toEqual([]);
  await expect(policies.get(other, "uptime")).rejects.toMatchObject({ code: "not_found" });
  await expect(policies.remove(other, "uptime")).rejects.toMatchObject({ code: "not_found" });
  expect(await names("h1", "second")).toEqual([]);
});

test("a viewer reads and changes nothing; who may not run may write but not deploy", async () => {
  await onHosts(command(), "h1");
  expect(await policies.list(viewer)).toHaveLength(1);
  const denied = { code: "denied" };
  await expect(policies.save(viewer, { spec: command() })).rejects.toMatchObject(denied);
  await expect(policies.deploy(viewer, "uptime")).rejects.toMatchObject(denied);
  await expect(policies.undeploy(viewer, "uptime")).rejects.toMatchObject(denied);
  await expect(policies.remove(viewer, "uptime")).rejects.toMatchObject(denied);
  const author = { ...admin, grants: ["*:read", "policies:write"] };
  await expect(policies.save(author, { spec: log(), hosts: ["h1"] })).rejects.toMatchObject(denied);
  expect(await policies.save(author, { spec: log() })).toMatchObject({ status: "undeployed" });
});

test("policies are rows of /system/policy that MQL may only delete", async () => {
  const classes: SystemClass[] = [];
  classes.push(...policyClasses(policies));
  expect(classes.map((definition) => definition.path)).toEqual([
    "/system/policy",
    "/system/policyrun",
    "/system/policygap",
    "/system/policystate",
  ]);
  await onHosts(log({ priority: ["day"], translation: { day: { mon: 1 } } }), "h1");
  const [policy] = classes;
  for await (const rows of policy?.provide?.(admin) ?? []) {
    expect(rows).toMatchObject([
      {
        id: "policy:access",
        priority: ["day"],
        translation: { day: '{"mon":1}' },
        hosts: ["h1"],
        status: "deployed",
        created: new TestClock().nowMs(),
        changed: new TestClock().nowMs(),
        creator: "administrator",
      },
    ]);
    const known = new Set([...(policy?.columns.map((column) => column.name) ?? []), "id", "class"]);
    expect(Object.keys(rows[0] ?? {}).filter((name) => !known.has(name))).toEqual([]);
  }
  expect([policy?.guard.insert, policy?.guard.update]).toEqual([undefined, undefined]);
  await expect(policy?.guard.remove?.(admin, ["policy:access"])).rejects.toMatchObject({ code: "conflict" });
  await policies.undeploy(admin, "access");
  expect(await policy?.guard.remove?.(admin, ["policy:access"])).toBe(1);
});
