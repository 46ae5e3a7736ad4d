import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { MANUAL_FILE_MAX_BYTES } from "../../common/limits.ts";
import { makeSite } from "./site.ts";

const packed = promisify(gzip);

/**
 * Makes the manual and writes each file with its compressed form, `<name>.gz`. Throws if a file is larger than
 * `MANUAL_FILE_MAX_BYTES`.
 */
export async function writeSite(docs: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of await makeSite({ docs })) {
    const bytes = Buffer.from(text);
    if (bytes.length > MANUAL_FILE_MAX_BYTES) throw new Error(`The file ${name} of the manual is too large: split it.`);
    await writeFile(join(folder, name), bytes);
    await writeFile(join(folder, `${name}.gz`), await packed(bytes, { level: 9 }));
  }
}
