import { realpath, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { isOdpError } from "../../../common/client/index.ts";
import { AppError } from "../../../common/errors.ts";
import { LocalFolder } from "./local.ts";
import { placeArgument, remoteEntry, remotePath } from "./places.ts";
import { RemoteFolder, type FileClient, type Listed } from "./remote.ts";
import type { Side } from "./side.ts";
import { below, type TreeEntry } from "./tree.ts";

export interface VerbOptions {
  readonly client: FileClient;
  /** True for the system's space of files. */
  readonly isSystem: boolean;
  readonly signal: AbortSignal;
}

export async function listFolder(path: string, { signal, ...space }: VerbOptions): Promise<readonly Listed[]> {
  return new RemoteFolder({ ...space, root: remotePath(path) }).list("", signal);
}

/** Passes on the bytes of a file, until `write` returns false. */
export async function showFile(
  path: string,
  { signal, write, ...space }: VerbOptions & { readonly write: (bytes: Uint8Array) => Promise<boolean> },
): Promise<void> {
  const source = await new RemoteFolder({ ...space, root: "" }).open(unlisted(remoteEntry(path)), signal);
  for await (const piece of source.pieces()) if (!(await write(piece))) return;
}

/** Removes a file, or with `isTree` also a folder with all below it. */
export async function removeEntry(
  path: string,
  { signal, isTree, ...space }: VerbOptions & { readonly isTree: boolean },
): Promise<void> {
  const root = new RemoteFolder({ ...space, root: "" });
  const entry = remoteEntry(path);
  if (isTree) return root.removeTree(entry, signal);
  await root.removeFile(entry, signal).catch((error: unknown) => {
    // The condition of the call is that there is an entry.
    if (isOdpError(error, "stale"))
      throw new AppError("not_found", `There is no file /${entry}. Nothing was done.`, { cause: error });
    if (!isOdpError(error, "unsupported")) throw error;
    throw new AppError("invalid", `/${entry} is a folder: add -r to remove it with all below it.`, { cause: error });
  });
}

/** Renames an entry, or moves it into the folder `to` if that ends with a slash. Nothing may be there. */
export async function moveEntry(from: string, to: string, { client, isSystem, signal }: VerbOptions): Promise<void> {
  const body = { srcpath: remoteEntry(from), ...(isSystem && { issys: true }) };
  if (to.endsWith("/")) {
    const dstpath = `/${remotePath(to)}`;
    await client.call("postFsMove", { body: { ...body, dstpath } }, { signal });
  } else await client.call("postFsRename", { body: { ...body, dstpath: remoteEntry(to) } }, { signal });
}

export interface CopyOptions extends VerbOptions {
  readonly nowMs: () => number;
  readonly platform: string;
}

interface Copied {
  readonly from: string;
  readonly to: string;
}

/** Copies one file up or down, over a file that is there. A target that is a folder gets it under its own name. */
export async function copyFile(from: string, to: string, options: CopyOptions): Promise<Copied> {
  const [source, target] = [placeArgument(from), placeArgument(to)];
  if (source.isRemote === target.isRemote)
    throw new AppError(
      "invalid",
      "One of the two is a path of the controller, as odp:/scripts/a.js, and the other one a local path.",
    );
  return source.isRemote
    ? copyDown(source.path, target.path, options)
    : copyUp(source.path, target.path, { ...options, to });
}

async function copyUp(local: string, remote: string, options: CopyOptions & { readonly to: string }): Promise<Copied> {
  const { signal, to, nowMs, platform } = options;
  // A link that is named is followed, unlike one that is found in a folder.
  const real = await realpath(local).catch(missing(local));
  const stats = await stat(real);
  if (stats.isDirectory()) throw new AppError("invalid", `${local} is a folder: add -r to copy what is in it.`);
  if (!stats.isFile()) throw new AppError("invalid", `${local} is neither a file nor a folder.`);
  const root = new RemoteFolder({ ...options, root: "" });
  const name = basename(local);
  const isInto = remote === "" || to.endsWith("/") || (await isFolder(root, remote, signal));
  const path = isInto ? below(remote, name.normalize("NFC")) : remote;
  const entry = { path: basename(real), kind: "file", size: stats.size, version: "" } as const;
  const folder = new LocalFolder({ root: dirname(real), nowMs, platform });
  return copied({ source: folder, entry, target: root, path, signal });
}

async function copyDown(remote: string, local: string, options: CopyOptions): Promise<Copied> {
  const { signal, nowMs, platform } = options;
  const entry = unlisted(remoteEntry(remote));
  const isInto = local.endsWith("/") || (await stat(local).catch(() => undefined))?.isDirectory() === true;
  const at = isInto ? resolve(local, basename(entry.path)) : resolve(local);
  const folder = new LocalFolder({ root: dirname(at), nowMs, platform });
  await folder.identity();
  return copied({
    source: new RemoteFolder({ ...options, root: "" }),
    entry,
    target: folder,
    path: basename(at),
    signal,
  });
}

interface Copying {
  readonly source: Side;
  readonly entry: TreeEntry;
  readonly target: Side;
  readonly path: string;
  readonly signal: AbortSignal;
}

async function copied({ source, entry, target, path, signal }: Copying): Promise<Copied> {
  await target.write(path, await source.open(entry, signal), { wanted: "any", signal });
  const named = (side: Side, at: string): string => below(side.name.replace(/\/$/, ""), at);
  return { from: named(source, entry.path), to: named(target, path) };
}

async function isFolder(root: RemoteFolder, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    await root.list(path, signal);
    return true;
  } catch (error) {
    if (isOdpError(error, "not_found", "invalid")) return false;
    throw error;
  }
}

/** A file of which nothing but its path is known. */
function unlisted(path: string): TreeEntry {
  return { path, kind: "file", size: 0, version: "" };
}

function missing(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "ENOENT") throw error;
    throw new AppError("not_found", `There is no file ${path}.`);
  };
}
