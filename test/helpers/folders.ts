import { accessSync, constants, statfsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** Bytes free there so that tests use it; a container has 64 MiB by default. */
const FREE_MIN_BYTES = 2 * 1024 ** 3;

/**
 * A new folder for a store of a test that is not about the disk: in memory where the machine has room for it, else on
 * disk. A store waits for the disk at every write, on a busy machine several times longer than the test computes. For
 * benches it is always on disk.
 */
export function storeFolder(prefix: string): Promise<string> {
  const isTest = process.env["VITEST"] !== undefined;
  return mkdtemp(join(isTest && hasRoom() ? MEMORY : tmpdir(), prefix));
}

function hasRoom(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= FREE_MIN_BYTES;
  } catch {
    return false;
  }
}
