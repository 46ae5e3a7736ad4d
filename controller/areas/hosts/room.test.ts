import { afterEach, beforeEach, expect, test } from "vitest";
import { createKeyPem, createRequest } from "../../../agent/identity/csr.ts";
import { AppError } from "../../../common/errors.ts";
import { enrolRequest, openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import type { HostLimits } from "./room.ts";

let limits: HostLimits | AppError;
let world: TestHosts;
beforeEach(async () => {
  limits = { agents: Infinity, servers: Infinity };
  world = await openTestHosts({
    limits: () => (limits instanceof AppError ? Promise.reject(limits) : Promise.resolve(limits)),
  });
});
afterEach(() => world[Symbol.asyncDispose]());

async function enrol(host: string): Promise<string> {
  const { token } = await world.hosts.tokens.create(world.principal(), { host });
  return (await world.hosts.agents.enrol(enrolRequest(token, createRequest(createKeyPem(), host)))).host;
}

const FULL_OF_AGENTS = { code: "too_large", details: { limit: "licence.agent" } };
const FULL_OF_HOSTS = { code: "too_large", details: { limit: "licence.server" } };

test("as many hosts are enrolled as there may be, also when many come at once; one that goes makes room", async () => {
  limits = { agents: 3, servers: Infinity };
  const names = Array.from({ length: 8 }, (_, at) => `web-${at}`);
  const outcomes = await Promise.allSettled(names.map(enrol));
  const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  expect([refused.length, await world.hosts.agents.enrolledCount("matrix")]).toEqual([5, 3]);
  for (const reason of refused) expect(reason).toMatchObject(FULL_OF_AGENTS);
  const enrolled = names.find((_, at) => outcomes[at]?.status === "fulfilled") ?? "";
  expect(await enrol(enrolled), "a host that is enrolled already takes no more room").toBe(enrolled);
  await world.hosts.remove(world.principal(), enrolled);
  await enrol("web-9");
  await expect(enrol("web-10")).rejects.toMatchObject(FULL_OF_AGENTS);
  const { token } = await world.hosts.tokens.create(world.principal("second"), { host: "other" });
  const other = await world.hosts.agents.enrol(enrolRequest(token, createRequest(createKeyPem(), "other")));
  expect(other.tenant, "another tenant has room of its own").toBe("second");
});

test("a token that was refused for want of room serves when there is some", async () => {
  limits = { agents: 0, servers: Infinity };
  const { token } = await world.hosts.tokens.create(world.principal(), { host: "late" });
  const request = enrolRequest(token, createRequest(createKeyPem(), "late"));
  await expect(world.hosts.agents.enrol(request)).rejects.toMatchObject(FULL_OF_AGENTS);
  limits = { agents: 1, servers: Infinity };
  expect(await world.hosts.agents.enrol(request)).toMatchObject({ host: "late" });
});

test("no more hosts are put on record than there may be, and those that are there are changed as before", async () => {
  await enrol("old");
  limits = { agents: Infinity, servers: 2 };
  const save = (host: string) => world.hosts.save(world.principal(), { host, domain: "d" });
  await save("new");
  await expect(save("more")).rejects.toMatchObject(FULL_OF_HOSTS);
  await expect(enrol("more")).rejects.toMatchObject(FULL_OF_HOSTS);
  expect(await save("old")).toMatchObject({ domain: "d" });
  expect(await enrol("new")).toBe("new");
});

test("of licence and quota of agents the smaller one holds, and the refusal names it", async () => {
  limits = { agents: 2, servers: Infinity, agentQuota: 1 };
  await enrol("one");
  await expect(enrol("two")).rejects.toMatchObject({
    code: "too_large",
    message: expect.stringContaining("config.max_agents") as string,
    details: { limit: "max_agents", max: 1 },
  });
  expect(await enrol("one"), "a host that is enrolled already takes no more room").toBe("one");
  limits = { agents: 2, servers: Infinity, agentQuota: 3 };
  await enrol("two");
  await expect(enrol("three")).rejects.toMatchObject(FULL_OF_AGENTS);
  limits = { agents: Infinity, servers: Infinity, agentQuota: 0 };
  await expect(enrol("three")).rejects.toMatchObject({ details: { limit: "max_agents" } });
  expect(await world.hosts.agents.enrolledCount("matrix"), "what is there stays").toBe(2);
});

test("where the licence is over only new hosts are refused", async () => {
  await enrol("old");
  limits = new AppError("denied", "The licence ended.");
  for (const attempt of [() => enrol("new"), () => world.hosts.save(world.principal(), { host: "new" })])
    await expect(attempt()).rejects.toMatchObject({ code: "denied" });
  expect(await world.hosts.save(world.principal(), { host: "old", domain: "d" })).toMatchObject({ domain: "d" });
  expect(await enrol("old")).toBe("old");
});
