import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError } from "../../common/errors.ts";
import { secretBox, type SecretBox } from "./secret-box.ts";

const LINE = /^odp-key-1:([0-9A-Za-z+/]{43}=)$/;

/**
 * Reads the key file: one `odp-key-1:<base64 of 32 bytes>` per line, the first seals, older ones below it still open. Empty lines and
 * lines that begin with `#` do not count. With `create` a missing file is made (mode 0600); of several that make it at once one wins.
 */
export async function openSecretKey(options: { readonly file: string; readonly create: boolean }): Promise<SecretBox> {
  const text = (await read(options.file)) ?? (options.create ? await create(options.file) : undefined);
  if (text === undefined) throw new AppError("invalid", `There is no key file ${options.file} (ODP_SECRET_KEY_FILE).`);
  return secretBox(parse(text, options.file));
}

function parse(text: string, file: string): Uint8Array[] {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
  const keys = lines.map((line) => LINE.exec(line)?.[1]);
  if (keys.length === 0 || keys.includes(undefined)) {
    throw new AppError("invalid", `The key file ${file} must have lines of the form odp-key-1:<base64 of 32 bytes>.`);
  }
  return keys.map((key) => Buffer.from(key ?? "", "base64"));
}

async function read(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw new AppError("invalid", `The key file ${file} cannot be read.`, { cause: error });
  }
}

/** Written beside and linked into place, so that nobody ever reads half a key. */
async function create(file: string): Promise<string | undefined> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  await writeDurably(draft, `odp-key-1:${randomBytes(32).toString("base64")}\n`);
  try {
    await link(draft, file);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    await rm(draft, { force: true });
  }
  await syncFolder(dirname(file));
  return read(file);
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
