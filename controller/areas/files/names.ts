import { AppError } from "../../../common/errors.ts";
import { relativePath } from "../../../common/paths.ts";

/** The users' space and the system's space are two separate trees. */
export type Space = "user" | "system";

/** A file or folder as a caller names it. */
export interface FileName {
  readonly path: string;
  readonly space: Space;
}

/**
 * The stored path of a file or folder: `fullname` begins with a slash and has none at its end, except for the root `/`.
 */
export interface Place {
  readonly space: Space;
  readonly fullname: string;
}

/** Any place, including the root. `AppError("invalid")` for a path that is not clean. */
export function placeOf({ path, space }: FileName): Place {
  const below = path.replace(/^\/+/, "");
  return { space, fullname: below === "" ? "/" : `/${relativePath(below)}` };
}

/** Any place except the root, which is `AppError("invalid")`. */
export function placeBelowRoot(name: FileName): Place {
  const place = placeOf(name);
  if (place.fullname === "/") throw new AppError("invalid", "This is the root folder: name what lies below it.");
  return place;
}

export function nameOf(fullname: string): string {
  return fullname.slice(fullname.lastIndexOf("/") + 1);
}

export function parentOf(fullname: string): string {
  return fullname.slice(0, fullname.lastIndexOf("/")) || "/";
}

/** The place of `name` in a folder. */
export function placeIn(folder: Place, name: string): Place {
  return { space: folder.space, fullname: folder.fullname === "/" ? `/${name}` : `${folder.fullname}/${name}` };
}

/** The folders above a place, nearest first, without the root. */
export function foldersAbove({ space, fullname }: Place): readonly Place[] {
  const above: Place[] = [];
  for (let at = parentOf(fullname); at !== "/"; at = parentOf(at)) above.push({ space, fullname: at });
  return above;
}

/** The extension in lower case; empty if there is none, and for `dir`, which is the type of folders. */
export function extensionOf(fullname: string): string {
  const extension = /\.([^./]+)$/.exec(fullname)?.[1]?.toLowerCase() ?? "";
  return extension === "dir" ? "" : extension;
}
