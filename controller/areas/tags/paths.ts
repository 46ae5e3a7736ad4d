import { AppError } from "../../../common/errors.ts";
import { TAG_DEPTH_MAX, TAG_DOMAIN_MAX_BYTES, TAG_PATH_MAX_BYTES } from "../../../common/limits.ts";
import { checkName } from "../../../common/names.ts";

const DOMAIN = { what: "domain of tags", maxBytes: TAG_DOMAIN_MAX_BYTES, limit: "TAG_DOMAIN_MAX_BYTES" };
const PATH = { what: "path of a tag", maxBytes: TAG_PATH_MAX_BYTES, limit: "TAG_PATH_MAX_BYTES" };

export function checkDomain(domain: string): void {
  checkName(domain, DOMAIN);
}

/**
 * The normalised path: parts separated by slashes, no slash at its ends. `AppError("invalid")` for parts that are
 * empty, `.` or `..` or have blanks at an end, and for control characters; `AppError("too_large")`.
 */
export function tagPath(text: string): string {
  const path = text.replace(/^\//, "").replace(/\/$/, "");
  checkName(path, PATH);
  const parts = path.split("/");
  if (parts.length > TAG_DEPTH_MAX)
    throw new AppError("too_large", `A tag lies at most ${TAG_DEPTH_MAX} deep.`, {
      details: { limit: "TAG_DEPTH_MAX" },
    });
  for (const part of parts) {
    if (part === "" || part === "." || part === ".." || part.trim() !== part)
      throw new AppError(
        "invalid",
        `The path of a tag has a part ${JSON.stringify(part)}: parts are names, without blanks at their ends.`,
      );
  }
  return path;
}

/** The path and those above it, shortest first. */
export function lineOf(path: string): readonly string[] {
  const parts = path.split("/");
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
}

export function isAtOrBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

/** The new path of `path`, which is at or below `from`, after `from` moves to `to`. */
export function movedPath(path: string, { from, to }: { readonly from: string; readonly to: string }): string {
  return to + path.slice(from.length);
}
