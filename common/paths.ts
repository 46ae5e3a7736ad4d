import { AppError } from "./errors.ts";
import { PATH_DEPTH_MAX, PATH_MAX_BYTES, PATH_SEGMENT_MAX_BYTES } from "./limits.ts";

/**
 * The one place where paths that came from outside are made safe. Everything that writes files by such a path (depots,
 * archives, agents, the file system) goes through here and uses only the answer.
 */

// Control characters, and the ones that change how a name is shown.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;
const DRIVE = /^[A-Za-z]:/;
const encoder = new TextEncoder();

/**
 * A relative path inside some folder: segments joined by single slashes, no `.`, no `..`, no leading or trailing slash.
 * `AppError("invalid")` when the text could leave the folder, names the folder itself or means different things on
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
 * An absolute folder on a POSIX host, normalised; the root itself is refused, for what is put there could replace the
 * system.
 */
export function absolutePath(text: string): string {
  refuseUnclean(text);
  if (!text.startsWith("/")) throw refused(text, "is not absolute");
  const segments = cleanSegments(text);
  if (segments.length === 0) throw refused(text, "is the root folder");
  return `/${segments.join("/")}`;
}

/** One path segment, such as a depot's name: safe as the name of a file or folder. */
export function fileName(text: string): string {
  refuseUnclean(text);
  if (text.includes("/")) throw refused(text, "contains a slash");
  if (DRIVE.test(text)) throw refused(text, "names a drive");
  if (text.trim() !== text) throw refused(text, "begins or ends with a space");
  if (cleanSegments(text)[0] !== text) throw refused(text, "is no name");
  return text;
}

/** True when `path` is in `folder` or is it; both already normalised. */
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
