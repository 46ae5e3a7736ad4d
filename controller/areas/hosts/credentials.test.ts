import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostInput } from "../../../common/api/hosts.ts";
import { BareAgent, openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import { eventually } from "../../../test/helpers/programs/programs.ts";
import { TEST_SECRETS } from "../../../test/helpers/time/runtime.ts";
import { SshAccess } from "./ssh/access.ts";
import { HostRecords } from "./records.ts";
import { QueryService } from "../query/index.ts";

const KEY_A = `SHA256:${"A".repeat(43)}`;
const KEY_B = `SHA256:${"B".repeat(43)}`;
const CONFIG = {
  username: "root",
  port: "22",
  address: "10.0.0.1",
  password: "hunter2",
  privatekey: "KEY",
  passphrase: "phrase",
};

let test: TestHosts;
let access: SshAccess;
beforeAll(async () => {
  test = await openTestHosts();
  const { objects, runtime } = test;
  const secrets = TEST_SECRETS;
  const records = new HostRecords({
    objects,
    secrets,
    runtime,
    stores: test.engine,
    actAs: (tenant) => Promise.resolve(test.principal(tenant)),
    query: new QueryService({ objects, runtime }),
    isOnline: () => Promise.resolve(false),
    isHere: () => false,
  });
  access = new SshAccess({
    records,
    secrets,
    actAs: (tenant) => Promise.resolve(test.principal(tenant)),
    trustFirstKey: true,
  });
});
afterAll(() => test[Symbol.asyncDispose]());

const target = (host: string) => ({ tenant: "matrix", host, traceparent: "" });
const signIn = (host: string) => access.address(target(host));

async function saved(host: string, input: Omit<HostInput, "host">): Promise<readonly string[]> {
  const warnings: string[] = [];
  await test.hosts.save(test.principal(), { host, ...input }, { warn: (text) => warnings.push(text) });
  return warnings;
}

describe("stored credentials of a host", () => {
  it("stay while the host stays where it is", async () => {
    await saved("stays", { iplist: ["10.0.0.9"], sshkey: KEY_A, config: CONFIG });
    const shown = await test.hosts.get(test.principal(), "stays");
    const again = { iplist: ["10.0.0.10"], sshkey: shown.sshkey, domain: "x", config: { ...shown.config, rack: "7" } };
    expect(await saved("stays", again)).toEqual([]);
    expect(await signIn("stays")).toMatchObject({
      address: "10.0.0.1",
      password: "hunter2",
      privateKey: "KEY",
      passphrase: "phrase",
    });
  });

  const changes: Record<string, Omit<HostInput, "host">> = {
    "its address": { config: { address: "10.6.6.6" } },
    "its address, taken away": { config: { address: null } },
    "its port": { config: { port: "2222" } },
    "its user": { config: { username: "other" } },
    "its key": { sshkey: KEY_B },
    "its key, forgotten": { sshkey: "" },
    "everything, with masks for secrets": {
      config: { address: "10.6.6.6", password: "******", privatekey: "", passphrase: "***" },
    },
  };
  for (const [index, [what, change]] of Object.entries(changes).entries()) {
    it(`are dropped by a change of ${what}, and the answer says so`, async () => {
      const host = `moved-${index}`;
      await saved(host, { iplist: ["10.0.0.9"], sshkey: KEY_A, config: { ...CONFIG, api_token: "kept" } });
      expect(await saved(host, change)).toContainEqual(
        expect.stringMatching(/password, privatekey, passphrase .*dropped/),
      );
      const record = await test.hosts.find(test.principal(), host);
      expect(Object.keys(record?.credentials ?? {})).toEqual(["api_token"]);
      expect(await signIn(host)).not.toHaveProperty("password");
    });
  }

  it("are those that the same call brings", async () => {
    await saved("new", { sshkey: KEY_A, config: CONFIG });
    expect(await saved("new", { config: { address: "10.0.0.2", password: "correct" } })).toContainEqual(
      expect.stringMatching(/stored privatekey, passphrase /),
    );
    const now = await signIn("new");
    expect(now).toMatchObject({ address: "10.0.0.2", password: "correct" });
    expect(now).not.toHaveProperty("privateKey");
  });

  it("are dropped by a first address in place of none: the name led elsewhere", async () => {
    await saved("named", { config: { username: "root", password: "hunter2" } });
    expect(await saved("named", { iplist: ["10.6.6.6"] })).toHaveLength(1);
    expect(await signIn("named")).not.toHaveProperty("password");
  });

  it("are dropped by MQL alike", async () => {
    await saved("mql", { config: CONFIG });
    const query = new QueryService({ objects: test.objects, runtime: test.runtime });
    await query.rows(
      test.principal(),
      "UPDATE /matrix/system/hostinfo SET config = config + {'address': '10.6.6.6'} WHERE host = 'mql'",
    );
    expect(await signIn("mql")).toEqual({ address: "10.6.6.6", port: 22, username: "root" });
  });

  it("open for the address they were stored for alone, whoever changes the record", async () => {
    await saved("behind", { config: CONFIG });
    const ref = { id: "hostinfo:behind", class: "/matrix/system/hostinfo" };
    await test.objects.unrestricted.update(test.principal(), ref, [
      { column: "config", operation: "add", value: { address: "10.6.6.6" } },
    ]);
    await expect(signIn("behind")).rejects.toMatchObject({ code: "unavailable" });
  });

  it("are not led elsewhere by what an agent says of its addresses", async () => {
    await saved("facts", { config: { username: "root", password: "hunter2" } });
    const agent = new BareAgent(test.agentPort, await test.enrol("facts"));
    await agent.hello({
      facts: { host: "facts", os: "linux", arch: "x", addresses: ["10.6.6.6"], pid: 1, values: {} },
    });
    const shown = async () => (await test.hosts.get(test.principal(), "facts")).config.os;
    await eventually("the facts are on record", 10_000, shown);
    agent.close();
    expect(await signIn("facts")).toMatchObject({ address: "facts", password: "hunter2" });
  });
});

describe("the known key of a host", () => {
  it("is asked for again when the host moves, unless the same call names it", async () => {
    await saved("key", { sshkey: KEY_A, config: CONFIG });
    expect(await saved("key", { config: { ...CONFIG, address: "10.0.0.2" } })).toEqual([
      expect.stringContaining("SSH key"),
    ]);
    expect((await test.hosts.get(test.principal(), "key")).sshkey).toBe("");
    await saved("key", { sshkey: KEY_B });
    await saved("key", { sshkey: KEY_B, config: { ...CONFIG, port: "2222" } });
    expect((await test.hosts.get(test.principal(), "key")).sshkey).toBe(KEY_B);
  });

  it("stays when only the user changes", async () => {
    await saved("user", { sshkey: KEY_A, config: CONFIG });
    await saved("user", { config: { ...CONFIG, username: "other" } });
    expect((await test.hosts.get(test.principal(), "user")).sshkey).toBe(KEY_A);
  });
});

describe("a host that a row rule hides", () => {
  it("is not written over by its name", async () => {
    await saved("hidden", { domain: "red", config: CONFIG });
    const narrow = {
      ...test.principal(),
      data: [{ class: "/", access: "write" as const, where: "domain = 'green'", hidden: [] }],
    };
    await expect(
      test.hosts.save(narrow, { host: "hidden", domain: "green", config: { address: "10.6.6.6" } }),
    ).rejects.toMatchObject({ code: "denied" });
    expect(await signIn("hidden")).toMatchObject({ address: "10.0.0.1", password: "hunter2" });
  });
});
