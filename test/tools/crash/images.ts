import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { Files } from "../../../common/files.ts";
import { ForgetfulFiles } from "../../helpers/engines/forgetful-files.ts";
import type { DiskEvent } from "./strace.ts";

/**
 * The disk as a power cut after these events may have left it: synced data is there, and the seed selects which of the
 * rest is. `folder` and the folders above it existed before.
 */
export async function diskAfter(events: readonly DiskEvent[], folder: string, seed: number): Promise<ForgetfulFiles> {
  const disk = new ForgetfulFiles(seed);
  const files = disk.boot();
  await files.mkdir(folder, { recursive: true });
  for (let above = folder; above !== "/"; above = dirname(above)) await sync(files, dirname(above));
  for (const event of events) await replay(files, event);
  disk.powerCut();
  return disk;
}

/** Copies the files left under `folder` of that disk to a folder of this machine. */
export async function dump(disk: ForgetfulFiles, folder: string, into: string): Promise<void> {
  for (const [path, bytes] of disk.contents()) {
    const target = join(into, relative(folder, path));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, bytes);
  }
}

async function replay(files: Files, event: DiskEvent): Promise<void> {
  switch (event.kind) {
    case "open":
      if (event.creates) await files.open(event.path, event.truncates ? "w" : "a");
      return;
    case "write": {
      const file = await files.open(event.path, event.through ? "rs+" : "r+");
      await file.write(event.bytes, 0, event.bytes.length, event.at);
      return;
    }
    case "truncate":
      return (await files.open(event.path, "r+")).truncate(event.size);
    case "sync":
      return sync(files, event.path);
    case "unlink":
      return files.rm(event.path, { recursive: true });
    case "mkdir":
      return void (await files.mkdir(event.path, { recursive: true }));
    case "rename":
      return files.rename(event.path, event.to);
    case "link":
      return files.link(event.path, event.to);
    // Only its name matters here.
    case "symlink":
      return void (await files.open(event.path, "wx"));
    case "copy":
      return copy(files, event);
    case "said":
      return;
  }
}

/** Appends to the target, starting at its size in the source. */
async function copy(files: Files, { path, to, size }: DiskEvent & { readonly kind: "copy" }): Promise<void> {
  const target = await files.open(to, "r+");
  const { size: at } = await target.stat();
  const bytes = (await files.readFile(path)).subarray(at, at + size);
  await target.write(bytes, 0, bytes.length, at);
}

async function sync(files: Files, path: string): Promise<void> {
  await (await files.open(path, "r")).sync();
}
