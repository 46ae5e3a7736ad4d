import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";

/** Packs all files of a folder: their paths with their bytes in base64. */
export async function packFolder(folder: string): Promise<Uint8Array> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    // The table of readers in it is meaningless for another process.
    if (!entry.isFile() || entry.name === "lock.mdb") continue;
    files[path.slice(folder.length + 1)] = (await readFile(path)).toString("base64");
  }
  return brotliCompressSync(JSON.stringify(files));
}

/** Unpacks the files of `packFolder` into an existing folder. */
export async function unpackFolder(packed: Uint8Array, folder: string): Promise<void> {
  const files = JSON.parse(brotliDecompressSync(packed).toString()) as Readonly<Record<string, string>>;
  for (const [path, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), Buffer.from(bytes, "base64"));
  }
}
