import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findLocalUser, giveFolder } from "./user.ts";

const isSuperuser = process.getuid?.() === 0;
const STRANGER = { uid: 54_321, gid: 54_321, home: undefined };

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "odp-local-user-"));
});
afterEach(() => rm(dir, { recursive: true }));

it("finds a user by name or by numbers, and names one there is not", async () => {
  const passwd = join(dir, "passwd");
  await writeFile(passwd, "root:x:0:0:root:/root:/bin/sh\nodp-agent:x:998:997::/var/lib/odp:/usr/sbin/nologin\n");
  expect(await findLocalUser("odp-agent", passwd)).toEqual({ uid: 998, gid: 997, home: "/var/lib/odp" });
  expect(await findLocalUser("1001:1002", passwd)).toEqual({ uid: 1001, gid: 1002, home: undefined });
  await expect(findLocalUser("odp", passwd)).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("local_agent_user names odp,"),
  });
});

describe.skipIf(!isSuperuser)("the folder of another user", () => {
  it("is his with all that was in it, and what lies beside it stays out of his reach", async () => {
    const data = join(dir, "data");
    await mkdir(join(data, "agent", "outbox"), { recursive: true, mode: 0o700 });
    await writeFile(join(data, "agent", "outbox", "entries"), "mine");
    await mkdir(join(data, "store"), { mode: 0o700 });
    await writeFile(join(data, "secret.key"), "secret", { mode: 0o600 });
    await giveFolder(join(data, "agent"), STRANGER);
    expect((await stat(join(data, "agent", "outbox", "entries"))).uid).toBe(STRANGER.uid);
    await chmod(dir, 0o711);
    const may = (command: string): number | null =>
      spawnSync("sh", ["-c", command], { uid: STRANGER.uid, gid: STRANGER.gid, cwd: "/" }).status;
    expect(may(`cat ${data}/agent/outbox/entries`)).toBe(0);
    for (const forbidden of [`cat ${data}/secret.key`, `ls ${data}`, `ls ${data}/store`])
      expect(may(forbidden)).not.toBe(0);
  });
});
