import type { Readable } from "node:stream";
import { ZipWriting } from "../../../archives/zip-writing.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { ThreadSlices } from "../../../turns/slices.ts";
import { extensionOf } from "../names.ts";
import type { ExportedTree } from "./exported-tree.ts";

/** Extensions of formats that are packed already. */
const PACKED: ReadonlySet<string> = new Set(
  "7z aac apk avif br bz2 docx epub flac gif gz heic heif jar jpeg jpg lz4 lzma m4a m4v mkv mov mp3 mp4 mpeg mpg odp ods odt ogg opus png pptx rar tgz tbz2 txz war webm webp whl woff woff2 xlsx xz zip zst".split(
    " ",
  ),
);

interface Source {
  readonly blobs: Pick<BlobStore, "read">;
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
}

/**
 * The zip archive of a tree: first its folders, then its files, each under its whole path. Contents are read one after
 * the other, as fast as the archive is read. If one of them is missing or damaged, the archive breaks off.
 */
export function exportedBytes(tree: ExportedTree, source: Source): Readable {
  const zip = new ZipWriting();
  write(zip, tree, source).catch((error: unknown) => zip.output.destroy(error as Error));
  return zip.output;
}

async function write(zip: ZipWriting, { folders, files }: ExportedTree, { blobs, slices }: Source): Promise<void> {
  for (const { fullname, modifiedMs } of folders) {
    zip.addFolder(inArchive(fullname), { modified: new Date(modifiedMs) });
    if (slices.isOverNow()) await slices.pause();
  }
  for (const { fullname, modifiedMs, digest, size } of files) {
    const options = { modified: new Date(modifiedMs), isStored: PACKED.has(extensionOf(fullname)), size };
    await zip.addContent(inArchive(fullname), options, () => blobs.read(digest));
    if (zip.output.destroyed) return;
    if (slices.isOverNow()) await slices.pause();
  }
  zip.end();
}

/** Archives have relative paths. */
function inArchive(fullname: string): string {
  return fullname.slice(1);
}
