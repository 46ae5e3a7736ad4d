import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { AppError } from "../../common/errors.ts";
import type { Files } from "../../common/files.ts";
import { parseSecretKeys, SECRET_KEY_BYTES, secretKeyLine } from "../../common/secret-key.ts";
import { isCode, isMissing, makeFolder, nodeFiles, syncFolder, writeWholly } from "../files.ts";
import { secretBox, type KeyRing } from "./key-ring.ts";

export interface KeyFileOptions {
  readonly file: string;
  readonly create: boolean;
  /** Absent: the disk of this machine. */
  readonly files?: Files;
}

/**
 * Reads the key file. With `create`, a missing file is created (mode 0600); if several controllers create it at once,
 * one of them wins. `AppError("invalid")` if the file is missing, cannot be read, or has another format.
 */
export async function openSecretKey(options: KeyFileOptions): Promise<KeyRing> {
  const files = options.files ?? nodeFiles;
  const text = (await read(files, options.file)) ?? (options.create ? await create(files, options.file) : undefined);
  if (text === undefined)
    throw new AppError(
      "invalid",
      `There is no key file ${options.file} (ODP_SECRET_KEY_FILE). For a new cluster, make one: node dist/odp.js key ${options.file}`,
    );
  // The controller that created the file may have been killed before the file's name was durable. The name must be
  // durable before a secret is sealed with the key.
  if (options.create) await syncFolder(files, dirname(options.file));
  const source = `The key file ${options.file}`;
  return secretBox(parseSecretKeys(text, source), async () => {
    const now = await read(files, options.file);
    if (now === undefined) throw new AppError("unavailable", `${source} is not there any more.`);
    return parseSecretKeys(now, source);
  });
}

async function read(files: Files, file: string): Promise<string | undefined> {
  try {
    return Buffer.from(await files.readFile(file)).toString();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new AppError("invalid", `The key file ${file} cannot be read.`, { cause: error });
  }
}

/**
 * Writes a temporary file and links it to its final name, so that no reader sees a part of a key. Returns the content
 * of the final file, which another controller may have created first.
 */
async function create(files: Files, file: string): Promise<string | undefined> {
  await makeFolder(files, dirname(file));
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  await writeDurably(files, draft, secretKeyLine(randomBytes(SECRET_KEY_BYTES)));
  try {
    await files.link(draft, file);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    await files.rm(draft, { force: true });
  }
  return read(files, file);
}

async function writeDurably(files: Files, file: string, text: string): Promise<void> {
  const handle = await files.open(file, "wx", 0o600);
  try {
    await writeWholly(handle, Buffer.from(text), 0);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
