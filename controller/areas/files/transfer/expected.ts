import { AppError, isAppError } from "../../../../common/errors.ts";
import { isInside } from "../../../../common/paths.ts";
import { requireExpected, type Expected, type Stamp } from "../../../../common/revisions.ts";
import type { Stores } from "../../../store/engine.ts";
import type { FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import type { FileVisibility } from "../visible.ts";
import { ORDER, type FileWorkJournal } from "../work-journal.ts";

/** The revision of a file or folder. That of a content which an older version stored is its digest. */
export function revisionOfFile(entry: Pick<FileEntry, "stamp" | "content">): string {
  return stampOf(entry).revision;
}

function stampOf({ stamp, content, modifiedMs = 0 }: Partial<FileEntry>): Stamp {
  return stamp ?? { revision: content?.digest ?? "0", atMs: modifiedMs };
}

/** `AppError("stale")` unless the entry is as expected. The error tells no more of it than the caller may see. */
export function requireExpectedFile(
  expected: Expected | undefined,
  { fullname }: Place,
  { entry, visibility }: { readonly entry: FileEntry | undefined; readonly visibility: FileVisibility },
): void {
  try {
    requireExpected(expected, fullname, entry && { stamp: stampOf(entry) });
  } catch (error) {
    if (visibility.rules === undefined || !isAppError(error, "stale")) throw error;
    throw new AppError("stale", `${fullname} is not as expected. Nothing was done.`);
  }
}

/**
 * Finds that no copy, move or removal concerns the places, and returns the condition under which that stays so until the
 * decision of a change. `AppError("conflict")` if one does: it writes rows without conditions.
 */
export async function quietPlaces(
  { stores, journal }: { readonly stores: Stores; readonly journal: FileWorkJournal },
  tenant: string,
  places: readonly Place[],
): Promise<{ readonly key: string; readonly revision: number }> {
  const { kv } = await stores.tenant(tenant);
  const revision = (await kv.get(ORDER))?.revision ?? 0;
  for await (const { open } of journal.all(tenant)) {
    const paths = open.to === undefined ? [open.from] : [open.from, open.to];
    const meets = places.some(
      ({ space, fullname }) => space === open.space && paths.some((path) => isInside(path, fullname)),
    );
    if (meets)
      throw new AppError(
        "conflict",
        `${open.from} is being copied, moved, removed, kept or restored: try again when that has ended.`,
      );
  }
  return { key: ORDER, revision };
}
