import { randomBytes } from "node:crypto";
import { open, readFile, realpath, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import type { KeyStatus } from "../../common/api/keys.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { AppError } from "../../common/errors.ts";
import { parseSecretKeys, SECRET_KEY_BYTES, secretKeyId, secretKeyLine } from "../../common/secret-key.ts";

/** Exit codes of `odp key status`; 1 is for what could not be asked. */
export const KEY_STUCK = 2;
export const KEY_UNDER_WAY = 3;

/** Makes a key file that only its owner reads. One that is there is never replaced: what it sealed would be lost. */
export async function makeKeyFile(file: string): Promise<void> {
  const handle = await open(file, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    throw new AppError("conflict", `${file} is there already, and what was sealed with it opens with no other key.`);
  });
  await writtenDurably(handle, secretKeyLine(randomBytes(SECRET_KEY_BYTES)));
}

/**
 * Puts a new key above the others of a key file, with owner and mode as they were; answers its id. A reader finds the
 * file before or after, whole. Changes of others at the same moment are lost: one person does this at a time.
 */
export async function rotateKeyFile(named: string): Promise<string> {
  const file = await realpath(named);
  const before = await readFile(file, "utf8");
  // Never made worse: a file that no controller would read is left as it is.
  parseSecretKeys(before, file);
  const key = randomBytes(SECRET_KEY_BYTES);
  const { mode, uid, gid } = await stat(file);
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const handle = await open(draft, "wx", 0o600);
    await writtenDurably(handle, secretKeyLine(key) + before, async () => {
      await handle.chown(uid, gid);
      await handle.chmod(mode & 0o777);
    });
    await rename(draft, file);
    await synced(await open(dirname(file), "r"));
  } finally {
    await rm(draft, { force: true });
  }
  return secretKeyId(key);
}

export async function keyStatusOf(client: Pick<OdpClient, "call">): Promise<KeyStatus> {
  return (await client.call("getKeyStatus")) as KeyStatus;
}

/** 0: the first key seals and everything is sealed with it, 2: something is in the way, 3: under way. */
export function exitCodeOfKeys(status: KeyStatus): number {
  if (status.waiting !== undefined) return KEY_STUCK;
  return isSettled(status) ? 0 : KEY_UNDER_WAY;
}

/** The newest key first, with what needs each; then what is to be done. */
export function keyText(status: KeyStatus): string {
  const { keys, controllers, source, file, left, ending, waiting } = status;
  const lines = [
    `Keys come from ${file ?? (source === "command" ? "the command of secret_key_command" : "the setting secret_key")}.`,
    ...keys.map((key) => keyLine(key, status)),
    ...controllers.map((one) => controllerLine(one, status)),
    ...(left > 0 ? [`${left} things are to be sealed anew with ${status.wanted}.`] : []),
    ...(ending > 0 ? [`${ending} things need a former key until they end by themselves.`] : []),
    ...removable(status),
    ...(waiting === undefined ? [] : [`IN THE WAY: ${waiting}`]),
    ...(waiting === undefined && isSettled(status) ? ["Everything is sealed with the first key."] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function isSettled({ wanted, sealing, left, controllers }: KeyStatus): boolean {
  return (
    left === 0 && sealing === wanted && controllers.every((one) => one.sealing === undefined || one.sealing === wanted)
  );
}

function keyLine({ id, listed, opens, sealed, total }: KeyStatus["keys"][number], { wanted }: KeyStatus): string {
  const kinds = Object.entries(sealed).map(([kind, count]) => `${count} ${kind}`);
  const marks = [
    ...(id === wanted ? ["first"] : []),
    ...(opens ? [] : ["MISSING: what it sealed does not open"]),
    ...(opens && !listed ? ["gone from where keys come from"] : []),
  ];
  return `  ${id}${marks.length > 0 ? ` (${marks.join(", ")})` : ""}: ${total === 0 ? "needed by nothing" : `needed by ${kinds.join(", ")}`}`;
}

function controllerLine(
  { id, url, sealing, opening = [] }: KeyStatus["controllers"][number],
  { wanted }: KeyStatus,
): string {
  const name = url === "" ? id : `${id} (${url})`;
  if (sealing === undefined) return `  controller ${name}: of an earlier version, tells nothing of its keys`;
  const lacks = opening.includes(wanted) ? "" : `, DOES NOT HAVE ${wanted}`;
  return `  controller ${name}: seals with ${sealing}${lacks}`;
}

/** Former keys that may be taken away. */
function removable(status: KeyStatus): string[] {
  if (!isSettled(status) || status.ending > 0) return [];
  const ids = status.keys.filter(({ id, listed, total }) => listed && total === 0 && id !== status.wanted);
  if (ids.length === 0) return [];
  const { deletedTenants } = status;
  const but =
    deletedTenants.length > 0 ? `, except by deleted tenants that can be had back (${deletedTenants.join(", ")})` : "";
  return [`No longer needed${but}: ${ids.map(({ id }) => id).join(", ")}. Keep them with the backups of their time.`];
}

async function writtenDurably(handle: FileHandle, text: string, before?: () => Promise<void>): Promise<void> {
  try {
    await before?.();
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function synced(folder: FileHandle): Promise<void> {
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
