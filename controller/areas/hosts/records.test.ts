import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import type { HostView } from "../../../common/api/hosts.ts";
import { encodeJson } from "../../store/format.ts";
import { QueryService } from "../query/index.ts";

let test: TestHosts;
beforeAll(async () => {
  test = await openTestHosts();
});
afterAll(() => test[Symbol.asyncDispose]());

async function listed(
  filter: { tag?: string; status?: boolean } = {},
  principal = test.principal(),
): Promise<string[]> {
  const names: string[] = [];
  for await (const views of test.hosts.list(principal, filter)) names.push(...views.map((view: HostView) => view.host));
  return names.sort();
}

it("the zone of a host is what its record says, where that is one", async () => {
  const admin = test.principal();
  await test.hosts.save(admin, { host: "zoned", config: { time_zone: "Europe/Berlin" } });
  expect(await test.hosts.zone(admin, "zoned")).toBe("Europe/Berlin");
  await test.hosts.save(admin, { host: "zoned", config: { time_zone: "" } });
  expect(await test.hosts.zone(admin, "zoned")).toBeUndefined();
  // An earlier version accepted any text, and clients send back values that they have read.
  const lost = { column: "config", operation: "add", value: { time_zone: "GMT+8" } } as const;
  await test.objects.unrestricted.update(admin, { class: "/matrix/system/hostinfo", id: "hostinfo:zoned" }, [lost]);
  await test.hosts.save(admin, { host: "zoned", config: { time_zone: "GMT+8", note: "x" } });
  await expect(test.hosts.save(admin, { host: "zoned", config: { time_zone: "GMT+9" } })).rejects.toThrow("time zone");
  expect(await test.hosts.zone(admin, "zoned")).toBeUndefined();
  await test.hosts.save(admin, { host: "zoned", config: { time_zone: null } });
  expect(await test.hosts.zone(admin, "zoned")).toBeUndefined();
  expect(await test.hosts.zone(admin, "nobody")).toBeUndefined();
});

describe("host records", () => {
  it("keeps what is sent and leaves alone what is not", async () => {
    const admin = test.principal();
    await test.hosts.save(admin, {
      host: "web-1",
      iplist: ["10.0.0.1"],
      tags: ["linux", "web"],
      config: { username: "root", port: "2222" },
    });
    const view = await test.hosts.save(admin, { host: "web-1", domain: "example.org", config: { note: "x" } });
    expect(view).toMatchObject({
      id: "hostinfo:web-1",
      class: "/matrix/system/hostinfo",
      iplist: ["10.0.0.1"],
      domain: "example.org",
      tags: ["linux", "web"],
      config: { username: "root", port: "2222", note: "x" },
      status: "offline",
    });
    expect((await test.hosts.save(admin, { host: "web-1", config: { note: null } })).config).not.toHaveProperty("note");
  });

  it("keeps what only clients use: flags and a text", async () => {
    const admin = test.principal();
    const given = { isagent: 0, isextagent: 1, iszabbix: 1, sert: "text" };
    expect(await test.hosts.save(admin, { host: "kept", ...given })).toMatchObject(given);
    expect(await test.hosts.save(admin, { host: "kept", iszabbix: 0 })).toMatchObject({ ...given, iszabbix: 0 });
  });

  it("never shows a secret, and keeps it when the mask, nothing or an empty text comes back", async () => {
    const admin = test.principal();
    const view = await test.hosts.save(admin, {
      host: "db-1",
      secret: "topsecret",
      config: { username: "u", password: "hunter2", privatekey: "KEY" },
    });
    expect(JSON.stringify(view)).not.toMatch(/hunter2|KEY|topsecret/);
    expect(view.config).toMatchObject({ password: "******", privatekey: "******" });
    const before = await test.hosts.find(admin, "db-1");
    await test.hosts.save(admin, { host: "db-1", secret: "******", config: { ...view.config, privatekey: "" } });
    const after = await test.hosts.find(admin, "db-1");
    expect(after?.credentials).toEqual(before?.credentials);
    expect(after?.secret).toBe(before?.secret);
    expect(JSON.stringify(after)).not.toMatch(/hunter2|topsecret/);
    await test.hosts.save(admin, { host: "db-1", config: { password: null } });
    expect((await test.hosts.get(admin, "db-1")).config).not.toHaveProperty("password");
  });

  it("lists by tag and presence", async () => {
    const admin = test.principal();
    await test.hosts.save(admin, { host: "tagged", tags: ["special"] });
    expect(await listed({ tag: "special" })).toEqual(["tagged"]);
    expect(await listed({ tag: "special", status: true })).toEqual([]);
    expect(await listed({ tag: "special", status: false })).toEqual(["tagged"]);
  });

  it("keeps the tags that several add to a host by MQL at once, and those that stay when one takes some", async () => {
    const admin = test.principal();
    await test.hosts.save(admin, { host: "shared", tags: ["old", "kept"] });
    const query = new QueryService({ objects: test.objects, runtime: test.runtime });
    const changed = ["tags + 'a'", "tags + 'b'", "tags + 'c'", "tags - 'old'"];
    await Promise.all(
      changed.map((change) =>
        query.rows(admin, `update /matrix/system/hostinfo tags = ${change} where id = 'hostinfo:shared'`),
      ),
    );
    const { tags } = await test.hosts.get(admin, "shared");
    expect([...tags].sort()).toEqual(["a", "b", "c", "kept"]);
  });

  it("says clearly what is wrong", async () => {
    const admin = test.principal();
    await expect(test.hosts.get(admin, "nobody")).rejects.toMatchObject({
      code: "not_found",
      message: "There is no host nobody.",
    });
    await expect(test.hosts.save(admin, { host: "../etc" })).rejects.toMatchObject({ code: "invalid" });
    const lost = { host: "x", config: { time_zone: "Mars/Base" } };
    await expect(test.hosts.save(admin, lost)).rejects.toThrow("no time zone");
    await expect(test.hosts.save(admin, { host: "x", config: { port: "http" } })).rejects.toThrow(
      /config\.port is "http"/,
    );
    await expect(test.hosts.remove(admin, "nobody")).rejects.toMatchObject({ code: "not_found" });
  });

  it("is another world in another tenant, and no viewer writes", async () => {
    await test.hosts.save(test.principal("matrix"), { host: "mine" });
    await expect(test.hosts.get(test.principal("second"), "mine")).rejects.toMatchObject({ code: "not_found" });
    expect(await listed({}, test.principal("second"))).toEqual([]);
    await expect(
      test.hosts.save(test.principal("matrix", "viewer"), { host: "mine", domain: "x" }),
    ).rejects.toMatchObject({ code: "denied" });
  });

  it("is changed by who may write hosts and read none, within the rules", async () => {
    await test.hosts.save(test.principal(), { host: "theirs", domain: "red" });
    const data = [{ class: "/", access: "write" as const, where: "domain = 'green'" }];
    const writer = { ...test.principal(), grants: ["hosts:write"], data };
    await test.hosts.save(writer, { host: "written", domain: "green", tags: ["a"] });
    await test.hosts.save(writer, { host: "written", tags: ["b"] });
    expect(await test.hosts.get(test.principal(), "written")).toMatchObject({ domain: "green", tags: ["b"] });
    await expect(test.hosts.save(writer, { host: "theirs", tags: ["b"] })).rejects.toMatchObject({ code: "denied" });
    await test.hosts.remove(writer, "written");
    expect(await test.hosts.exists(test.principal(), "written")).toBe(false);
  });

  it("shows a principal only the rows and columns that are its own", async () => {
    const admin = test.principal();
    await test.hosts.save(admin, { host: "seen", domain: "green", tags: ["narrow"], sert: "c" });
    await test.hosts.save(admin, { host: "unseen", domain: "red", tags: ["narrow"] });
    const narrow = {
      ...test.principal("matrix", "viewer"),
      data: [{ class: "/", access: "read" as const, where: "domain = 'green'", hidden: ["sert"] }],
    };
    expect(await listed({ tag: "narrow" }, narrow)).toEqual(["seen"]);
    expect(await test.hosts.exists(narrow, "unseen")).toBe(false);
    expect((await test.hosts.get(narrow, "seen")).sert).toBe("");
  });

  it("is reached by MQL through the same rules", async () => {
    const admin = test.principal();
    const query = new QueryService({ objects: test.objects, runtime: test.runtime });
    await query.rows(
      admin,
      "INSERT INTO /matrix/system/hostinfo (host, domain, config) VALUES ('mql-1', 'a', {'username': 'u', 'password': 'hunter2'})",
    );
    expect((await test.hosts.get(admin, "mql-1")).config).toEqual({ username: "u", password: "******" });
    const rows = await query.rows(admin, "SELECT * FROM /matrix/system/hostinfo WHERE host = 'mql-1'");
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toMatch(/hunter2|sealed1/);
    await query.rows(admin, "UPDATE /matrix/system/hostinfo SET domain = 'b' WHERE host = 'mql-1'");
    expect((await test.hosts.get(admin, "mql-1")).domain).toBe("b");
    await expect(
      query.rows(admin, "UPDATE /matrix/system/hostinfo SET status = 'online' WHERE host = 'mql-1'"),
    ).rejects.toThrow(/status/);
    await query.rows(admin, "DELETE FROM /matrix/system/hostinfo WHERE host = 'mql-1'");
    expect(await test.hosts.exists(admin, "mql-1")).toBe(false);
  });

  it("is set right after a crash: nobody is shown online who is not", async () => {
    const admin = test.principal();
    await test.hosts.save(admin, { host: "crashed" });
    const ref = { id: "hostinfo:crashed", class: "/matrix/system/hostinfo" };
    await test.objects.unrestricted.update(admin, ref, [{ column: "status", operation: "set", value: "online" }]);
    const { kv } = await test.engine.system();
    await kv.put("sessionsof/gone/matrix/crashed", encodeJson({ nonce: "n" }));
    const next = await openTestHosts({ beside: test });
    const status = async () => (await test.objects.unrestricted.get(admin, [ref]))[0]?.values.status;
    await expect.poll(status, { timeout: 30_000 }).toBe("offline");
    expect((await test.hosts.get(admin, "crashed")).statustime).toBeTypeOf("number");
    await expect.poll(() => kv.get("sessionsof/gone/matrix/crashed"), { timeout: 30_000 }).toBeUndefined();
    await next[Symbol.asyncDispose]();
  });

  it("notes which depots are there, and since when", async () => {
    const admin = test.principal();
    const beforeMs = Date.now();
    await test.hosts.save(admin, { host: "depots" });
    await test.hosts.noteDepot(admin, "depots", { name: "web", version: "1.0.0" }, true);
    await test.hosts.noteDepot(admin, "depots", { name: "db", version: "2.0.0" }, true);
    expect((await test.hosts.get(admin, "depots")).depot).toEqual({
      web: `[{"version":"1.0.0"}]`,
      db: `[{"version":"2.0.0"}]`,
    });
    const { depottimes, ...never } = await test.hosts.get(admin, "depots");
    expect(Object.keys(depottimes).sort()).toEqual(["db", "web"]);
    expect(Number(depottimes["web"])).toBeGreaterThanOrEqual(beforeMs);
    expect(never).not.toHaveProperty("statustime");
    await expect.poll(() => Date.now()).toBeGreaterThan(Number(depottimes["db"]));
    await test.hosts.noteDepot(admin, "depots", { name: "web", version: "1.0.0" }, true);
    await test.hosts.noteDepot(admin, "depots", { name: "db", version: "2.0.1" }, true);
    const later = (await test.hosts.get(admin, "depots")).depottimes;
    expect(later["web"]).toBe(depottimes["web"]);
    expect(Number(later["db"])).toBeGreaterThan(Number(depottimes["db"]));
    await test.hosts.noteDepot(admin, "depots", { name: "web", version: "0.9.0" }, false);
    expect(await test.hosts.depotsOn(admin, "depots")).toContain("web");
    await test.hosts.noteDepot(admin, "depots", { name: "web", version: "1.0.0" }, false);
    const left = await test.hosts.get(admin, "depots");
    expect([left.depot, left.depottimes]).toEqual([{ db: `[{"version":"2.0.1"}]` }, { db: later["db"] }]);
  });
});

it("shows more than a hundred hosts to a user whose rows are limited", async () => {
  const admin = test.principal();
  for (let at = 0; at < 105; at++) await test.hosts.save(admin, { host: `row-${at}` });
  await test.hosts.save(admin, { host: "other" });
  const ruled = { ...admin, data: [{ class: "/matrix", access: "write" as const, where: "host like 'row-*'" }] };
  expect(await listed({}, ruled)).toHaveLength(105);
});
