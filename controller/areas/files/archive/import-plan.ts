import { createHash } from "node:crypto";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { FILE_IMPORT_PARALLEL_FILES } from "../../../../common/limits.ts";
import type { ZipEntry } from "../../../archives/zip-entries.ts";
import type { ZipArchive } from "../../../archives/zip-reading.ts";
import type { ThreadSlices } from "../../../turns/slices.ts";
import { sortedInSlices } from "../../../turns/sorting.ts";
import type { Principal } from "../../permissions/index.ts";
import { foldersAbove, type Place, type Space } from "../names.ts";
import { openPlace } from "../open-places.ts";

/** A file of an archive with the place that it gets. */
export interface PlannedFile extends Place {
  readonly entry: ZipEntry;
  readonly size: number;
  /** SHA-256 of the content. */
  readonly digest: string;
}

export interface ImportPlan {
  readonly files: readonly PlannedFile[];
  /** Folders that have an entry and contain no other entry. */
  readonly ownFolders: readonly Place[];
  /** All folders that are to exist, each after the folders above it. */
  readonly folders: readonly Place[];
}

interface Planning {
  readonly space: Space;
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause" | "check">;
}

type Unread = Omit<PlannedFile, "digest">;

/**
 * Reads the whole archive once and stores nothing. `AppError("invalid")` names an entry whose content is damaged or has
 * another size than stated; `denied` one whose path is closed to the caller.
 */
export async function importPlan(principal: Principal, archive: ZipArchive, planning: Planning): Promise<ImportPlan> {
  const { files, ...folders } = await places(principal, archive, planning);
  const withDigest = async (file: Unread): Promise<PlannedFile> => {
    planning.slices.check();
    const hash = createHash("sha256");
    for await (const bytes of archive.read(file.entry)) hash.update(bytes);
    return { ...file, digest: hash.digest("hex") };
  };
  return { files: await mapLimited(files, FILE_IMPORT_PARALLEL_FILES, withDigest), ...folders };
}

async function places(principal: Principal, { entries }: ZipArchive, { space, slices }: Planning) {
  if (entries.length === 0) throw new AppError("invalid", "The archive is empty: it has no file and no folder.");
  const above = new Map<string, Place>();
  const withEntry = new Map<string, Place>();
  const files: Unread[] = [];
  for (const entry of entries) {
    const place = { space, fullname: `/${entry.path}` };
    for (const folder of foldersAbove(place)) above.set(folder.fullname, folder);
    if (entry.isFolder) withEntry.set(place.fullname, place);
    else files.push({ ...openPlace(principal, place), entry, size: entry.size });
    if (slices.isOverNow()) await slices.pause();
  }
  const ownFolders = [...withEntry.values()].filter(({ fullname }) => !above.has(fullname));
  for (const folder of ownFolders) openPlace(principal, folder);
  const folders = await sortedInSlices([...above.values(), ...ownFolders], ({ fullname }) => fullname, slices);
  return { files, ownFolders, folders };
}

/**
 * The paths that an import reports: first the folder that contains everything, then what was unpacked. Each path is cut
 * to `depth` levels if that is given, and listed once.
 */
export async function listed(
  { files, ownFolders }: ImportPlan,
  depth: number | undefined,
  slices: Planning["slices"],
): Promise<readonly string[]> {
  const places = await sortedInSlices([...files, ...ownFolders], ({ fullname }) => fullname, slices);
  const cut = (path: string): string => (depth === undefined ? path : `/${stepsOf(path).slice(0, depth).join("/")}`);
  const [first = "", last = ""] = [places[0]?.fullname, places.at(-1)?.fullname];
  const isFolder = ownFolders.some(({ fullname }) => fullname === first);
  const paths = new Set([cut(`/${commonSteps(first, last, isFolder).join("/")}`)]);
  for (const { fullname } of places) {
    paths.add(cut(fullname));
    if (slices.isOverNow()) await slices.pause();
  }
  return [...paths];
}

/** The folder that contains all sorted paths from the first to the last: what these have in common, all have. */
function commonSteps(first: string, last: string, isFolder: boolean): readonly string[] {
  const [steps, others] = [stepsOf(first), stepsOf(last)];
  const differs = steps.findIndex((step, at) => step !== others[at]);
  if (differs >= 0) return steps.slice(0, differs);
  // A file alone is in the folder above it; a folder alone is itself the folder.
  return isFolder ? steps : steps.slice(0, -1);
}

function stepsOf(path: string): readonly string[] {
  return path.split("/").slice(1);
}
