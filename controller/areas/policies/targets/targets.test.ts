import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestHosts, testPrincipalOf, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { ALONE } from "../../../../test/helpers/hosts/named-hosts.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores, TenantStore } from "../../../store/engine.ts";
import { DepotUsers } from "../../depots/index.ts";
import { HostTargets } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../../query/index.ts";
import type { Rule } from "../../rules/index.ts";
import { policyClasses } from "../classes.ts";
import { PolicyService } from "../service.ts";

/** Policies on hosts that expressions match, with records of hosts. No agent is connected. */

const admin = testPrincipalOf();
const ALL = [{ class: "/matrix", access: "write" as const }];
const author: Principal = { ...admin, user: "author" };
const SPEC = { kind: "command", name: "p", rule: "/r", command: "true", ctype: 1, interval: 1, unit: "hour" } as const;
const WEB = Array.from({ length: 10 }, (_, at) => `web-${at}`);

let world: TestHosts;
let policies: PolicyService;
/** Present rights of users. */
let users: Record<string, Principal>;
/** Hosts that changed; a controller that ended has no listener. */
let onChanged: (tenant: string, host: string) => void;
beforeEach(async () => {
  world = await openTestHosts({ onChanged: (tenant, host) => onChanged(tenant, host) });
  users = { author };
  policies = controller();
  for (const definition of policyClasses(policies)) world.objects.registerSystemClass(definition);
  onChanged = (tenant, host) => policies.targets.changed.add(tenant, host);
});
afterEach(async () => {
  await policies.targets.close();
  await world[Symbol.asyncDispose]();
});

function controller(controllers = ALONE, stores: Stores = world.engine): PolicyService {
  const { objects, runtime, hosts } = world;
  return new PolicyService({
    ...{ stores, runtime, objects, hosts, controllers },
    targets: new HostTargets({ query: new QueryService({ objects, runtime }) }),
    rules: { load: () => Promise.resolve({} as Rule) },
    depots: { toDeploy: () => Promise.reject(new Error("not asked")), users: new DepotUsers() },
    actAs: () => Promise.resolve(admin),
    authors: { present: (_tenant, user) => Promise.resolve(users[user]) },
    limit: { percent: 20, hosts: 5 },
  });
}

const place = (...hosts: string[]) => policies.save(author, { spec: SPEC, hosts });
const web = async (tags: readonly string[] = ["role/web"], hosts: readonly string[] = WEB) => {
  for (const host of hosts) await world.hosts.save(admin, { host, tags: [...tags] });
};
const settled = () => policies.targets.changed.settled();
/** From now on no controller notices a change of a host, also none that was made before. */
const unnoticed = async () => {
  await settled();
  onChanged = () => undefined;
};
const onHosts = async (...hosts: string[]) => {
  const wanted = [];
  for (const host of hosts) if ((await policies.desired("matrix", host)).policies.length > 0) wanted.push(host);
  return wanted;
};
const change = async (host: string, tags: string[]) => {
  await world.hosts.save(admin, { host, tags });
  await settled();
};

test("a host that joins a target gets the policy, and one that leaves it loses it", async () => {
  await web(["role/web"], ["web-0", "web-1"]);
  await world.hosts.save(admin, { host: "db-1" });
  expect(await place("tag:role", "db-1")).toMatchObject({
    hosts: ["tag:role", "db-1"],
    matched: ["web-0", "web-1", "db-1"],
    status: "deployed",
  });
  expect(await onHosts("web-0", "web-1", "web-2", "db-1")).toEqual(["web-0", "web-1", "db-1"]);
  await change("web-2", ["role/web/front"]);
  await change("web-0", []);
  expect(await onHosts("web-0", "web-1", "web-2", "db-1")).toEqual(["web-1", "web-2", "db-1"]);
  await world.hosts.remove(admin, "web-1");
  await settled();
  expect((await policies.get(admin, "p")).matched).toEqual(["db-1", "web-2"]);
});

test("a target without a host is accepted with a warning, and waits for its first host; facts count as well", async () => {
  const warnings: string[] = [];
  const hosts = ["where:depot contains 'probe'"];
  await policies.save(author, { spec: SPEC, hosts, warn: (text) => warnings.push(text) });
  expect(warnings).toEqual(["where:depot contains 'probe' matches no host now."]);
  await web([], ["web-0"]);
  await world.hosts.noteDepot(admin, "web-0", { name: "probe", version: "1.0.0" }, true);
  await settled();
  expect(await onHosts("web-0")).toEqual(["web-0"]);
});

test("changes that no controller noticed are found by the maintenance of the first controller alone", async () => {
  await web(["role/web"], ["web-0"]);
  await place("tag:role");
  await unnoticed();
  await web(["role/web"], ["web-1"]);
  const ids = [{ id: "first" }, { id: "second" }];
  await controller({ ...ALONE, own: "second", all: () => ids }).maintain("matrix");
  expect(await onHosts("web-1")).toEqual([]);
  await controller({ ...ALONE, own: "first", all: () => ids }).maintain("matrix");
  expect(await onHosts("web-0", "web-1")).toEqual(["web-0", "web-1"]);
});

test("the present rights of who saved the hosts decide; named hosts stay", async () => {
  await web(["role/web"], ["web-0", "web-1", "web-2"]);
  await place("web-*", "web-2");
  users["author"] = {
    ...author,
    data: [...ALL, { ...ALL[0]!, class: "/matrix/system/hostinfo", where: "host = 'web-0'" }],
  };
  await policies.maintain("matrix");
  expect(await onHosts(...WEB.slice(0, 3))).toEqual(["web-0", "web-2"]);
  users["author"] = { ...author, grants: ["hosts:read"] };
  await policies.maintain("matrix");
  expect(await onHosts(...WEB.slice(0, 3))).toEqual(["web-2"]);
  users["author"] = author;
  await policies.maintain("matrix");
  expect(await onHosts(...WEB.slice(0, 3))).toEqual(["web-0", "web-1", "web-2"]);
  users = {};
  await policies.maintain("matrix");
  expect(await onHosts(...WEB.slice(0, 3))).toEqual(["web-2"]);
});

test("a removal of many hosts is held until it is confirmed, also in parts and when the policy is saved again", async () => {
  await web();
  await place("tag:role/web");
  for (const host of WEB.slice(0, 6)) await change(host, []);
  expect(await onHosts(...WEB)).toEqual(WEB.slice(4));
  expect(policies.targets.heldCount).toBe(1);
  const [held] = await policies.targets.held(admin);
  expect(held).toMatchObject({ policy: "p", username: "author", matched: 6, hosts: ["web-4", "web-5"] });
  await policies.save(author, { spec: { ...SPEC, interval: 2 }, hosts: ["tag:role/web"] });
  await change("web-0", ["role/web"]);
  expect(await onHosts(...WEB)).toEqual(["web-0", ...WEB.slice(4)]);
  const viewer = testPrincipalOf("matrix", "viewer");
  await expect(policies.targets.confirm(viewer, held!.id)).rejects.toMatchObject({ code: "denied" });
  await expect(policies.targets.confirm(admin, "none")).rejects.toMatchObject({ code: "not_found" });
  expect(await policies.targets.confirm(admin, held!.id)).toMatchObject({ hosts: ["web-4", "web-5"] });
  expect(await onHosts(...WEB)).toEqual(["web-0", ...WEB.slice(6)]);
  expect([policies.targets.heldCount, await policies.targets.held(admin)]).toEqual([0, []]);
});

test("more hosts make a held change another one; other entries and an undeployment end it", async () => {
  await web();
  await place("tag:role/web");
  await unnoticed();
  await web([], WEB.slice(0, 5));
  await policies.maintain("matrix");
  const [held] = await policies.targets.held(admin);
  await web([], WEB.slice(0, 6));
  await policies.maintain("matrix");
  await expect(policies.targets.confirm(admin, held!.id)).rejects.toMatchObject({ code: "not_found" });
  expect(await onHosts(...WEB)).toEqual(WEB);
  await place("tag:role");
  expect(await onHosts(...WEB)).toEqual(WEB.slice(6));
  await web([], WEB);
  await policies.maintain("matrix");
  // Four hosts are fewer than are held.
  expect(await onHosts(...WEB)).toEqual([]);
  await web();
  await policies.maintain("matrix");
  await policies.undeploy(author, "p");
  await web([], WEB);
  await policies.maintain("matrix");
  expect([await onHosts(...WEB), await policies.targets.held(admin)]).toEqual([[], []]);
  expect(await policies.deploy(author, "p")).toMatchObject({ hosts: ["tag:role"], matched: [] });
});

test("a held change is told and confirmed only as far as its policy and hosts are seen", async () => {
  await web();
  await place("tag:role/web");
  await unnoticed();
  await web([], WEB.slice(0, 6));
  await policies.maintain("matrix");
  const [held] = await policies.targets.held(admin);
  const ruled = (rule: object): Principal => ({
    ...admin,
    data: [...ALL, { ...ALL[0]!, class: "/matrix/system/policy", ...rule }],
  });
  const blind = ruled({ hidden: ["hosts", "matched"] });
  expect(await policies.targets.held(blind)).toMatchObject([{ id: held!.id, matched: 0, hosts: [] }]);
  await expect(policies.targets.confirm(blind, held!.id)).rejects.toMatchObject({ code: "denied" });
  const elsewhere = ruled({ where: "name != 'p'" });
  expect(await policies.targets.held(elsewhere)).toEqual([]);
  await expect(policies.targets.confirm(elsewhere, held!.id)).rejects.toMatchObject({ code: "not_found" });
  expect(await onHosts(...WEB)).toEqual(WEB);
});

test("a change that gets more hosts while it is confirmed is not carried out", async () => {
  await web();
  await place("tag:role/web");
  await unnoticed();
  await web([], WEB.slice(0, 5));
  await policies.maintain("matrix");
  const [held] = await policies.targets.held(admin);
  const { engine } = world;
  let isMet = false;
  const meeting = async (name: string): Promise<TenantStore> => {
    const store = await engine.tenant(name);
    const get: typeof store.kv.get = async (...args) => {
      if (!isMet) {
        isMet = true;
        await web([], WEB.slice(0, 6));
        await policies.maintain("matrix");
      }
      return store.kv.get(...args);
    };
    return { ...store, kv: wrappedKv(store.kv, { get }) };
  };
  const met = controller(ALONE, { system: () => engine.system(), tenant: meeting });
  await expect(met.targets.confirm(admin, held!.id)).rejects.toMatchObject({ code: "not_found" });
  expect([isMet, await onHosts(...WEB)]).toEqual([true, WEB]);
  await met.targets.close();
});

test("a token with a part of its user's rights stores no expression, which would have all of them", async () => {
  await web(["role/web"], ["web-0"]);
  const part: Principal = { ...author, byToken: "part" };
  const save = (...hosts: string[]) => policies.save(part, { spec: SPEC, hosts });
  await expect(save("tag:role")).rejects.toMatchObject({ code: "denied" });
  expect(await save("web-0")).toMatchObject({ hosts: ["web-0"] });
});

test("a change of one host costs the same, however many hosts match", async () => {
  let calls = 0;
  const { engine } = world;
  const counted = async (name: string): Promise<TenantStore> => {
    const store = await engine.tenant(name);
    const kv = wrappedKv(store.kv, {
      get: (...args) => (calls++, store.kv.get(...args)),
      list: (...args) => (calls++, store.kv.list(...args)),
      txn: (...args) => (calls++, store.kv.txn(...args)),
    });
    return { ...store, kv };
  };
  policies = controller(ALONE, { system: () => engine.system(), tenant: counted });
  const costs: number[] = [];
  for (const count of [2, 70]) {
    await web(
      ["role/web"],
      Array.from({ length: count }, (_, at) => `web-${at}`),
    );
    await settled();
    await place("tag:role");
    calls = 0;
    await change("late", ["role"]);
    await change("late", []);
    costs.push(calls);
  }
  expect(costs[1]).toBe(costs[0]);
});

test("MQL shows the entries and the matched hosts of a policy", async () => {
  await web(["role/web"], ["web-0"]);
  await place("tag:role");
  const query = new QueryService(world);
  expect(await query.rows(admin, "select hosts, matched from /matrix/system/policy")).toEqual([
    { hosts: ["tag:role"], matched: ["web-0"] },
  ]);
});
