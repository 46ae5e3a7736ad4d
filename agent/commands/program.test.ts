import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../test/helpers/time/clock.ts";
import { createExec, type Exec, type ExecOptions } from "./exec.ts";
import { hostUsers } from "./host-user.ts";
import { programOf, type HostUser } from "./program.ts";

const MIB = 1_024 * 1_024;
let folder: string;
let exec: Exec;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-program-"));
  exec = createExec({ clock: realClock, folder: join(folder, "running"), environment: { PATH: process.env["PATH"] } });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function outputOf(options: ExecOptions): Promise<string> {
  const said: Buffer[] = [];
  await exec({ ...options, onOutput: (data) => void said.push(data) });
  return Buffer.concat(said).toString().trim();
}

test("limits are those of the command and of what it starts, also where the line has quotes", async () => {
  const limits = { memoryBytes: 512 * MIB, cpuSeconds: 7, nice: 3 };
  const line = `echo "it's" $(ulimit -v) $(ulimit -S -t) $(ulimit -H -t) $(sh -c 'nice')`;
  const own = Number(await outputOf({ line: "nice" }));
  expect(await outputOf({ line, limits })).toBe(`it's ${512 * 1_024} 7 12 ${own + 3}`);
});

test("a command without limits has those of the agent", async () => {
  expect(await outputOf({ line: "ulimit -t" })).toBe("unlimited");
});

test("a command that uses more processor time than its limit is ended by a signal that says so", async () => {
  const ended = await exec({ line: "exec sh -c 'while :; do :; done'", limits: { cpuSeconds: 1 } });
  expect(ended).toMatchObject({ signal: "SIGXCPU", message: "ended by SIGXCPU" });
});

test("a limit that the host does not grant is an error, and the command does not run", async () => {
  const said: Buffer[] = [];
  const { file, args } = programOf({ line: "echo ran", limits: { cpuSeconds: 60 } });
  const quoted = [file, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  // Root may raise its limits again, unless it gives that up.
  const lowered =
    process.getuid?.() === 0 ? `ulimit -t 9; exec setpriv --bounding-set=-all --inh-caps=-all ` : "ulimit -t 9; exec ";
  const ended = await exec({ line: lowered + quoted, onOutput: (data, stderr) => void (stderr || said.push(data)) });
  expect(ended).toMatchObject({ code: 126 });
  expect(said).toEqual([]);
});

describe("users", () => {
  const users = () => hostUsers(exec);

  test("the user of the agent needs no change, and one that is not there is an error", async () => {
    const own = await outputOf({ line: "id -un" });
    expect(await users().find(own)).toBeUndefined();
    const unknown = process.platform === "win32" ? "unsupported" : "not_found";
    await expect(users().find("odp-is-not-there")).rejects.toMatchObject({ code: unknown });
    await expect(users().find("$(reboot)")).rejects.toMatchObject({ code: "invalid" });
  });

  test("an agent that is not root may not run commands as another user, and says so", async () => {
    const asOther: Exec = (options) =>
      exec({ ...options, line: `id() { [ $# -eq 1 ] && echo 1234 || command id "$@"; }; ${options.line}` });
    await expect(hostUsers(asOther).find("root")).rejects.toMatchObject({
      code: "denied",
      message: "The agent may not run commands as root: it runs as the user 1234, who is not root.",
    });
  });

  // Only root can become another user.
  describe.runIf(process.getuid?.() === 0)("of root", () => {
    let other: HostUser;
    beforeAll(async () => {
      const found = await users().find("nobody");
      if (!found) throw new Error("This host runs tests as that user.");
      other = found;
    });

    test("a command has the ids, the groups and the variables of its user, and its limits", async () => {
      const line = `echo $(id -un) $(id -u) $(id -g) $HOME $USER $LOGNAME $(ulimit -S -t)`;
      const { name, uid, gid, home } = other;
      const expected = `nobody ${uid} ${gid} ${home} nobody nobody 9`;
      for (const user of [other, { name, uid, gid, home }])
        expect(await outputOf({ line, user, limits: { cpuSeconds: 9 } })).toBe(expected);
      expect(await outputOf({ line: "id -G", user: other })).toBe(await outputOf({ line: "id -G nobody" }));
    });

    test("a command of another user is ended at its timeout", async () => {
      expect(await exec({ line: "sleep 60 & wait", user: other, timeoutMs: 100 })).toMatchObject({ ended: "timeout" });
    });

    test("what a user may read is found out as that user", async () => {
      const readable = await users().readable(other, ["/", "/root", folder, "/etc/passwd", "/etc/shadow", "/none"]);
      expect([...readable]).toEqual(["/", "/etc/passwd"]);
    });
  });
});
