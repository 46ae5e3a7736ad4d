import { AppError } from "../../../../common/errors.ts";
import { SSH_STEP_OUTPUT_MAX_BYTES } from "../../../../common/limits.ts";
import { absolutePath, fileName, relativePath } from "../../../../common/paths.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { DepotFile, DepotToDeploy } from "../types.ts";
import type { SshConnection } from "./connection.ts";
import { quoted } from "./shell.ts";
import { upload } from "./upload.ts";

/** Relative to the SSH user's home. */
const DEFAULT_ROOT = "odp/depots";
const SSH_PORTION_BYTES = 16 * 1024;

/** Folders of a depot on a host, wanted or present. */
export interface DepotPlace {
  /** Relative to the SSH user's home. The whole folder belongs to the depot. */
  readonly folder: string;
  /** Further folder for the files, which may contain other files too. */
  readonly remotePath: string | undefined;
}

export function depotPlace(name: string, remotePath: string | undefined): DepotPlace {
  return {
    folder: `${DEFAULT_ROOT}/${fileName(name)}`,
    remotePath: remotePath === undefined || remotePath === "" ? undefined : absolutePath(remotePath),
  };
}

/** Working folder for the depot's commands. */
export function workFolder(place: DepotPlace): string {
  return place.remotePath ?? place.folder;
}

/** Checks the paths of the depot's files before anything is sent. */
export function checkedFiles(depot: DepotToDeploy): readonly DepotFile[] {
  const files = depot.files.map((file) => ({ ...file, path: relativePath(file.path) }));
  if (new Set(files.map((file) => file.path)).size < files.length) {
    throw new AppError("invalid", `The depot ${depot.name} names a file twice.`);
  }
  return files;
}

/** A depot that was put in place, and the place of the one before; `undefined` if there was none. */
export interface PlacedOver {
  readonly place: DepotPlace;
  readonly before: DepotPlace | undefined;
}

export interface PutDepot extends PlacedOver {
  readonly files: readonly DepotFile[];
  /** Distinguishes this attempt from others in the name of the staging folder. */
  readonly attempt: string;
  readonly signal: AbortSignal;
}

/**
 * Unpacks into a staging folder and compares every digest on the host. Only then it replaces the previous depot, which
 * is kept until `keepDepot` or `revertDepot`.
 */
export async function putDepot(connection: SshConnection, blobs: BlobStore, put: PutDepot): Promise<void> {
  const beside = `${put.place.folder}.new-${put.attempt}`;
  try {
    await makeFolders(connection, beside, put);
    await upload(connection, blobs, { files: put.files, folder: beside, signal: put.signal });
    await verify(connection, beside, put);
    await must(connection, switchScript(put.place.folder, beside), put.signal);
  } catch (error) {
    // Also after the deadline: a partial upload must not stay.
    const options = { signal: new AbortController().signal, outputMaxBytes: SSH_STEP_OUTPUT_MAX_BYTES };
    await connection.run(`rm -rf -- ${quoted(beside)}`, options).catch(() => undefined);
    throw error;
  }
  try {
    await spread(connection, put.place, put.signal);
  } catch (error) {
    await revertDepot(connection, put);
    throw error;
  }
}

/** Accepts the new depot and removes the previous one, with the files that only that one has at its remote path. */
export async function keepDepot(
  connection: SshConnection,
  { place, before }: PlacedOver,
  signal: AbortSignal,
): Promise<void> {
  const former = `${place.folder}.old`;
  const kept = before?.remotePath === place.remotePath ? place.folder : undefined;
  if (before) await withdraw(connection, { folder: former, remotePath: before.remotePath, kept }, signal);
  await must(connection, `rm -rf -- ${quoted(former)}`, signal);
}

/** Restores the previous depot, and removes the files that only the new one has. */
export async function revertDepot(connection: SshConnection, { place, before }: PlacedOver): Promise<void> {
  const { signal } = new AbortController();
  const [to, old] = [quoted(place.folder), quoted(`${place.folder}.old`)];
  if (before) await spread(connection, { ...before, folder: `${place.folder}.old` }, signal);
  const kept = before && before.remotePath === place.remotePath ? `${place.folder}.old` : undefined;
  await withdraw(connection, { ...place, kept }, signal);
  await must(connection, `rm -rf -- ${to}\nif [ -e ${old} ]; then mv -- ${old} ${to}; fi`, signal);
}

export async function removeDepot(connection: SshConnection, place: DepotPlace, signal: AbortSignal): Promise<void> {
  await withdraw(connection, { ...place, kept: undefined }, signal);
  await must(connection, `rm -rf -- ${quoted(place.folder)} ${quoted(`${place.folder}.old`)}`, signal);
}

/**
 * Script that replaces the current folder by the staged one. Also repairs an earlier attempt that ended between its two
 * moves.
 */
function switchScript(folder: string, beside: string): string {
  const [to, from, old] = [quoted(folder), quoted(beside), quoted(`${folder}.old`)];
  return [
    `if [ ! -e ${to} ] && [ -e ${old} ]; then mv -- ${old} ${to} || exit 1; fi`,
    `rm -rf -- ${old}`,
    `if [ -e ${to} ]; then mv -- ${to} ${old} || exit 1; fi`,
    `if ! mv -- ${from} ${to}; then [ -e ${old} ] && mv -- ${old} ${to}; exit 1; fi`,
  ].join("\n");
}

const SPREAD = [
  `for path; do`,
  `  path=\${path#./}`,
  `  case "$path" in */*) folder=$ROOT/\${path%/*} ;; *) folder=$ROOT ;; esac`,
  `  mkdir -p -- "$folder" && real=$(cd -P -- "$folder" && pwd -P) || exit 1`,
  // A symbolic link in between may point elsewhere.
  `  case "$real/" in "$ROOT"/*) ;; *) echo "$path leads outside $ROOT" >&2; exit 1 ;; esac`,
  `  target=$real/\${path##*/}`,
  `  if [ -d "$target" ]; then echo "$target is a folder" >&2; exit 1; fi`,
  // The owner of the folder can place a link under any predictable name. The stage therefore has a random name, is
  // closed to others, and is entered before it is used.
  `  stage=$(mktemp -d "$real/.odp-XXXXXXXXXX") || exit 1`,
  `  (cd -P -- "$stage" && cp -p -- "$SOURCE/$path" ./file && mv -f -- ./file "$target") || { rm -rf -- "$stage"; exit 1; }`,
  `  rmdir -- "$stage" || exit 1`,
  `done`,
].join("\n");

/** Copies the depot's files into the remote path as well, each with a rename. */
async function spread(connection: SshConnection, place: DepotPlace, signal: AbortSignal): Promise<void> {
  if (place.remotePath === undefined) return;
  await must(connection, spreadScript({ folder: place.folder, remotePath: place.remotePath }), signal);
}

export function spreadScript(place: { readonly folder: string; readonly remotePath: string }): string {
  return [
    `mkdir -p -- ${quoted(place.remotePath)} || exit 1`,
    `ROOT=$(cd -P -- ${quoted(place.remotePath)} && pwd -P) || exit 1`,
    `cd -- ${quoted(place.folder)} || exit 1`,
    `SOURCE=$PWD`,
    `export ROOT SOURCE`,
    `find . -type f -exec /bin/sh -c ${quoted(SPREAD)} sh {} +`,
  ].join("\n");
}

/** Removes the depot's files, and nothing else, from the remote path. Files that the folder `kept` has as well stay. */
async function withdraw(
  connection: SshConnection,
  { folder, remotePath, kept }: DepotPlace & { readonly kept: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  if (remotePath === undefined) return;
  const script = [
    `[ -d ${quoted(remotePath)} ] && [ -d ${quoted(folder)} ] || exit 0`,
    `ROOT=$(cd -P -- ${quoted(remotePath)} && pwd -P) || exit 1`,
    `KEPT=${kept === undefined ? "" : `$PWD/${quoted(kept)}`}`,
    `export ROOT KEPT`,
    `cd -- ${quoted(folder)} || exit 1`,
    `find . -type f -exec /bin/sh -c ${quoted(WITHDRAW)} sh {} +`,
  ];
  await must(connection, script.join("\n"), signal);
}

const WITHDRAW = [
  `for path; do`,
  `  path=\${path#./}`,
  `  [ -n "$KEPT" ] && [ -f "$KEPT/$path" ] && continue`,
  `  case "$path" in */*) folder=$ROOT/\${path%/*} ;; *) folder=$ROOT ;; esac`,
  `  [ -d "$folder" ] || continue`,
  `  real=$(cd -P -- "$folder" && pwd -P) || exit 1`,
  `  case "$real/" in "$ROOT"/*) ;; *) echo "$path leads outside $ROOT" >&2; exit 1 ;; esac`,
  `  rm -f -- "$real/\${path##*/}" || exit 1`,
  `done`,
].join("\n");

async function makeFolders(connection: SshConnection, beside: string, put: PutDepot): Promise<void> {
  const folders = new Set([beside]);
  for (const { path } of put.files) {
    if (path.includes("/")) folders.add(`${beside}/${path.slice(0, path.lastIndexOf("/"))}`);
  }
  for (const some of portions([...folders], (folder) => folder)) {
    await must(connection, `mkdir -p -- ${some.map(quoted).join(" ")}`, put.signal);
  }
}

const DIGESTS = `if command -v sha256sum >/dev/null 2>&1; then sha256sum -b -- "$@"; else shasum -a 256 -b -- "$@"; fi`;

async function verify(connection: SshConnection, beside: string, put: PutDepot): Promise<void> {
  for (const files of portions(put.files, (file) => file.path)) {
    const script = [
      `cd -- ${quoted(beside)} || exit 1`,
      `set -- ${files.map((file) => quoted(`./${file.path}`)).join(" ")}`,
      DIGESTS,
    ].join("\n");
    const lines = (await must(connection, script, put.signal)).split("\n");
    files.forEach((file, index) => {
      // A backslash before the digest marks an escaped name; only the digest matters.
      const digest = lines[index]?.replace(/^\\/, "").slice(0, 64);
      if (digest !== file.digest)
        throw new AppError("unavailable", `${file.path} arrived damaged on the host: is its disk full?`);
    });
  }
}

/** Splits the items into command lines of bounded length, because the host refuses a long one. */
function* portions<T>(items: readonly T[], text: (item: T) => string): Iterable<readonly T[]> {
  let portion: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const more = Buffer.byteLength(quoted(text(item))) + 4;
    if (portion.length > 0 && bytes + more > SSH_PORTION_BYTES) {
      yield portion;
      portion = [];
      bytes = 0;
    }
    portion.push(item);
    bytes += more;
  }
  if (portion.length > 0) yield portion;
}

/** Returns the output of a script; throws if the script fails. */
async function must(connection: SshConnection, script: string, signal: AbortSignal): Promise<string> {
  const out: Uint8Array[] = [];
  const errors: Uint8Array[] = [];
  const end = await connection.run(script, {
    signal,
    outputMaxBytes: SSH_STEP_OUTPUT_MAX_BYTES,
    onOutput: ({ stderr, data }) => void (stderr ? errors : out).push(data),
  });
  if (end.code === 0) return Buffer.concat(out).toString();
  const reason = Buffer.concat(errors).toString().trim().slice(0, 500);
  throw new AppError("unavailable", reason || `A step on the host ended with ${end.code ?? end.signal ?? "no code"}.`);
}
