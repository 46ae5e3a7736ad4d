import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Makes the names in a folder durable; systems that cannot open a folder need no such thing. */
export async function syncFolder(path: string): Promise<void> {
  let folder;
  try {
    folder = await open(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "EISDIR" || error.code === "EPERM" || error.code === "EACCES")) return;
    throw error;
  }
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The file holds the new content or the old one, never a part; durable when it resolves. Mode 0600. */
export async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  const beside = `${path}.new`;
  const file = await open(beside, "w", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await rename(beside, path);
  await syncFolder(dirname(path));
}
