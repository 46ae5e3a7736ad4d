import { accessSync, constants, statfsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** Minimum free bytes for the use of this folder; a container has 64 MiB by default. */
const FREE_MIN_BYTES = 2 * 1024 ** 3;

/**
 * Creates a folder for a store in a test that does not concern the disk: in memory if there is room, otherwise on disk.
 * A store waits for the disk at every write, on a busy machine several times longer than the test computes. Benchmarks
 * always use the disk.
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
