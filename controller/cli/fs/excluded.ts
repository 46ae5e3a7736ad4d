import { AppError } from "../../../common/errors.ts";
import { wildcard } from "../../../common/text/wildcard.ts";

/** Beginning of the names of files that a sync keeps in the local folder. They are on neither side. */
export const OWN_PREFIX = ".odp-sync-";

/** Names that are rarely meant: version control, files that editors write beside the edited one, and of desktops. */
export const EXCLUDED_BY_DEFAULT: readonly string[] = [
  ...[".git", ".hg", ".svn"],
  ...["*.swp", "*.swo", "*.swx", "*~", ".#*", "#*#", "4913", "*___jb_tmp___", "*___jb_old___"],
  ...[".DS_Store", "Thumbs.db"],
];

export interface ExclusionOptions {
  /** A pattern without a slash is for each name of a path, one with a slash for the path below the root. */
  readonly patterns: readonly string[];
  readonly byDefault: boolean;
}

/**
 * True for the key of an excluded entry, whose parents are not: the entries below an excluded folder are not asked for.
 * `*` stands for any text, in a pattern of a path also for slashes.
 */
export function exclusion({ patterns, byDefault }: ExclusionOptions): (key: string) => boolean {
  const all = [`${OWN_PREFIX}*`, ...(byDefault ? EXCLUDED_BY_DEFAULT : []), ...patterns.map(cleaned)];
  const names = all.filter((pattern) => !pattern.includes("/")).map(wildcard);
  const paths = all.filter((pattern) => pattern.includes("/")).map((pattern) => wildcard(pattern.replace(/^\//, "")));
  return (key) => {
    const name = key.slice(key.lastIndexOf("/") + 1);
    return names.some((matches) => matches(name)) || paths.some((matches) => matches(key));
  };
}

function cleaned(pattern: string): string {
  const clean = pattern.normalize("NFC").replace(/^\.\//, "/").replace(/\/+$/, "");
  if (clean === "") throw new AppError("invalid", `--exclude takes the pattern of a name or a path, not "${pattern}".`);
  return clean;
}
