import { chmod, lchown, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../../common/errors.ts";

/** A user of this machine under which a process can run. */
export interface LocalUser {
  readonly uid: number;
  readonly gid: number;
  readonly home: string | undefined;
}

/** Other users may pass through the folder but cannot list it. */
const PASSABLE = 0o711;
const OWN = 0o700;

/** `text`: a name in `/etc/passwd`, or `uid:gid`. Throws `AppError("invalid")` if there is no such user. */
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
 * Gives a folder and its contents to the user. A folder that he already owns is left alone, because he might be about
 * to replace an entry with a link. The parent folder is made passable.
 */
export async function giveFolder(folder: string, { uid, gid }: LocalUser): Promise<void> {
  await mkdir(folder, { recursive: true, mode: OWN });
  await chmod(dirname(folder), PASSABLE);
  if ((await stat(folder)).uid === uid) return;
  for (const entry of await readdir(folder, { recursive: true })) await lchown(join(folder, entry), uid, gid);
  await lchown(folder, uid, gid);
}
