import { chmod, lchown, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../common/errors.ts";

/** A user of this machine that a process can be given to. */
export interface LocalUser {
  readonly uid: number;
  readonly gid: number;
  readonly home: string | undefined;
}

/** Others may pass through, and see no names. */
const PASSABLE = 0o711;
const OWN = 0o700;

/** A name of `/etc/passwd`, or `uid:gid`. `AppError("invalid")` when there is no such user. */
export async function findLocalUser(text: string, passwd = "/etc/passwd"): Promise<LocalUser> {
  const numbers = /^(\d+):(\d+)$/.exec(text);
  if (numbers) return { uid: Number(numbers[1]), gid: Number(numbers[2]), home: undefined };
  for (const line of (await readFile(passwd, "utf8")).split("\n")) {
    const [name, , uid, gid, , home] = line.split(":");
    if (name === text && uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid), home };
  }
  throw new AppError(
    "invalid",
    `The setting local_agent_user names ${text}, whom ${passwd} does not know; uid:gid is taken as well.`,
  );
}

/**
 * A folder that belongs to the user, with all that was in it when it came to him. What he owns already is left alone:
 * he might be about to put a link in the way. The folder above is made passable.
 */
export async function giveFolder(folder: string, { uid, gid }: LocalUser): Promise<void> {
  await mkdir(folder, { recursive: true, mode: OWN });
  await chmod(dirname(folder), PASSABLE);
  if ((await stat(folder)).uid === uid) return;
  for (const entry of await readdir(folder, { recursive: true })) await lchown(join(folder, entry), uid, gid);
  await lchown(folder, uid, gid);
}
