import { AppError } from "../../../common/errors.ts";
import { DEPOT_COMMAND_MAX_CHARS, DEPOT_REMARK_MAX_CHARS } from "../../../common/limits.ts";
import { fileName, relativePath } from "../../../common/paths.ts";
import { revisionOf } from "../../../common/revisions.ts";
import type { DepotFile } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import { DEPOT_PATH } from "./classes.ts";
import type { StoredVersion, VersionEntry } from "./store.ts";
import type { DepotDescription, DepotSummary } from "./types.ts";
import { depotVersion } from "./version.ts";

export function checkedDescription(description: DepotDescription): DepotDescription {
  if ((description.command ?? "").length > DEPOT_COMMAND_MAX_CHARS) {
    throw new AppError("too_large", `A depot's command has at most ${DEPOT_COMMAND_MAX_CHARS} characters.`);
  }
  if ((description.remark ?? "").length > DEPOT_REMARK_MAX_CHARS) {
    throw new AppError("too_large", `A depot's remark has at most ${DEPOT_REMARK_MAX_CHARS} characters.`);
  }
  const tags = description.tags && { tags: [...new Set(description.tags)] };
  return { ...description, ...tags, name: fileName(description.name), version: depotVersion(description.version) };
}

export function fileOf(files: readonly DepotFile[], filepath: string, stored: StoredVersion): DepotFile {
  const path = relativePath(filepath);
  const file = files.find((each) => each.path === path);
  if (file) return file;
  throw new AppError("not_found", `${stored.name} ${stored.version} has no file ${path}.`);
}

export function chosen(versions: readonly VersionEntry[], name: string, version: string | undefined): VersionEntry {
  const entry = version === undefined ? versions.at(-1) : versions.find(({ stored }) => stored.version === version);
  if (entry === undefined) throw unknownDepot(name, version);
  return entry;
}

export function summary(
  principal: Principal,
  versions: readonly VersionEntry[],
  one: VersionEntry | undefined,
): DepotSummary {
  const entry = one ?? versions.at(-1);
  if (entry === undefined) throw new AppError("internal", "A depot has no version.");
  const { name, version, remark, tags, command, filecount, size, createdMs, creator } = entry.stored;
  return {
    id: `depot:${name}`,
    class: `${principal.ospace}${DEPOT_PATH}`,
    name,
    version,
    remark,
    tags: [...tags],
    command,
    filecount,
    size,
    creator,
    versions: versions.map(({ stored }) => stored.version),
    status: "ok",
    created: createdMs,
    revision: revisionOf(entry.stored),
  };
}

/** The version in messages. */
export function named({ name, version }: DepotDescription): string {
  return `The depot ${name} ${version}`;
}

export function exists({ name, version }: DepotDescription, hint = ""): AppError {
  return new AppError("conflict", `The depot ${name} has a version ${version} already${hint}.`);
}

export function unknownDepot(name: string, version: string | undefined): AppError {
  return new AppError(
    "not_found",
    `There is no depot ${name}${version === undefined ? "" : ` with version ${version}`}.`,
  );
}

export function changedMeanwhile({ name, version }: StoredVersion): AppError {
  return new AppError("conflict", `The depot ${name} ${version} was changed by somebody else meanwhile; try again.`);
}
