import { existsSync } from "node:fs";
import lockfile from "../../package-lock.json" with { type: "json" };

/**
 * Part of `npm run check`: every package that can be installed has its checksum in the lock file. The only ones without
 * it are builds of optional packages for other platforms that the registry did not offer when the file was made; npm
 * does not install them without asking the registry.
 */
interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

const packages: Readonly<Record<string, LockedPackage>> = lockfile.packages;
const unproven = Object.entries(packages).filter(
  ([path, locked]) => path !== "" && !locked.link && locked.integrity === undefined,
);
const refused = unproven.filter(
  ([path, { optional, os, cpu }]) => !optional || (os === undefined && cpu === undefined) || existsSync(path),
);
for (const [path, { version = "" }] of refused)
  console.error(`${path} ${version} has no checksum in package-lock.json`);
process.exitCode = refused.length === 0 ? 0 : 1;
