import { lstat, mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

/** Builds that are kept, as programs may still run from them. */
const BUILDS_KEPT = 10;

/**
 * Each build has a folder of its own, and `current` is a link to the newest whole one. A running program resolved the
 * link when it began: it keeps the files of its build while newer builds are made. `make` fills the folder; when two
 * builds run at once, both get a whole folder.
 */
export async function buildInto(current: string, name: string, make: (folder: string) => Promise<void>): Promise<void> {
  const builds = join(dirname(current), ".builds");
  const folder = join(builds, name);
  await mkdir(builds, { recursive: true });
  await make(folder);
  const link = `${folder}.link`;
  await symlink(relative(dirname(current), folder), link);
  await moveAway(current, join(builds, `${name}.replaced`));
  await rename(link, current);
  await removeOldest(builds);
}

/** Versions before this one built into a folder of the name, which no link can replace. */
async function moveAway(current: string, target: string): Promise<void> {
  const found = await lstat(current).catch(() => undefined);
  // Another build may have just moved it.
  if (found?.isDirectory() === true) await rename(current, target).catch(() => undefined);
}

/** Names begin with their time. */
async function removeOldest(builds: string): Promise<void> {
  const names = (await readdir(builds)).filter((name) => !name.endsWith(".link")).sort();
  for (const name of names.slice(0, -BUILDS_KEPT)) await rm(join(builds, name), { recursive: true, force: true });
}
