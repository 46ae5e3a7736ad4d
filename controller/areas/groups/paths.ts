import { AppError } from "../../../common/errors.ts";
import { absolutePath } from "../../../common/paths.ts";

/** Normalised, without repetitions; `/` is every path. `AppError("invalid")` for text that is no path. */
export function apiPaths(paths: readonly string[]): readonly string[] {
  if (paths.length === 0) throw new AppError("invalid", "path is missing: a folder or a file.");
  return [...new Set(paths.map((path) => (path.trim() === "/" ? "/" : absolutePath(path.trim()))))];
}
