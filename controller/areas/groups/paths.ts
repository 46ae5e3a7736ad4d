import { AppError } from "../../../common/errors.ts";
import { API_PERMISSIONS_PER_TENANT_MAX, GROUP_NAME_MAX_BYTES } from "../../../common/limits.ts";
import { checkName } from "../../../common/names.ts";
import { absolutePath } from "../../../common/paths.ts";
import type { Definitions } from "./definitions.ts";
import { checkCount } from "./edits.ts";
import type { PathRecord } from "./types.ts";

const NAME = { what: "name of an API permission", maxBytes: GROUP_NAME_MAX_BYTES, limit: "GROUP_NAME_MAX_BYTES" };

/**
 * The paths, normalised and without repetitions. `/` means every path. `AppError("invalid")` for a text that is no
 * path.
 */
export function apiPaths(paths: readonly string[]): readonly string[] {
  if (paths.length === 0) throw new AppError("invalid", "path is missing: a folder or a file.");
  return [...new Set(paths.map((path) => (path.trim() === "/" ? "/" : absolutePath(path.trim()))))];
}

/** The API permission of that name. `AppError("not_found")` if there is none. */
export function pathsIn({ stored }: Definitions, name: string): PathRecord {
  const record = stored.paths.find((one) => one.name === name);
  if (record === undefined) throw new AppError("not_found", `There is no API permission ${name}.`);
  return record;
}

/** A new API permission without groups. `AppError("invalid")` for a name or path that is not allowed. */
export function newApiPermission(name: string, paths: readonly string[]): PathRecord {
  checkName(name, NAME);
  return { name, paths: apiPaths(paths), groups: [] };
}

/**
 * `AppError("too_large")` if the tenant has the maximum number of API permissions, `AppError("conflict")` if the name
 * is taken.
 */
export function requireRoomFor({ stored }: Definitions, name: string): void {
  checkCount(stored.paths, API_PERMISSIONS_PER_TENANT_MAX, "API_PERMISSIONS_PER_TENANT_MAX");
  if (stored.paths.some((one) => one.name === name))
    throw new AppError("conflict", `There is already an API permission ${name}.`);
}
