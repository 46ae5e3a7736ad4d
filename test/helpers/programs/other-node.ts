import { execFile } from "node:child_process";
import { arch } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { defaultCacheDir, intoCache } from "../../../deploy/local/install.ts";

const run = promisify(execFile);
const INSTALL_DEADLINE_MS = 10 * 60_000;

/** Versions of Node that the programs are tried on, besides the one that runs the tests. */
export const OTHER_NODES = ["22.23.3", "24.21.0", "26.12.1"] as const;

/** Path of the program of that version. It is installed from the registry once, and kept with the other downloads. */
export async function installNode(version: string): Promise<string> {
  const name = `node-linux-${arch()}`;
  const folder = await intoCache(defaultCacheDir(), `node-${version}`, async (work) => {
    await run("npm", ["install", "--no-save", "--no-package-lock", "--prefix", work, `${name}@${version}`], {
      timeout: INSTALL_DEADLINE_MS,
    });
  });
  return join(folder, "node_modules", name, "bin", "node");
}
