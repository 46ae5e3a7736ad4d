import { beforeAll, describe, expect, test } from "vitest";
import type { DataRule } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { admin, ALL, type Request, world, useOwnedRecords, call, parts } from "./owned-world.ts";

useOwnedRecords();

function form(fields: Readonly<Record<string, string>>): Pick<Request, "type" | "payload"> {
  return { type: "application/x-www-form-urlencoded", payload: new URLSearchParams(fields).toString() };
}

const json = (value: unknown): Pick<Request, "type" | "payload"> => ({
  type: "application/json",
  payload: JSON.stringify(value),
});
const policy = (name: string, command = "x") => ({
  name,
  rule: "/matrix/rules/open",
  command,
  ctype: 1,
  interval: 1,
  unit: "minute",
});

/** Every call that lists, shows, uses or changes the object of that name. */
const CALLS: Readonly<Record<string, (name: string) => readonly Request[]>> = {
  "/job": (name) => [
    { url: `/job/${name}@d` },
    { url: `/job/exec/${name}@d` },
    { url: `/job/${name}@d?param={}` },
    { method: "PATCH", url: `/job/${name}@d`, ...form({ timeout: "-1" }) },
    { method: "DELETE", url: `/job/${name}@d` },
    { method: "POST", url: "/job", ...form({ name, dir: "d", exec: "false" }) },
  ],
  "/monitoring/policy": (name) => [
    { url: `/monitoring/policy/${name}` },
    { method: "POST", url: `/monitoring/policy/deploy/${name}` },
    { method: "POST", url: `/monitoring/policy/undeploy/${name}` },
    { url: `/monitoring/policy/conf/${name}` },
    { method: "PUT", url: `/monitoring/policy/deploy/conf/${name}`, ...parts({ hosts: "h", conf: "x" }) },
    { method: "DELETE", url: `/monitoring/policy/undeploy/conf/${name}?hosts=h` },
    // A member of the other kind, whose error would tell the kind.
    { method: "PATCH", url: `/monitoring/policy/${name}`, ...json({ match: "x" }) },
    { method: "DELETE", url: `/monitoring/policy/${name}` },
    { method: "POST", url: "/monitoring/policy", ...json(policy(name)) },
  ],
  "/monitoring/depot": (name) => [
    { url: `/monitoring/depot/${name}` },
    { url: `/monitoring/depot/file/${name}?version=1.0.0&filepath=a.sh` },
    { url: `/monitoring/depot/diff/${name}?version=1.0.0&compareVersion=1.0.0` },
    { method: "DELETE", url: `/monitoring/depot/${name}` },
    { method: "POST", url: "/monitoring/depot", ...parts({ name, version: "2.0.0" }, "x") },
    { method: "PUT", url: "/monitoring/depot", ...parts({ name, version: "1.0.0", remark: "x" }) },
    {
      method: "PUT",
      url: "/monitoring/depot/file",
      ...parts({ name, version: "1.0.0", newVersion: "3.0.0", filepath: "a.sh", type: "M", content: "x" }),
    },
    { method: "POST", url: "/monitoring/deploy", ...parts({ hosts: "h", depots: name, versions: "1.0.0" }) },
    { method: "POST", url: "/monitoring/undeploy", ...parts({ hosts: "h", depots: name, versions: "1.0.0" }) },
    {
      method: "POST",
      url: "/monitoring/policy",
      ...json({ ...policy(`with-${name}`), ctype: 0, depotname: name, depotversion: "1.0.0" }),
    },
  ],
};

async function listed(user: string, path: string): Promise<readonly Record<string, unknown>[]> {
  const { message } = await call(user, { url: path });
  return message as readonly Record<string, unknown>[];
}

describe.each(Object.keys(CALLS))("%s", (path) => {
  test("lists what a query finds", async () => {
    expect((await listed("rows", path)).map(({ name }) => name)).toEqual(["mine"]);
    expect(await listed("unseen", path)).toEqual([]);
    expect((await listed("admin", path)).map(({ name }) => name)).toEqual(expect.arrayContaining(["mine", "theirs"]));
  });

  test("what does not exist for the caller is neither shown nor used nor changed", async () => {
    const before = await listed("admin", path);
    for (const [user, name] of [
      ["rows", "theirs"],
      ["unseen", "mine"],
    ] as const) {
      for (const request of CALLS[path]?.(name) ?? []) {
        const what = `${user}: ${request.method ?? "GET"} ${request.url}`;
        const answer = await call(user, request);
        expect(["not_found", "denied"], `${what} was answered ${JSON.stringify(answer)}`).toContain(answer.code);
        expect(JSON.stringify(answer), what).not.toContain("secret");
      }
    }
    expect(await listed("admin", path)).toEqual(before);
  });

  test("hidden columns are left out, of lists and of single ones", async () => {
    const hidden =
      { "/job": ["exec", "creator"], "/monitoring/policy": ["command", "hosts"], "/monitoring/depot": ["remark"] }[
        path
      ] ?? [];
    const one = (await call("columns", CALLS[path]?.("mine")[0] as Request)).message as Record<string, unknown>;
    for (const record of [...(await listed("columns", path)), one])
      for (const column of hidden) expect(Object.keys(record)).not.toContain(column);
    expect(one).toMatchObject({ name: "mine" });
  });
});

describe("groups of hosts", () => {
  const group = (name: string) => json({ name, gtype: "group", hosts: [{ host: "own" }] });
  const names = async (user: string) => (await listed(user, "/group")).map(({ name }) => name);

  test("are listed as a query finds them, without hidden columns", async () => {
    expect(await names("rows")).toEqual(["mine"]);
    expect(await names("unseen")).toEqual([]);
    expect(await names("admin")).toEqual(["mine", "theirs"]);
    const revision = expect.any(String) as string;
    const seen = ["mine", "theirs"].map((name) => ({ name, gtype: "group", revision }));
    expect(await listed("columns", "/group")).toEqual(seen);
  });

  test("that do not exist for the caller, or not whole, are neither made, replaced nor removed", async () => {
    const before = await listed("admin", "/group");
    const put = { method: "PUT", url: "/group" } as const;
    const post = { method: "POST", url: "/group" } as const;
    for (const [user, request, code] of [
      ["rows", { ...put, ...group("theirs") }, "not_found"],
      ["rows", { ...post, ...group("theirs") }, "denied"],
      ["rows", { ...post, ...group("third") }, "denied"],
      ["rows", { method: "DELETE", url: "/group/group/theirs" }, "not_found"],
      ["unseen", { ...put, ...group("mine") }, "not_found"],
      ["unseen", { method: "DELETE", url: "/group/group/mine" }, "not_found"],
      ["columns", { ...put, ...group("mine") }, "denied"],
    ] as const)
      expect(await call(user, request), `${user}: ${request.method} ${request.url}`).toMatchObject({ code });
    expect(await listed("admin", "/group")).toEqual(before);
  });

  test("that do not exist for the caller lead his jobs nowhere", async () => {
    const { jobs } = world.assembly;
    await jobs.save(admin, { name: "mine", dir: "d", exec: ["true"], host: [], group: "theirs" });
    const answer = await call("rows", { url: "/job/exec/mine@d" });
    expect(answer).toMatchObject({ code: "not_found" });
    expect(JSON.stringify(answer)).not.toContain("host-of-theirs");
  });
});

test("a depot that does not exist for the caller is said not to", async () => {
  expect(await call("rows", { url: "/monitoring/depot/exist/theirs" })).toMatchObject({ message: false });
  expect(await call("rows", { url: "/monitoring/depot/exist/mine" })).toMatchObject({ message: true });
});

test("nothing is made that its maker could not see", async () => {
  for (const request of [
    { method: "POST", url: "/job", ...form({ name: "other", dir: "d", exec: "x" }) },
    { method: "POST", url: "/monitoring/policy", ...json(policy("other")) },
  ] as const) {
    expect(await call("rows", request)).toMatchObject({ code: "denied" });
  }
});

test("rules of a class that may not be read are not there", async () => {
  const keys = async (user: string) => (await listed(user, "/mxobject/rule")).map(({ key }) => key);
  expect(await keys("admin")).toEqual(expect.arrayContaining(["/matrix/rules/open", "/matrix/rules/vault"]));
  expect(await keys("unseen")).toEqual(["/matrix/rules/open"]);
  const key = "/matrix/rules/vault";
  for (const request of [
    { method: "DELETE", url: `/mxobject/rule?key=${key}` },
    { method: "PUT", url: "/mxobject/rule", ...form({ key, value: "--class=/matrix/open\n--parser=text" }) },
    {
      method: "PUT",
      url: "/mxobject/rule",
      ...form({ key: "/matrix/rules/new", value: "--class=/matrix/vault\n--parser=text" }),
    },
    { method: "POST", url: "/mxobject/rule/new", ...json({ class: "/matrix/vault", type: "text" }) },
    { method: "POST", url: "/monitoring/policy", ...json({ ...policy("vaulted"), rule: key }) },
  ] as const) {
    expect(["not_found", "denied"], request.url).toContain((await call("unseen", request)).code);
  }
});

describe("rules on the class of files", () => {
  const fs = (method: "GET" | "PUT" | "DELETE", url: string, fields?: Readonly<Record<string, string>>): Request => ({
    method,
    url,
    ...(fields && parts(fields)),
  });

  beforeAll(async () => {
    const data: readonly DataRule[] = [
      ALL,
      { class: "/matrix/filesystem", access: "write", where: "owner = 'filer'", hidden: ["attr"] },
    ];
    const rights = { grants: ["*:read", "*:write"], data };
    await world.assembly.users.create(testPrincipal(), { username: "filer", password: PASSWORD, rights });
    for (const [user, name] of [
      ["admin", "theirs"],
      ["filer", "mine"],
    ] as const)
      expect(await call(user, fs("PUT", `/fs/home/filer/${name}.txt`, { data: `text of ${name}` }))).toMatchObject({
        status: "ok",
      });
  });

  test("hold for /fs and /static: neither rows nor columns come out that MQL does not show", async () => {
    const names = (await listed("filer", "/fs/home/filer?type=dir")).map(({ name }) => name);
    const asked = (await call("filer", { url: "/mxobject/mql?mql=select name from /matrix/filesystem" })).message;
    expect([names, asked]).toEqual([["mine.txt"], [{ name: "mine.txt" }]]);
    for (const url of ["file", "open", "download", "attr", "tag"].map(
      (type) => `/fs/home/filer/theirs.txt?type=${type}`,
    ))
      expect(await call("filer", { url }), url).toMatchObject({ code: "not_found" });
    expect(await call("filer", { url: "/static/home/filer/theirs.txt" })).toMatchObject({ code: "not_found" });
    expect(await call("filer", { url: "/fs/home/filer/theirs.txt?type=check" })).toMatchObject({ message: false });
  });

  test("hold for changes, and the file stays as it was", async () => {
    for (const request of [
      fs("PUT", "/fs/home/filer/theirs.txt", { data: "taken" }),
      fs("PUT", "/fs/home/filer/mine.txt", { type: "attr", attr: "{}" }),
      fs("DELETE", "/fs/home/filer/theirs.txt"),
      { method: "POST", url: "/fs/copy", ...form({ srcpath: "/home/filer/theirs.txt", dstpath: "/home/filer/own" }) },
    ] as const)
      expect(["not_found", "denied"], `${request.method} ${request.url}`).toContain(
        (await call("filer", request)).code,
      );
    expect(await call("admin", { url: "/fs/home/filer/theirs.txt?type=file" })).toMatchObject({
      message: "text of theirs",
    });
  });
});
