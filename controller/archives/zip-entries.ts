import type { Entry } from "yauzl";
import { AppError, errorText } from "../../common/errors.ts";
import { quoted } from "./paths.ts";

/** A file or folder of a zip archive whose entry has passed all checks. */
export interface ZipEntry {
  /** Clean path inside the folder into which the archive is unpacked. */
  readonly path: string;
  readonly isFolder: boolean;
  /** Type and permission bits. Absent: the archive was made on a system that has none. */
  readonly mode: number | undefined;
  /** Bytes of the content as the archive states them. Reading refuses any other number. */
  readonly size: number;
}

/** Systems whose archives have type and permission bits (APPNOTE 4.4.2): Unix and macOS. */
const WITH_MODES: ReadonlySet<number> = new Set([3, 19]);
const TYPE_BITS = 0o170000;
const [LINK, FILE, FOLDER] = [0o120000, 0o100000, 0o040000];
/** Bytes of a local header without its name (APPNOTE 4.3.7). */
const LOCAL_HEADER_BYTES = 30;

export function modeOf({ externalFileAttributes, versionMadeBy }: Entry): number | undefined {
  const mode = externalFileAttributes >>> 16;
  return WITH_MODES.has(versionMadeBy >>> 8) && mode !== 0 ? mode : undefined;
}

/** `AppError("invalid")` for an entry that is no plain file or folder, or that cannot be unpacked. */
export function refuseOddEntry(entry: Entry, name: string): void {
  const type = (modeOf(entry) ?? 0) & TYPE_BITS;
  if (type === LINK) throw refusedEntry(name, "is a link");
  if (type !== 0 && type !== FILE && type !== FOLDER) throw refusedEntry(name, "is neither a file nor a folder");
  if (entry.isEncrypted()) throw refusedEntry(name, "is encrypted");
  if (!entry.canDecodeFileData()) throw refusedEntry(name, "is packed in an unknown way");
  if (name.endsWith("/") && entry.uncompressedSize > 0) throw refusedEntry(name, "is a folder with a content");
}

export function refusedEntry(name: string, reason: string): AppError {
  return new AppError("invalid", `The archive's entry ${quoted(name)} ${reason}; the archive is refused.`);
}

export function damagedEntry(name: string, cause: unknown): AppError {
  const text = `The archive's entry ${quoted(name)} is damaged: ${errorText(cause)}.`;
  return new AppError("invalid", text, { cause });
}

/**
 * `AppError("invalid")` if two entries share bytes of the archive. Honest archives never do; bombs repeat one content
 * under many names in this way.
 */
export function refuseOverlaps(entries: readonly { readonly path: string; readonly raw: Entry }[]): void {
  const start = ({ raw }: { readonly raw: Entry }): number => raw.relativeOffsetOfLocalHeader;
  const inOrder = entries.every((entry, at) => at === 0 || start(entries[at - 1] ?? entry) <= start(entry));
  const sorted = inOrder ? entries : [...entries].sort((one, other) => start(one) - start(other));
  let end = 0;
  for (const { path, raw } of sorted) {
    if (raw.relativeOffsetOfLocalHeader < end) throw refusedEntry(path, "shares its bytes with another entry");
    end = raw.relativeOffsetOfLocalHeader + LOCAL_HEADER_BYTES + raw.compressedSize;
  }
}
