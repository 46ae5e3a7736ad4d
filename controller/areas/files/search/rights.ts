import { isAppError } from "../../../../common/errors.ts";
import type { FileEntry } from "../entries.ts";
import type { FileVisibility } from "../visible.ts";

/** True if the rules let the principal read the content of the file. */
export function readsContent(visibility: FileVisibility, entry: FileEntry): boolean {
  return visibility.shown(entry) !== undefined && isAllowed(() => visibility.requireContent(entry));
}

/** True if the rules let the principal include the file in the search: it reads the content and may write the file. */
export function mayInclude(visibility: FileVisibility, entry: FileEntry): boolean {
  const change = { before: entry, after: {}, columns: [] };
  return readsContent(visibility, entry) && isAllowed(() => visibility.requireWriting(entry, change));
}

function isAllowed(check: () => void): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (isAppError(error, "denied")) return false;
    throw error;
  }
}
