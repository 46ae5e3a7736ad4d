import { execFileSync } from "node:child_process";
import { mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A small file system. Only the superuser can mount one. */
export interface SmallDisk extends AsyncDisposable {
  readonly folder: string;
  /** Fills the file system; a second call fills space that became free since. */
  fill(): Promise<void>;
  /** Frees the space that `fill` took. */
  makeRoom(): Promise<void>;
}

/** `undefined` if mounting is not allowed. */
export async function mountSmallDisk(sizeKib: number): Promise<SmallDisk | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "odp-small-disk-"));
  if (!isMounted(folder, sizeKib)) {
    await rm(folder, { recursive: true });
    return undefined;
  }
  const ballast: string[] = [];
  return {
    folder,
    async fill() {
      const { bavail, bsize } = await statfs(folder);
      const path = join(folder, `ballast-${ballast.length}`);
      ballast.push(path);
      await writeFile(path, Buffer.alloc(bavail * bsize)).catch((error: NodeJS.ErrnoException) => {
        // A program on this file system may have taken a part of the space in the meantime.
        if (error.code !== "ENOSPC") throw error;
      });
    },
    async makeRoom() {
      for (const path of ballast.splice(0)) await rm(path);
    },
    async [Symbol.asyncDispose]() {
      execFileSync("umount", ["-l", folder]);
      await rm(folder, { recursive: true });
    },
  };
}

function isMounted(folder: string, sizeKib: number): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeKib}k`, "tmpfs", folder], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
