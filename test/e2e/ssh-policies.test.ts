import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSshd, type Sshd } from "../helpers/hosts/sshd.ts";
import { Installation } from "./installation.ts";

const PATIENCE = { timeout: 60_000, interval: 200 };
const RULE = "/matrix/rules/load";

const sshd = await startSshd();
if (!sshd && process.env.ODP_REQUIRE_CLUSTER === "1")
  throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

describe.skipIf(!sshd)("command policies of a host over SSH", () => {
  const server = sshd as Sshd;
  let odp: Installation;

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded" });
    await odp.ok("POST", "/host", hostRecord(server.port));
    await odp.mql("create class /matrix/load (name varchar, n int) with kind='record'");
    const lines = "--class=/matrix/load\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";
    await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: RULE, value: lines }));
  });

  afterAll(async () => {
    await odp.stop();
    await server[Symbol.asyncDispose]();
  });

  function hostRecord(port: number): string {
    const config = { username: server.username, port: String(port), privatekey: server.privateKey };
    return JSON.stringify({ host: "bare", iplist: ["127.0.0.1"], config });
  }

  const save = (name: string, command: string, more: object = {}) =>
    odp.ok(
      "POST",
      "/monitoring/policy",
      JSON.stringify({
        name,
        command,
        rule: RULE,
        ctype: 1,
        interval: 1,
        unit: "second",
        split: true,
        hosts: ["bare"],
        ...more,
      }),
    );
  const rows = (text: string) => odp.mql(text) as Promise<readonly Record<string, unknown>[]>;
  const stateOf = async (policy: string) =>
    (await rows(`select state, message from /matrix/system/policystate where policy = '${policy}'`))[0];

  test("run at their times with their members, and store what they print", async () => {
    const command = `echo "$ODP_POLICY,$N"; echo "$(nice)" >&2; echo bad,text`;
    await save("load", command, { environment: { N: "7" }, nice: 3 });
    await expect
      .poll(() => rows("select name, n from /matrix/load limit 1"), PATIENCE)
      .toMatchObject([{ name: "load", n: 7 }]);
    expect(await stateOf("load")).toMatchObject({ state: "running", message: "" });
    const runs = await rows(
      "select state, code, records, message from /matrix/system/policyrun where policy = 'load' limit 1",
    );
    expect(runs).toMatchObject([{ state: "ok", code: 0, records: 2, message: "3" }]);
    const faults = await rows("select * from /matrix/consolelog/rule limit 1");
    expect(faults).toHaveLength(1);
    await odp.ok("DELETE", "/monitoring/policy/load?force=true");
  });

  test("fail with the reason, and recover when the host is reached again", async () => {
    await save("tool", "true", { user: "another" });
    await expect
      .poll(() => stateOf("tool"), PATIENCE)
      .toMatchObject({ state: "failed", message: expect.stringContaining("not as another") });
    await odp.ok("POST", "/host", hostRecord(1));
    await save("tool", `echo up,1`, { user: "" });
    await expect
      .poll(() => stateOf("tool"), PATIENCE)
      .toMatchObject({ state: "failed", message: expect.stringContaining("cannot be reached") });
    await odp.ok("POST", "/host", hostRecord(server.port));
    await expect.poll(() => stateOf("tool"), PATIENCE).toMatchObject({ state: "running" });
  });

  test("end when they are undeployed, also a run in progress", async () => {
    const file = join(server.home, "long");
    await save("long", `trap 'echo ended >> ${file}; exit' TERM; echo begun > ${file}; sleep 60 & wait`);
    await expect.poll(() => readFile(file, "utf8").catch(() => ""), PATIENCE).toBe("begun\n");
    await odp.ok("POST", "/monitoring/policy/undeploy/long");
    await expect
      .poll(() => rows("select state from /matrix/system/policyrun where policy = 'long'"), PATIENCE)
      .toMatchObject([{ state: "interrupted" }]);
    expect(await readFile(file, "utf8")).toBe("begun\nended\n");
    await expect.poll(() => stateOf("long"), PATIENCE).toBeUndefined();
  });
});
