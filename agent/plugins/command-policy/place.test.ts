import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { createExec, type Exec } from "../../commands/exec.ts";
import { hostUsers } from "../../commands/host-user.ts";
import type { Host } from "../../policies/host.ts";
import { placeOf } from "./place.ts";
import type { CommandWork } from "./work.ts";

const never = new AbortController().signal;
let parent: string;
let folder: string;
let exec: Exec;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "odp-place-"));
  folder = join(parent, "p-p");
  await mkdir(folder, { mode: 0o700 });
  exec = createExec({ clock: realClock, folder: join(parent, "running"), environment: { PATH: process.env["PATH"] } });
});
afterEach(() => rm(parent, { recursive: true, force: true }));

function workOf(members: Partial<CommandPolicySpec>, more: Partial<CommandWork> = {}): CommandWork {
  const host: Partial<Host> = { exec, users: hostUsers(exec) };
  const policy = { name: "p", revision: 1, spec: "", depot: undefined };
  const spec: Partial<CommandPolicySpec> = { name: "p", ...members };
  return { host, policy, spec, folder, confPath: undefined, depotFolder: undefined, ...more } as CommandWork;
}

test("a command without a user runs in the folder of its policy, with the variables of the policy and the agent", async () => {
  const place = await placeOf(workOf({ environment: { A: "1" } }, { confPath: "/p/p.conf" }), never);
  const env = { A: "1", ODP_POLICY: "p", ODP_POLICY_FOLDER: folder, ODP_POLICY_CONF: "/p/p.conf" };
  expect(place).toEqual({ cwd: folder, env });
});

test("a user who is not on the host is the reason why the policy does not run", async () => {
  await expect(placeOf(workOf({ user: "odp-is-not-there" }), never)).rejects.toMatchObject({
    code: "not_found",
    message: "This host has no user odp-is-not-there.",
  });
});

// Only root can become another user.
describe.runIf(process.getuid?.() === 0)("a command of another user", () => {
  const conf = () => join(folder, "p.conf");
  beforeEach(() => writeFile(conf(), "secret", { mode: 0o600 }));

  test("runs outside of the agent's folders, which stay the agent's", async () => {
    const place = await placeOf(workOf({ user: "nobody" }), never);
    expect(place).toMatchObject({ cwd: "/", env: { ODP_POLICY: "p" }, user: { name: "nobody" } });
    expect(place.env).not.toHaveProperty("ODP_POLICY_FOLDER");
    expect(await stat(folder)).toMatchObject({ uid: 0, mode: 0o40700 });
  });

  test("may not begin where its user cannot read the conf or the depot, and the reason says what to do", async () => {
    const closed = (path: string) => ({
      code: "denied",
      message: `The user nobody may not read ${path}. Open the folders above it to other users, with chmod o+x.`,
    });
    await expect(placeOf(workOf({ user: "nobody" }, { confPath: conf() }), never)).rejects.toMatchObject(
      closed(conf()),
    );
    const depotFolder = join(parent, "depot");
    await mkdir(depotFolder);
    await expect(placeOf(workOf({ user: "nobody" }, { depotFolder }), never)).rejects.toMatchObject(
      closed(depotFolder),
    );
  });

  test("reads its conf and nothing else of the agent, once the folders above are open", async () => {
    await chmod(parent, 0o711);
    await writeFile(join(folder, "other"), "", { mode: 0o600 });
    const place = await placeOf(workOf({ user: "nobody" }, { confPath: conf() }), never);
    const said: Buffer[] = [];
    const line = `cat "$ODP_POLICY_CONF"; cat ${folder}/other || ls ${folder} || touch ${folder}/new || echo " only"`;
    await exec({ line, ...place, onOutput: (data, stderr) => void (stderr || said.push(data)) });
    expect(Buffer.concat(said).toString()).toBe("secret only\n");
  });
});
