import { createHash } from "node:crypto";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { FILE_IMPORT_PARALLEL_FILES } from "../../../../common/limits.ts";
import type { ZipEntry } from "../../../archives/zip-entries.ts";
import type { ZipArchive } from "../../../archives/zip-reading.ts";
import type { ThreadSlices } from "../../../turns/slices.ts";
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
  const folders = [...above.values(), ...ownFolders].sort((one, other) => (one.fullname < other.fullname ? -1 : 1));
  return { files, ownFolders, folders };
}

/**
 * The paths that an import reports: first the folder that contains everything, then what was unpacked. Each path is cut
 * to `depth` levels if that is given, and listed once.
 */
export function listed({ files, ownFolders }: ImportPlan, depth = Infinity): readonly string[] {
  const paths = [...files, ...ownFolders].map(({ fullname }) => fullname).sort();
  const [first = "", last = ""] = [paths[0], paths.at(-1)];
  // The paths are sorted, so what the first and the last have in common, all have.
  const steps = first.split("/").slice(1);
  const others = last.split("/").slice(1);
  const differs = steps.findIndex((step, at) => step !== others[at]);
  // A file alone is in the folder above it; a folder alone is itself the folder.
  const isFolder = ownFolders.some(({ fullname }) => fullname === first);
  const common = differs >= 0 ? differs : steps.length - (isFolder ? 0 : 1);
  const cut = (path: string): string => `/${path.split("/").slice(1).slice(0, depth).join("/")}`;
  const folder = cut(`/${steps.slice(0, common).join("/")}`);
  return [...new Set([folder, ...paths.map(cut)])];
}
