import { AppError } from "../../../common/errors.ts";
import { relativePath } from "../../../common/paths.ts";

/** Beginning of a path of the file space, as scp and rsync name a host. `./odp:x` is a local name. */
const REMOTE = "odp:";

/** A file or folder as an argument names it. */
export type PlaceArgument =
  | { readonly isRemote: false; readonly path: string }
  /** A clean path below the root of the file space; empty for the root. */
  | { readonly isRemote: true; readonly path: string };

/** An argument that may be either. `AppError("invalid")` for a path of the file space that is none. */
export function placeArgument(text: string): PlaceArgument {
  if (text === "") throw new AppError("invalid", "A path is empty.");
  if (!text.startsWith(REMOTE)) return { isRemote: false, path: text };
  return { isRemote: true, path: remotePath(text) };
}

/** A path of the file space, with or without `odp:`. */
export function remotePath(text: string): string {
  const below = (text.startsWith(REMOTE) ? text.slice(REMOTE.length) : text).replace(/^\/+/, "").normalize("NFC");
  return below === "" ? "" : relativePath(below);
}

/** A path of the file space that is not its root. */
export function remoteEntry(text: string): string {
  const path = remotePath(text);
  if (path === "") throw new AppError("invalid", "This is the root folder: name what lies below it.");
  return path;
}

/** The local and the remote one of two arguments, and the direction. */
export function direction(
  from: string,
  to: string,
): { readonly local: string; readonly remote: string; readonly isUp: boolean } {
  const [source, target] = [placeArgument(from), placeArgument(to)];
  if (source.isRemote === target.isRemote)
    throw new AppError(
      "invalid",
      `One of the two is a path of the controller, as ${REMOTE}/scripts, and the other one a local path${source.isRemote ? "; odp fs mv moves files of the controller" : ""}.`,
    );
  const [local, remote] = source.isRemote ? [target, source] : [source, target];
  return { local: local.path, remote: remote.path, isUp: !source.isRemote };
}
