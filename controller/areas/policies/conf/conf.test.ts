import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { multipart, openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import {
  KV_TXN_MAX_OPERATIONS,
  POLICY_CONF_MAX_BYTES,
  POLICY_CONFS_PER_HOST_MAX_BYTES,
  POLICY_PARALLEL_HOSTS,
} from "../../../../common/limits.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { ConfStore } from "./store.ts";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let admin: string;
const principal = testPrincipal();
const POLICY = { name: "p", rule: "/matrix/rules/r", command: "true", ctype: 1, interval: 5, unit: "minute" } as const;

beforeAll(async () => {
  monitoring = await openMonitoring();
  admin = await monitoring.http.signIn("admin");
});
afterAll(() => monitoring[Symbol.asyncDispose]());
beforeEach(() => monitoring.policies.save(principal, { spec: { kind: "command", ...POLICY }, hosts: ["h1", "h2"] }));
afterEach(async () => {
  monitoring.hosts.agents.clear();
  for (const { name } of await monitoring.policies.list(principal))
    await monitoring.policies.remove(principal, name, { force: true });
});

type Part = Parameters<typeof multipart>[0][number];
const put = async (parts: readonly Part[], { name = "p", session = admin } = {}) =>
  monitoring.http.call(session, {
    method: "PUT",
    url: `/monitoring/policy/deploy/conf/${name}`,
    ...(await multipart(parts)),
  });
const remove = (query: string, session = admin) =>
  monitoring.http.call(session, { method: "DELETE", url: `/monitoring/policy/undeploy/conf/p?${query}` });
const states = () => monitoring.http.call(admin, { method: "GET", url: "/monitoring/policy/conf/p" });
const desired = async (host: string, tenant = "matrix") => monitoring.policies.desired(tenant, host);
const confOf = async (host: string) => {
  const conf = (await desired(host)).policies.find(({ name }) => name === "p")?.conf;
  return conf && Buffer.from(conf).toString("latin1");
};
const digestOf = (text: string) => createHash("sha256").update(text, "latin1").digest("hex");
const place = (content: string, hosts: readonly string[], name = "p") =>
  monitoring.policies.confs.place(principal, { name, hosts, content: Buffer.from(content) });
const stored = async () => {
  const { kv } = await monitoring.engine.tenant("matrix");
  const keys: string[] = [];
  for (const prefix of ["policies/conf/", "policies/confbytes/", "policies/confdigest/", "policies/confchange/"])
    for await (const { key } of entriesUnder(kv, prefix)) keys.push(key);
  return keys;
};

describe("a conf is part of what is wanted on exactly the named hosts", () => {
  test("its bytes and a higher revision are there at once, and connected hosts are told", async () => {
    const before = (await desired("h1")).revision;
    monitoring.hosts.refreshed.length = 0;
    expect(
      await put([
        ["hosts", "h1"],
        ["conf", "level=3"],
      ]),
    ).toMatchObject({
      status: "ok",
      message: [{ host: "h1", state: "waiting", digest: digestOf("level=3"), bytes: 7 }],
      warnings: ["h1: waiting. Its agent has not confirmed it yet."],
    });
    expect([await confOf("h1"), await confOf("h2")]).toEqual(["level=3", undefined]);
    expect((await desired("h1")).revision).toBeGreaterThan(before);
    expect(monitoring.hosts.refreshed).toEqual(["h1"]);
  });

  test("another one replaces it, and DELETE removes it from the named hosts; each raises the revision", async () => {
    await place("one", ["h1", "h2"]);
    await place("two", ["h1"]);
    expect([await confOf("h1"), await confOf("h2")]).toEqual(["two", "one"]);
    const before = (await desired("h1")).revision;
    expect(await remove("hosts=h1&hosts=h2")).toMatchObject({
      status: "ok",
      message: [{ host: "h1", state: "ok", digest: "" }, { host: "h2" }],
    });
    expect([await confOf("h1"), await confOf("h2")]).toEqual([undefined, undefined]);
    expect((await desired("h1")).revision).toBeGreaterThan(before);
    expect(await stored()).toEqual([]);
  });

  test("hosts with the same conf share its bytes, which stay until the last of them has another", async () => {
    await place("same", ["h1", "h2"]);
    expect((await stored()).filter((key) => key.includes("/confbytes/"))).toHaveLength(1);
    await place("other", ["h1"]);
    expect(await confOf("h2")).toBe("same");
    await place("other", ["h2"]);
    expect((await stored()).filter((key) => key.includes("/confbytes/"))).toEqual([
      `policies/confbytes/p/${digestOf("other")}`,
    ]);
  });

  test("its bytes are stored once for all hosts of a call, so the hosts do not hinder each other", async () => {
    const many = Array.from({ length: POLICY_PARALLEL_HOSTS * 4 }, (_, at) => `h${at + 10}`);
    const { kv } = await monitoring.engine.tenant("matrix");
    const txn = vi.spyOn(kv, "txn");
    try {
      expect((await place("same", many)).filter(({ state }) => state === "failed")).toEqual([]);
      const puts = txn.mock.calls.flatMap(([{ then }]) => then.filter(({ key }) => key.includes("/confbytes/")));
      expect(puts).toHaveLength(1);
    } finally {
      txn.mockRestore();
    }
  });

  test("confs of one host that are placed and removed at the same time all take effect", async () => {
    const names = ["a", "b", "c"];
    for (const name of names)
      await monitoring.policies.save(principal, { spec: { kind: "command", ...POLICY, name }, hosts: ["h1"] });
    await place("old", ["h1"]);
    await Promise.all([
      ...names.map((name) => place(`for ${name}`, ["h1"], name)),
      monitoring.policies.confs.withdraw(principal, { name: "p", hosts: ["h1"] }),
    ]);
    const confs = (await desired("h1")).policies.map(({ name, conf }) => [name, conf && Buffer.from(conf).toString()]);
    expect(confs).toEqual([...names.map((name) => [name, `for ${name}`]), ["p", undefined]]);
  });
});

describe("the bytes are those that were sent", () => {
  test("a file part keeps them in any encoding, a text is UTF-8, and an empty conf is a conf", async () => {
    const gbk = Buffer.from([0xc4, 0xe3, 0x0d, 0x0a, 0x00, 0xff]);
    await put([
      ["hosts", "h1"],
      ["conf", { name: "a.conf", content: gbk }],
    ]);
    expect(await confOf("h1")).toBe(gbk.toString("latin1"));
    await put([
      ["hosts", "h1"],
      ["conf", "größe\r\n"],
    ]);
    expect(await confOf("h1")).toBe(Buffer.from("größe\r\n").toString("latin1"));
    expect(
      await put([
        ["hosts", "h1"],
        ["conf", ""],
      ]),
    ).toMatchObject({ message: [{ bytes: 0, digest: digestOf("") }] });
    expect(await confOf("h1")).toBe("");
  });

  test("a conf that is missing, doubled or too large is refused and changes nothing", async () => {
    await place("kept", ["h1"]);
    const large = "x".repeat(POLICY_CONF_MAX_BYTES + 1);
    const refused: [readonly Part[], string][] = [
      [[["hosts", "h1"]], "invalid"],
      [
        [
          ["hosts", "h1"],
          ["config", "typo"],
        ],
        "invalid",
      ],
      [
        [
          ["host", "h1"],
          ["conf", "typo"],
        ],
        "invalid",
      ],
      [
        [
          ["hosts", "h1"],
          ["conf", "a"],
          ["conf", { name: "b", content: "b" }],
        ],
        "invalid",
      ],
      [
        [
          ["hosts", "h1"],
          ["conf", large],
        ],
        "too_large",
      ],
      [
        [
          ["hosts", "h1"],
          ["conf", { name: "a", content: large }],
        ],
        "too_large",
      ],
      [
        [
          ["hosts", "h1"],
          ["hosts", "nowhere"],
          ["conf", "a"],
        ],
        "not_found",
      ],
    ];
    for (const [parts, code] of refused)
      expect(await put(parts), JSON.stringify(parts.slice(0, 1))).toMatchObject({ code });
    expect(await confOf("h1")).toBe("kept");
    await place(large.slice(1), ["h1"]);
  });

  test("a host takes a bounded number of bytes; the answer names the host, and others get the conf", async () => {
    const large = "x".repeat(POLICY_CONF_MAX_BYTES);
    for (let at = 0; at < POLICY_CONFS_PER_HOST_MAX_BYTES / POLICY_CONF_MAX_BYTES; at++) {
      await monitoring.policies.save(principal, { spec: { kind: "command", ...POLICY, name: `n${at}` } });
      await place(large, ["h1"], `n${at}`);
    }
    expect(
      await put([
        ["hosts", "h1"],
        ["hosts", "h2"],
        ["conf", "a"],
      ]),
    ).toMatchObject({
      status: "ok",
      message: [
        { host: "h1", state: "failed" },
        { host: "h2", state: "waiting" },
      ],
      failed: { count: 1, of: 2 },
    });
    expect([await confOf("h1"), await confOf("h2")]).toEqual([undefined, "a"]);
  });
});

describe("the state of each host tells what is there", () => {
  test("ok once the agent reported these bytes; waiting, with the reason, until then", async () => {
    await place("a", ["h1", "h2", "h4"]);
    const one = (host: string) => expect.objectContaining({ host });
    monitoring.hosts.agents.set("h1", { confs: { p: digestOf("a") } });
    monitoring.hosts.agents.set("h2", { isOnline: false });
    expect(await states()).toMatchObject({
      message: [
        { host: "h1", state: "ok", message: "" },
        { host: "h2", state: "waiting", message: "Its agent is not connected." },
        { host: "h4", state: "unassigned" },
      ],
    });
    monitoring.hosts.agents.set("h1", { confs: { p: digestOf("older") }, policies: { p: "failed: disk full" } });
    monitoring.hosts.agents.set("h2", { hasAgent: false });
    expect(await states()).toMatchObject({
      message: [
        { host: "h1", state: "waiting", message: expect.stringContaining("The policy is failed: disk full") },
        { host: "h2", state: "waiting", message: expect.stringContaining("no agent") },
        one("h4"),
      ],
    });
  });

  test.each(["constructor", "__proto__"])("a policy may be named %s", async (name) => {
    await monitoring.policies.save(principal, { spec: { kind: "command", ...POLICY, name }, hosts: ["h1"] });
    expect(await place("a", ["h1"], name)).toMatchObject([
      { state: "waiting", message: expect.stringMatching(/yet\.$/) },
    ]);
    monitoring.hosts.agents.set("h1", { confs: Object.fromEntries([[name, digestOf("a")]]) });
    expect(await monitoring.policies.confs.states(principal, name)).toMatchObject([{ host: "h1", state: "ok" }]);
  });

  test("a removal is waiting until the agent has none; a host that had none is told", async () => {
    await place("a", ["h1"]);
    monitoring.hosts.agents.set("h1", { confs: { p: digestOf("a") } });
    expect(await remove("hosts=h1&hosts=h2")).toMatchObject({
      message: [
        { host: "h1", state: "waiting", digest: "" },
        { host: "h2", state: "ok" },
      ],
      warnings: [expect.stringMatching(/^h1: waiting/), "h2: ok. It had no conf of this policy."],
    });
    expect(await states()).toMatchObject({ message: [{ host: "h1", state: "waiting", digest: "" }] });
    monitoring.hosts.agents.clear();
    expect(await states()).toMatchObject({ message: [] });
  });
});

describe("a conf belongs to its policy", () => {
  test("on a host without the policy it waits, and comes and goes with it", async () => {
    expect(await place("early", ["h3"])).toMatchObject([{ state: "unassigned" }]);
    expect((await desired("h3")).policies).toEqual([]);
    await monitoring.policies.deploy(principal, "p", ["h3"]);
    expect(await confOf("h3")).toBe("early");
    await monitoring.policies.undeploy(principal, "p");
    await monitoring.policies.deploy(principal, "p");
    expect(await confOf("h3")).toBe("early");
  });

  test("it is removed with the policy; another policy of that name does not get it", async () => {
    await place("secret", ["h1"]);
    await monitoring.policies.remove(principal, "p", { force: true });
    expect(await stored()).toEqual([]);
    await monitoring.policies.save(principal, { spec: { kind: "command", ...POLICY }, hosts: ["h1"] });
    expect(await confOf("h1")).toBeUndefined();
  });

  test("its bytes are removed, also if there were more different ones than one transaction removes", async () => {
    const many = Array.from({ length: KV_TXN_MAX_OPERATIONS + 2 }, (_, at) => `${at}`);
    const confs = new ConfStore(monitoring.engine);
    for (const digest of many) await confs.putBytes("matrix", "p", { digest, bytes: Buffer.from("secret") });
    expect((await stored()).filter((key) => key.includes("/confbytes/"))).toHaveLength(many.length);
    await monitoring.policies.remove(principal, "p", { force: true });
    expect(await stored()).toEqual([]);
  });

  test("not even when the controller ended before it was removed; repair removes it", async () => {
    const { kv } = await monitoring.engine.tenant("matrix");
    await place("secret", ["h1"]);
    await kv.delete("policies/definition/p");
    await monitoring.policies.save(principal, { spec: { kind: "command", ...POLICY }, hosts: ["h1"] });
    expect(await confOf("h1")).toBeUndefined();
    expect((await states())["message"]).toEqual([]);
    await monitoring.policies.repair("matrix");
    expect(await stored()).toEqual([]);
  });
});

test("only who may deploy policies does so, another tenant has no such policy, and nobody learns the text", async () => {
  const viewer = await monitoring.http.signIn("viewer");
  expect(
    await put(
      [
        ["hosts", "h1"],
        ["conf", "password=hunter22"],
      ],
      { session: viewer },
    ),
  ).toMatchObject({ code: "denied" });
  expect(await remove("hosts=h1", viewer)).toMatchObject({ code: "denied" });
  const other = testPrincipal("administrator", "second");
  const elsewhere = { name: "p", hosts: ["h1"], content: Buffer.from("a") };
  await expect(monitoring.policies.confs.place(other, elsewhere)).rejects.toMatchObject({ code: "not_found" });
  expect(
    await put(
      [
        ["hosts", "h1"],
        ["conf", "a"],
      ],
      { name: "gone" },
    ),
  ).toMatchObject({ code: "not_found" });
  await put([
    ["hosts", "h1"],
    ["conf", "password=hunter22"],
  ]);
  expect(
    monitoring.http.trail.records.filter(({ action }) => action.includes("/conf/p")).map(({ object }) => object),
  ).toContain("p");
  const all = JSON.stringify([
    monitoring.http.trail.records,
    await states(),
    await monitoring.policies.get(principal, "p"),
  ]);
  expect(all).not.toContain("hunter22");
});
