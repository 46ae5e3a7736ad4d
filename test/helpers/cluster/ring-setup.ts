import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { daemonsIn, findLocalCluster } from "../../../deploy/local/cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly ring: { readonly dir: string; readonly nodes: 3 | 5 };
  }
}

/** Members whose folders are small file systems of their own, so that they can be filled. */
export const SMALL_DISKS = ["cassandra-3", "etcd-3"] as const;

let dir: string | undefined;

/**
 * Provides a folder for a ring of three, or of `ODP_RING_NODES` nodes. The first suite that calls `openRing` starts the
 * ring, so that other projects of the same run have the machine to themselves. The ring ends with the run.
 * `ODP_RING_DIR` names a ring that already runs and continues afterwards.
 */
export async function setup(project: TestProject): Promise<void> {
  const given = process.env.ODP_RING_DIR;
  const nodes = process.env.ODP_RING_NODES === "5" ? 5 : 3;
  if (given !== undefined && given !== "") return project.provide("ring", { dir: given, nodes });
  dir = await mkdtemp(join(tmpdir(), "odp-ring-"));
  project.provide("ring", { dir, nodes });
  // However this process ends, it must not leave six processes running.
  process.once("exit", killAll);
}

export async function teardown(): Promise<void> {
  if (dir === undefined) return;
  const ring = await findLocalCluster(dir);
  await ring?.stop({ now: true });
  process.removeListener("exit", killAll);
  unmountAll(dir);
  await rm(dir, { recursive: true, force: true, maxRetries: 3 });
}

function killAll(): void {
  if (dir === undefined) return;
  for (const { pid } of daemonsIn(dir)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has already ended.
    }
  }
  unmountAll(dir);
}

function unmountAll(folder: string): void {
  for (const name of SMALL_DISKS) {
    try {
      // Lazily, because a process that was just killed may still hold it.
      execFileSync("umount", ["-l", join(folder, name)], { stdio: "ignore" });
    } catch {
      // It was never mounted.
    }
  }
}
