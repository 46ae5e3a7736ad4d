import { AppError } from "./errors.ts";
import { PATH_DEPTH_MAX, PATH_MAX_BYTES, PATH_SEGMENT_MAX_BYTES } from "./limits.ts";

/**
 * Makes paths from outside safe. Everything that writes files by such a path (depots, archives, agents, the file
 * system) calls a function of this file and uses only its result.
 */

// Control characters, and characters that change how a name is displayed.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;
const DRIVE = /^[A-Za-z]:/;
const encoder = new TextEncoder();

/**
 * Returns a relative path inside a folder: segments joined by single slashes, no `.`, no `..`, no slash at either end.
 * `AppError("invalid")` if the text could leave the folder, is the folder itself, or means different things on
 * different systems.
 */
export function relativePath(text: string): string {
  refuseUnclean(text);
  if (text.startsWith("/")) throw refused(text, "is absolute");
  if (DRIVE.test(text)) throw refused(text, "names a drive");
  const segments = cleanSegments(text);
  if (segments.length === 0) throw refused(text, "names no file");
  return segments.join("/");
}

/**
 * Returns a normalised absolute path of a folder on a POSIX host. Refuses the root, because files put there could
 * replace the system.
 */
export function absolutePath(text: string): string {
  refuseUnclean(text);
  if (!text.startsWith("/")) throw refused(text, "is not absolute");
  const segments = cleanSegments(text);
  if (segments.length === 0) throw refused(text, "is the root folder");
  return `/${segments.join("/")}`;
}

/** Returns one path segment, such as a depot's name, that is safe as the name of a file or folder. */
export function fileName(text: string): string {
  refuseUnclean(text);
  if (text.includes("/")) throw refused(text, "contains a slash");
  if (DRIVE.test(text)) throw refused(text, "names a drive");
  if (text.trim() !== text) throw refused(text, "begins or ends with a space");
  if (cleanSegments(text)[0] !== text) throw refused(text, "is no name");
  return text;
}

/** True if `path` is `folder` or inside it. Both must be normalised. */
export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

function cleanSegments(text: string): string[] {
  const segments = text.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (segments.includes("..")) throw refused(text, "leaves its folder");
  if (segments.length > PATH_DEPTH_MAX) throw refused(text, `is deeper than ${PATH_DEPTH_MAX} folders`);
  for (const segment of segments) {
    if (encoder.encode(segment).length > PATH_SEGMENT_MAX_BYTES) {
      throw refused(text, `has a name longer than ${PATH_SEGMENT_MAX_BYTES} bytes`);
    }
  }
  return segments;
}

function refuseUnclean(text: string): void {
  if (text === "") throw new AppError("invalid", "A path is empty.");
  if (encoder.encode(text).length > PATH_MAX_BYTES) throw refused(text, `is longer than ${PATH_MAX_BYTES} bytes`);
  if (UNPRINTABLE.test(text)) throw refused(text, "contains a control character");
  if (text.includes("\\")) throw refused(text, "contains a backslash");
  if (/\p{Cs}/u.test(text)) throw refused(text, "is no valid text");
}

function refused(text: string, reason: string): AppError {
  return new AppError("invalid", `The path ${JSON.stringify(text.slice(0, 200))} ${reason}.`, { details: { reason } });
}
