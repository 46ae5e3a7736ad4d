import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { zipOf } from "../helpers/runs/archives.ts";
import { startSshd, type Sshd } from "../helpers/hosts/sshd.ts";
import { form, Installation } from "./installation.ts";

const PASSWORD = "Tr0ub4dor-und-drei-Igel";
const SECRET = "a-secret-of-the-host-4711";
const NO_SECRET = "in-the-third-row-on-the-left";
const TARGET_DEADLINE_S = "20";

const sshd = await startSshd();
if (!sshd && process.env.ODP_REQUIRE_CLUSTER === "1")
  throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

/** A host without an agent, reached by credentials. Its answers are the same as those of an agent. */
describe.skipIf(!sshd)("a host reached over SSH", () => {
  const server = sshd as Sshd;
  let odp: Installation;

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded", ODP_LOG_LEVEL: "trace" });
    await odp.ok("POST", "/host", hostRecord("bare", { privatekey: server.privateKey }));
    for (const version of ["1.0.0", "2.0.0"]) {
      const zip = await zipOf([
        { name: "bin/which.sh", content: `#!/bin/sh\necho this is ${version}\n`, mode: 0o100755 },
      ]);
      await odp.ok(
        version === "1.0.0" ? "POST" : "PUT",
        "/monitoring/depot",
        form({ name: "tool", version }, { "tool.zip": zip }),
      );
    }
  });

  afterAll(async () => {
    await odp.stop();
    await server[Symbol.asyncDispose]();
  });

  function hostRecord(host: string, credentials: Record<string, unknown>, port = server.port): string {
    return JSON.stringify({ host, iplist: ["127.0.0.1"], config: { username: server.username, port, ...credentials } });
  }

  function execute(host: string, cmd: string) {
    const param = JSON.stringify({ cmd, "HOST!": host, timeout: 20 });
    return odp.call("GET", `/job/remote_command@system/common?receive_output=true&param=${encodeURIComponent(param)}`);
  }

  async function place(action: "deploy" | "undeploy", host: string, version: string): Promise<unknown> {
    const fields = {
      hosts: host,
      depots: "tool",
      versions: version,
      remotepath: join(server.home, "tool"),
      timeout: TARGET_DEADLINE_S,
    };
    return odp.ok("POST", `/monitoring/${action}`, form(fields));
  }

  const whichVersion = async () => (await execute("bare", `sh ${server.home}/tool/bin/which.sh`)).message;

  test("runs a job and answers its output, also of a command that fails", async () => {
    expect(await execute("bare", "echo out; echo err >&2")).toMatchObject({
      status: "ok",
      message: expect.stringMatching(/out\n/),
    });
    expect(await execute("bare", "echo half; exit 3")).toMatchObject({
      status: "ok",
      message: expect.stringContaining("half"),
      meta: { runs: [{ host: "bare", state: "failed", code: 3 }] },
    });
    expect(await odp.ok("GET", "/host/bare")).toMatchObject({ sshkey: server.fingerprint, status: "offline" });
  });

  test("deploys a depot, another version in its place, and takes it away", async () => {
    for (const version of ["1.0.0", "2.0.0", "1.0.0"]) {
      expect(await place("deploy", "bare", version)).toMatchObject([
        { host: "bare", depot: "tool", version, state: "ok" },
      ]);
      expect(await whichVersion()).toContain(`this is ${version}`);
    }
    expect(await odp.ok("GET", "/host/bare")).toMatchObject({
      depot: { tool: JSON.stringify([{ version: "1.0.0" }]) },
    });
    expect(await place("undeploy", "bare", "1.0.0")).toMatchObject([{ host: "bare", depot: "tool", state: "ok" }]);
    expect(existsSync(join(server.home, "tool", "bin", "which.sh"))).toBe(false);
    expect(await odp.ok("GET", "/host/bare")).toMatchObject({ depot: {} });
  });

  test("a wrong password ends in one final state, with nothing placed", async () => {
    await odp.ok("POST", "/host", hostRecord("locked", { password: PASSWORD }));
    expect(await place("deploy", "locked", "1.0.0")).toMatchObject([
      { host: "locked", state: "unreachable", message: expect.stringContaining("authentication") },
    ]);
    expect(await execute("locked", "true")).toMatchObject({
      status: "error",
      code: "unavailable",
      error: expect.stringContaining("locked: unreachable"),
    });
    const runs = await odp.mql("select host, status from /matrix/jobs/jobrun where host='locked' limit -1");
    expect(runs).toMatchObject([{ host: "locked", status: "unreachable" }]);
    expect(existsSync(join(server.home, "tool", "bin", "which.sh"))).toBe(false);
  });

  test("a host whose key has changed is refused, until somebody says that the new one is right", async () => {
    const other = await startSshd();
    if (!other) throw new Error("The second server did not start.");
    try {
      const elsewhere = JSON.parse(hostRecord("bare", { privatekey: other.privateKey }, other.port)) as Record<
        string,
        unknown
      >;
      await odp.ok("POST", "/host", JSON.stringify({ ...elsewhere, sshkey: server.fingerprint }));
      expect(await execute("bare", "echo reached")).toMatchObject({
        status: "error",
        message: expect.stringContaining(`is ${other.fingerprint}, its record says ${server.fingerprint}`),
      });
      expect(await place("deploy", "bare", "1.0.0")).toMatchObject([{ state: "unreachable" }]);
      await odp.ok(
        "POST",
        "/host",
        JSON.stringify({ host: "bare", sshkey: other.fingerprint, config: { privatekey: other.privateKey } }),
      );
      expect(await execute("bare", "echo reached")).toMatchObject({
        status: "ok",
        message: expect.stringContaining("reached"),
      });
    } finally {
      await other[Symbol.asyncDispose]();
    }
  });

  test("a host behind one that has an agent is reached over that agent", async () => {
    await odp.enrol("gate");
    const member = { host: "127.0.0.1", proxy: "gate", port: server.port, username: server.username };
    const group = { name: "behind", gtype: "proxy", hosts: [{ ...member, password: server.privateKey }] };
    await odp.ok("POST", "/group", JSON.stringify(group));
    const param = JSON.stringify({ cmd: "pwd; exit 4", "GROUP!": "behind", timeout: 20 });
    const path = `/job/remote_command@system/common?receive_output=true&param=${encodeURIComponent(param)}`;
    expect(await odp.call("GET", path)).toMatchObject({
      message: expect.stringContaining(server.home),
      meta: { runs: [{ host: "127.0.0.1", state: "failed", code: 4 }] },
    });
    await odp.agent("gate").printed(/a tunnel is closed/);
  });

  test("what is no fingerprint of a key is refused", async () => {
    for (const sshkey of ["nonsense", "SHA256:short", "MD5:00:11"]) {
      expect(await odp.call("POST", "/host", JSON.stringify({ host: "bare", sshkey }))).toMatchObject({
        status: "error",
        code: "invalid",
      });
    }
  });

  test("secrets come back nowhere: not in answers, queries, logs or files", async () => {
    const passphrase = "the-passphrase-of-the-key-0815";
    await odp.ok(
      "POST",
      "/host",
      JSON.stringify({ host: "locked", secret: SECRET, config: { passphrase, rack: NO_SECRET } }),
    );
    const answers = [
      await odp.ok("GET", "/host"),
      await odp.ok("GET", "/host/locked"),
      await odp.ok("GET", "/host/bare"),
      await odp.mql("select * from /matrix/system/hostinfo limit -1"),
      await odp.mql("select * from /matrix/system/command limit -1"),
      await odp.mql("select * from /matrix/jobs/jobrun limit -1"),
      await odp.mql("select * from /matrix/system/audit limit -1"),
    ];
    for (const column of ["secret", "credentials"])
      answers.push(
        await odp.call(
          "POST",
          "/mxobject/mql",
          new URLSearchParams({ mql: `select ${column} from /matrix/system/hostinfo` }),
        ),
      );
    const keyLines = server.privateKey.split("\n").filter((line) => line.length > 30 && !line.startsWith("-----"));
    const secrets = [PASSWORD, SECRET, passphrase, ...keyLines];
    expect(secrets.filter((secret) => JSON.stringify(answers).includes(secret))).toEqual([]);
    const { token } = (await odp.ok("POST", "/agent/token", JSON.stringify({ host: "bare" }))) as { token: string };
    secrets.push("correct horse battery", await odp.session(), token, token.split(".").at(-1) ?? token);
    await odp.controller.kill("SIGTERM");
    expect(secrets.filter((secret) => odp.controller.output.includes(secret))).toEqual([]);
    const files = (await readdir(odp.folder, { recursive: true, withFileTypes: true })).filter((entry) =>
      entry.isFile(),
    );
    expect(files.map((file) => file.name)).toContain("controller.log");
    const contents = await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name))));
    // Control: the searched files contain a text that is no secret.
    expect(contents.some((content) => content.includes(NO_SECRET))).toBe(true);
    const held = contents.flatMap((content, at) =>
      secretsIn(content, secrets).map((secret) => ({ file: files[at]?.name, secret })),
    );
    expect(held).toEqual([]);
  });
});

function secretsIn(content: Buffer, secrets: readonly string[]): readonly string[] {
  return secrets.filter(
    (secret) =>
      content.includes(secret) ||
      content.includes(secret, 0, "utf16le") ||
      content.includes(Buffer.from(secret).toString("base64").slice(0, -4)),
  );
}
