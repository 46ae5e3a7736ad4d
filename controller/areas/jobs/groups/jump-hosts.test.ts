import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GroupInput } from "../../../../common/api/job-groups.ts";
import type { HostInput } from "../../../../common/api/hosts.ts";
import { KeyWorld, OLD } from "../../../../test/helpers/areas/key-world.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { startSshd, type Sshd } from "../../../../test/helpers/hosts/sshd.ts";

const [first, second] = [await startSshd(), await startSshd()];
if (!first && process.env.CI) throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

const admin = testPrincipal();

/** The examples of the page, in order. */
async function examples(): Promise<readonly string[]> {
  const page = await readFile("deploy/docs/jump-hosts.md", "utf8");
  return [...page.matchAll(/```json\n([^`]+)```/g)].map(([, text = ""]) => text);
}

/** Puts the addresses and keys of this test's servers into an example. */
function placed(text: string, { port, username, privateKey }: Sshd): string {
  return text
    .replaceAll(/192\.0\.2\.7|10\.0\.0\.5/g, "127.0.0.1")
    .replaceAll('"22"', JSON.stringify(String(port)))
    .replaceAll(/"(ops|dba)"/g, JSON.stringify(username))
    .replaceAll('"-----BEGIN …"', JSON.stringify(privateKey));
}

describe.skipIf(!first || !second)("hosts behind a jump host", () => {
  const [gate, far] = [first as Sshd, second as Sshd];
  let world: KeyWorld;
  beforeAll(async () => {
    world = await KeyWorld.open([OLD]);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
    for (const server of [gate, far]) await server[Symbol.asyncDispose]();
  });

  it("are reached by what the page for operators says, and have the key on record that they showed", async () => {
    const [host = "", group = "", param = ""] = await examples();
    const { hosts, jobGroups, runs } = world.assembly;
    await hosts.save(admin, JSON.parse(placed(host, gate)) as HostInput);
    const { warnings } = await jobGroups.save(admin, JSON.parse(placed(group, far)) as GroupInput);
    expect(warnings).toEqual([]);
    const run = await runs.execute(admin, "remote_command@system/common", { param: placed(param, far) });
    const [end] = await run.finished;
    expect(end).toMatchObject({ host: "127.0.0.1", state: "ok", message: "" });
    expect(end?.output).toMatch(/sh\s*$/);
    const [kept] = await jobGroups.list(admin);
    expect(kept?.hosts).toMatchObject([{ password: "******", sshkey: far.fingerprint }]);
    expect((await hosts.get(admin, "gate")).sshkey).toBe(gate.fingerprint);
  });
});
