import { execFile } from "node:child_process";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";
import { findLocalCluster, startLocalCluster, type LocalCluster } from "../../../deploy/local/cluster.ts";
import { isAlive } from "../../../deploy/local/process.ts";
import { SMALL_DISKS } from "./ring-setup.ts";

const run = promisify(execFile);
const SMALL_DISK_MIB = 768;
const BALLAST_PIECE_BYTES = 1_048_576;
/** Size of the last piece that fills the disk: no file system allocates so little at once. */
const BALLAST_LAST_PIECE_BYTES = 1;

export type Ring = LocalCluster;
export type SmallDisk = (typeof SMALL_DISKS)[number];

/**
 * Three Cassandra nodes and three etcd members, or five of each: `cassandra-1` … `etcd-3`. The first caller starts
 * them. All others get the same ring, repaired: killed members run again, paused ones continue, no disk is full, and
 * every member sees all others as up.
 */
export async function openRing(): Promise<Ring> {
  const { dir, nodes } = inject("ring");
  const found = await findLocalCluster(dir);
  if (found === undefined) {
    await mountSmallDisks(dir);
    return startLocalCluster({ dir, nodes, progress: (line) => console.error(`[ring] ${line}`) });
  }
  await mendRing(found);
  return found;
}

/** Restores every member, and waits until all see each other as up. */
export async function mendRing(ring: Ring): Promise<void> {
  for (const name of SMALL_DISKS) await freeDisk(name);
  await Promise.all(
    ring.members.map(async ({ name }, index) => {
      const daemon = ring.daemons[index];
      if (daemon !== undefined && (await isAlive(daemon))) await ring.resume(name);
      else await ring.restart(name);
    }),
  );
  await ring.whole();
}

/** Fills the disk of a member to the last byte. */
export async function fillDisk(name: SmallDisk): Promise<void> {
  const file = await open(ballast(name), "a");
  try {
    for (let piece = BALLAST_PIECE_BYTES; piece >= BALLAST_LAST_PIECE_BYTES; ) {
      const written = await file.write(Buffer.alloc(piece, 1)).then((outcome) => outcome.bytesWritten, nothingIfFull);
      if (written < piece) piece = Math.floor(piece / 2);
    }
  } finally {
    await file.close();
  }
}

export async function freeDisk(name: SmallDisk): Promise<void> {
  await rm(ballast(name), { force: true });
}

/** Returns true if the folder of this member is a small file system, which requires root. */
export async function hasSmallDisk(name: SmallDisk): Promise<boolean> {
  return run("mountpoint", ["-q", join(inject("ring").dir, name)]).then(
    () => true,
    () => false,
  );
}

function ballast(name: SmallDisk): string {
  return join(inject("ring").dir, name, "ballast");
}

function nothingIfFull(error: unknown): number {
  if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  return 0;
}

async function mountSmallDisks(dir: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  for (const name of SMALL_DISKS) {
    const folder = join(dir, name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await run("mount", ["-t", "tmpfs", "-o", `size=${SMALL_DISK_MIB}m,mode=0700`, "tmpfs", folder]);
  }
}
