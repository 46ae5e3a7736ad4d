import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OdpError } from "../../../common/client/index.ts";
import { writeBundle, type BundleOptions } from "./bundle.ts";
import { PARTS } from "./parts.ts";
import { Redaction } from "./redaction.ts";

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "odp-bundle-"))));
afterAll(() => rm(folder, { recursive: true }));

/** Secrets in each form, in every place that a controller answers. */
const SECRETS = ["kestrel-1", "Qx7kestrel", "osprey-2"];
const PLANTED = [
  "postgres://ana:kestrel-1@db/x",
  "Authorization: Bearer Qx7kestrel",
  '{"password":"kestrel-1"}',
  "--token kestrel-1",
  "odp1.abc.Qx7kestrel",
  "osprey-2",
];
const row = (): object => ({
  ...{
    class: "/acme/jobs/jobdef",
    host: PLANTED[0],
    name: PLANTED[3],
    status: PLANTED[1],
    policies: { load: PLANTED },
  },
  ...{
    depot: { check: PLANTED.join(" ") },
    hosts: PLANTED,
    rule: PLANTED[4],
    message: PLANTED.join("\n"),
    msg: PLANTED,
  },
  ...{ password: "kestrel-1", secretKey: ["kestrel-1"], config: { "acme.password": "kestrel-1" }, warnings: PLANTED },
});

/** As a controller that tells more than it should would answer them. */
const SETTINGS = ["admin_password", "etcd_endpoints", "secret_key", "openid_client_secret"].map((name, at) => ({
  ...{ name, value: PLANTED[at], default: PLANTED.join(" "), given: true },
}));

function options(client: object, secrets: readonly string[] = ["osprey-2"]): BundleOptions {
  return {
    ...{ client: client as never, signal: new AbortController().signal, nowMs: Date.UTC(2026, 0, 2) },
    redaction: new Redaction(secrets),
    own: {
      "versions.json": { odp: "1.2.3", url: PLANTED[0] },
      "checks.json": [{ check: "x", detail: PLANTED.join(" ") }],
    },
  };
}

async function contentOf(file: string, name: string): Promise<string> {
  return (await promisify(execFile)("tar", ["-xzOf", file, name])).stdout;
}

test("no secret of any answer is in the bundle, which only its owner reads, and tar reads", async () => {
  const asked: unknown[] = [];
  const client = {
    call: (id: string, request: unknown) => {
      asked.push(id, request);
      if (id === "getClusterSettings") return Promise.resolve(SETTINGS);
      return Promise.resolve(id === "getReadyz" || id.startsWith("getCluster") ? row() : [row()]);
    },
    download: () => Promise.resolve({ text: () => Promise.resolve(`# odp_x\nodp_x{a="${PLANTED.join(" ")}"} 1\n`) }),
  };
  const file = join(folder, "whole.tar.gz");
  expect(await writeBundle(file, options(client))).toEqual({});
  const names = (await promisify(execFile)("tar", ["-tzf", file])).stdout.trim().split("\n");
  expect(names).toEqual(["versions.json", "checks.json", ...PARTS.map(({ name }) => name), "missing.json"]);
  for (const name of names) {
    const text = await contentOf(file, name);
    for (const secret of SECRETS) expect(text, name).not.toContain(secret);
    if (name.endsWith(".json")) expect(() => JSON.parse(text) as unknown, name).not.toThrow();
    if (name !== "missing.json") expect(text, name).toContain("[removed]");
  }
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.stringify(asked)).toContain("from /acme/jobs/jobrun where");
});

test("parts that the user may not read are named, without secrets in the reason", async () => {
  const refuse = () => Promise.reject(new OdpError("denied", "postgres://ana:kestrel-1@db/x"));
  const file = join(folder, "missing.tar.gz");
  const missing = await writeBundle(file, options({ call: refuse, download: refuse }));
  expect(Object.keys(missing)).toEqual(PARTS.map(({ name }) => name));
  expect(JSON.parse(await contentOf(file, "missing.json"))).toEqual(missing);
  expect(missing["hosts.json"]).toBe("denied: postgres://[removed]@db/x");
});

test("a file that exists is left alone, and an unfinished one is removed", async () => {
  const file = join(folder, "mine");
  await writeFile(file, "mine");
  await expect(writeBundle(file, options({}))).rejects.toMatchObject({ code: "conflict" });
  expect(await readFile(file, "utf8")).toBe("mine");
  const cancelled = { ...options({ call: () => Promise.reject(new Error("x")) }), signal: AbortSignal.abort() };
  await expect(writeBundle(join(folder, "half"), cancelled)).rejects.toThrow();
  await expect(stat(join(folder, "half"))).rejects.toMatchObject({ code: "ENOENT" });
});
