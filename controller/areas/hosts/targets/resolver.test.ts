import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHosts, testPrincipalOf, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { TARGET_HOSTS_MAX } from "../../../../common/limits.ts";
import { QueryService } from "../../query/index.ts";
import { HostTargets } from "./resolver.ts";

const admin = testPrincipalOf();

let world: TestHosts;
let targets: HostTargets;
beforeAll(async () => {
  world = await openTestHosts();
  targets = new HostTargets({ query: new QueryService(world) });
  const hosts = [
    { host: "web-1", tags: ["os/linux"], hostgroups: ["front"], config: { site: "a" } },
    { host: "web-2", tags: ["os/linux/debian"], hostgroups: ["front", "back"], config: { site: "b" } },
    { host: "db_1", tags: ["os"], hostgroups: ["back"], domain: "x.example" },
    { host: "db-2", tags: ["oslo"] },
  ];
  for (const host of hosts) await world.hosts.save(admin, host);
  await world.hosts.save(testPrincipalOf("second"), { host: "web-9", tags: ["os"] });
});
afterAll(() => world[Symbol.asyncDispose]());

const found = async (...entries: string[]) => (await targets.hosts(admin, entries)).hosts;

test.each([
  ["tag:os", ["db_1", "web-1", "web-2"]],
  ["tag:/os/linux", ["web-1", "web-2"]],
  ["group:front", ["web-1", "web-2"]],
  ["web-*", ["web-1", "web-2"]],
  ["*_*", ["db_1"]],
  ["*", ["db-2", "db_1", "web-1", "web-2"]],
  ["where:config.site = 'b' or domain like '*.example'", ["db_1", "web-2"]],
  ["where:not (host = 'web-1')", ["db-2", "db_1", "web-2"]],
])("%j means the hosts of the tenant that match", async (entry, hosts) => {
  expect(await found(entry)).toEqual(hosts);
});

test("a list has each host once, in the order of its entries, and names need not exist", async () => {
  const { hosts, named, warnings } = await targets.hosts(admin, ["gone", "web-2", "tag:os", "tag:none", "web-2"]);
  expect(hosts).toEqual(["gone", "web-2", "db_1", "web-1"]);
  expect(named).toEqual(["gone", "web-2"]);
  expect(warnings).toEqual(["tag:none matches no host now."]);
});

test("an expression means what the principal sees, and needs the right to read hosts; names alone do not", async () => {
  const ruled = { ...admin, data: [{ class: "/matrix", access: "write" as const, where: "host like '*1'" }] };
  expect((await targets.hosts(ruled, ["tag:os"])).hosts).toEqual(["db_1", "web-1"]);
  const none = { ...admin, grants: ["policies:run"] };
  await expect(targets.hosts(none, ["tag:os"])).rejects.toMatchObject({ code: "denied" });
  expect((await targets.hosts(none, ["web-1"])).hosts).toEqual(["web-1"]);
});

test("a column that is hidden or sealed does not exist in a condition", async () => {
  const blind = { ...admin, data: [{ class: "/matrix", access: "write" as const, hidden: ["domain"] }] };
  await expect(targets.hosts(blind, ["where:domain = 'x.example'"])).rejects.toThrow("domain");
  await expect(targets.hosts(admin, ["where:secret = 'a'"])).rejects.toThrow("secret");
});

test("among some hosts those are found that one of the expressions matches", async () => {
  const some = await targets.among(admin, ["db-2", "tag:os", "where:config.site = 'a'"], ["web-1", "db-2", "gone"]);
  expect([...some]).toEqual(["web-1"]);
  expect([...(await targets.existing(admin, ["web-1", "gone", "web-9"]))]).toEqual(["web-1"]);
});

test("all hosts of an expression are found, up to the bound of a list", async () => {
  let count = TARGET_HOSTS_MAX;
  const rows = (_principal: unknown, mql: string) => {
    const limit = Number(/LIMIT (\d+)$/.exec(mql)?.[1]);
    return Promise.resolve(Array.from({ length: Math.min(count, limit) }, (_, at) => ({ host: `h${at}` })));
  };
  const many = new HostTargets({ query: { rows } as never });
  expect((await many.hosts(admin, ["*"])).hosts).toHaveLength(TARGET_HOSTS_MAX);
  count++;
  await expect(many.hosts(admin, ["*"])).rejects.toMatchObject({ code: "too_large" });
});
