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
  /** The disk of this machine when absent. */
  readonly files?: Files;
}

/** Reads the key file. With `create` a missing one is made (mode 0600); of several that make it at once one wins. */
export async function openSecretKey(options: KeyFileOptions): Promise<KeyRing> {
  const files = options.files ?? nodeFiles;
  const text = (await read(files, options.file)) ?? (options.create ? await create(files, options.file) : undefined);
  if (text === undefined)
    throw new AppError(
      "invalid",
      `There is no key file ${options.file} (ODP_SECRET_KEY_FILE). For a new cluster, make one: node dist/odp.js key ${options.file}`,
    );
  // Its maker may have been killed before the name was durable, and secrets are about to be sealed with it.
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

/** Written beside and linked into place, so that no reader finds half a key. */
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
