import type { Readable } from "node:stream";
import { zipStream, type ZipPart } from "../../../archives/zip-writing.ts";
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
  return zipStream(parts(tree, source));
}

async function* parts({ folders, files }: ExportedTree, { blobs, slices }: Source): AsyncGenerator<ZipPart> {
  for (const { fullname, modifiedMs } of folders) {
    yield { path: inArchive(fullname), modified: new Date(modifiedMs) };
    if (slices.isOverNow()) await slices.pause();
  }
  for (const { fullname, modifiedMs, digest, size } of files) {
    const content = { open: () => blobs.read(digest), isStored: PACKED.has(extensionOf(fullname)), size };
    yield { path: inArchive(fullname), modified: new Date(modifiedMs), content };
    if (slices.isOverNow()) await slices.pause();
  }
}

/** Archives have relative paths. */
function inArchive(fullname: string): string {
  return fullname.slice(1);
}
