import { createReadStream } from "node:fs";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import {
  DEPOT_FILES_MAX,
  DEPOT_MAX_BYTES,
  DEPOT_PARALLEL_FILES,
  DEPOT_RATIO_FREE_BYTES,
  DEPOT_RATIO_MAX,
  DEPOT_SMALL_FILE_MAX_BYTES,
} from "../../../common/limits.ts";
import { relativePath } from "../../../common/paths.ts";
import { tooManyEntries, unpackedByRatio, unpacksTooMuch, type ArchiveBounds } from "../../archives/bounds.ts";
import { ArchivePaths } from "../../archives/paths.ts";
import { refusedEntry } from "../../archives/zip-entries.ts";
import { ZipArchive } from "../../archives/zip-reading.ts";
import type { DepotFile } from "../hosts/index.ts";
import { tarEntries, type TarEntry } from "./tar.ts";
import type { DepotUpload } from "./types.ts";

const BOUNDS: ArchiveBounds = {
  // Folder entries count, too: an archive of only folders still costs work.
  entriesMax: 2 * DEPOT_FILES_MAX,
  unpackedMaxBytes: DEPOT_MAX_BYTES,
  ratioMax: DEPOT_RATIO_MAX,
  ratioFreeBytes: DEPOT_RATIO_FREE_BYTES,
};

/** Stores the bytes of one file; returns their digest and size. */
export type SaveContent = (
  bytes: AsyncIterable<Uint8Array>,
) => Promise<{ readonly digest: string; readonly size: number }>;

/** A regular file of an upload. */
interface IncomingFile {
  /** The name that the sender gave it. */
  readonly name: string;
  /** Permission bits; absent when the sender did not state any. */
  readonly mode: number | undefined;
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Converts uploads into a depot's files. Archives (`.zip .tar .tar.gz .tgz`) are unpacked; any other upload is one
 * file. Archives inside archives stay files. The whole upload is refused for links, devices, encrypted entries, paths
 * that leave the folder, and anything beyond a limit.
 */
export async function unpackUploads(uploads: readonly DepotUpload[], save: SaveContent): Promise<readonly DepotFile[]> {
  const intake = new Intake(save);
  try {
    for (const upload of uploads) await takeUpload(upload, intake);
  } finally {
    // Also after a failure: a pending write must not end after its content has been removed.
    await intake.settled();
  }
  const files = intake.files();
  if (files.length === 0) throw new AppError("invalid", "The upload has no file in it.");
  return files;
}

async function takeUpload(upload: DepotUpload, intake: Intake): Promise<void> {
  intake.begin(upload);
  try {
    for await (const incoming of filesOf(upload)) await intake.take(incoming);
  } catch (error) {
    throw isAppError(error) ? error : unreadable(upload, error);
  }
}

const HEAD_BYTES = 4;

/** True if the content begins like a script (`#!`) or an ELF program. */
export function looksExecutable(head: Uint8Array): boolean {
  const text = String.fromCharCode(...head.subarray(0, HEAD_BYTES));
  return text.startsWith("#!") || text === "\u007fELF";
}

/** Takes files one by one, enforces the limits, and stores small files in parallel. */
class Intake {
  readonly #paths = new ArchivePaths();
  readonly #save: SaveContent;
  readonly #files: DepotFile[] = [];
  readonly #saving = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;
  #left = DEPOT_MAX_BYTES;
  #leftOfUpload = 0;

  constructor(save: SaveContent) {
    this.#save = save;
  }

  /** The files that follow belong to this upload; its size bounds its unpacked size. */
  begin(upload: DepotUpload): void {
    this.#leftOfUpload = mostUnpacked(upload);
  }

  async take(incoming: IncomingFile): Promise<void> {
    const path = this.#admit(incoming.name);
    const { head, rest } = await this.#beginning(incoming.content);
    const executable = incoming.mode === undefined ? looksExecutable(head) : (incoming.mode & 0o111) !== 0;
    const work = async (): Promise<void> => {
      const { digest, size } = await this.#save(joined(head, rest));
      this.#files.push({ path, digest, size, executable });
    };
    if (rest) await work();
    else await this.#aside(work);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#saving);
  }

  files(): readonly DepotFile[] {
    if (this.#failure) throw this.#failure.error;
    return this.#files.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** Checks one more file; returns its safe path. */
  #admit(name: string): string {
    if (this.#paths.files.size >= DEPOT_FILES_MAX)
      throw new AppError("too_large", `A depot holds at most ${DEPOT_FILES_MAX} files.`);
    return this.#paths.addFile(name);
  }

  /** Reads the whole of a small file. For a large file returns the first part, and the rest as a stream. */
  async #beginning(
    content: AsyncIterable<Uint8Array>,
  ): Promise<{ head: Uint8Array; rest?: AsyncIterable<Uint8Array> }> {
    const source = this.#counted(content);
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const next = await source.next();
      if (next.done) return { head: Buffer.concat(pieces) };
      pieces.push(next.value);
      size += next.value.length;
      if (size > DEPOT_SMALL_FILE_MAX_BYTES) return { head: Buffer.concat(pieces), rest: source };
    }
  }

  async *#counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of content) {
      this.#left -= piece.length;
      this.#leftOfUpload -= piece.length;
      if (this.#left < 0 || this.#leftOfUpload < 0) throw unpacksTooMuch(BOUNDS);
      yield piece;
    }
  }

  async #aside(work: () => Promise<void>): Promise<void> {
    if (this.#failure) throw this.#failure.error;
    if (this.#saving.size >= DEPOT_PARALLEL_FILES) await Promise.race(this.#saving);
    const saving = work()
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#saving.delete(saving));
    this.#saving.add(saving);
  }
}

async function* joined(head: Uint8Array, rest: AsyncIterable<Uint8Array> | undefined): AsyncGenerator<Uint8Array> {
  yield head;
  if (rest) yield* rest;
}

function mostUnpacked(upload: DepotUpload): number {
  return unpackedByRatio(BOUNDS, upload.size);
}

function filesOf(upload: DepotUpload): AsyncIterable<IncomingFile> {
  const name = upload.filename.toLowerCase();
  if (name.endsWith(".zip")) return zipFiles(upload);
  if (name.endsWith(".tar")) return tarFiles(() => createReadStream(upload.path), upload);
  if (name.endsWith(".tar.gz") || name.endsWith(".tgz")) return tarFiles(() => gunzipped(upload.path), upload);
  return plainFile(upload);
}

async function* plainFile(upload: DepotUpload): AsyncGenerator<IncomingFile> {
  yield { name: upload.filename, mode: undefined, content: opened(() => createReadStream(upload.path)) };
}

/** Opens the source only when it is read: content that is refused by its name must not leave a file open. */
async function* opened(open: () => Readable | Promise<Readable>): AsyncGenerator<Uint8Array> {
  yield* (await open()) as AsyncIterable<Uint8Array>;
}

function gunzipped(path: string): Readable {
  // The gunzip stream reports errors of both streams to its reader; pipeline only closes them.
  return pipeline(createReadStream(path), createGunzip(), () => {});
}

/** Headers and bytes after the end of the archive count, too: they are unpacked like files, but cost little to pack. */
async function* bounded(bytes: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let left = maxBytes;
  for await (const piece of bytes) {
    left -= piece.length;
    if (left < 0) throw unpacksTooMuch(BOUNDS);
    yield piece;
  }
}

async function* tarFiles(open: () => Readable, upload: DepotUpload): AsyncGenerator<IncomingFile> {
  const bytes = open();
  let entries = 0;
  try {
    for await (const entry of tarEntries(bounded(bytes, mostUnpacked(upload)), upload.names)) {
      if (++entries > BOUNDS.entriesMax) throw tooManyEntries(BOUNDS);
      refuseOddTarEntry(entry);
      if (entry.type === "file") yield { name: entry.name, mode: entry.mode, content: entry.content };
      else if (!isOwnFolder(entry.name)) relativePath(entry.name);
    }
  } finally {
    bytes.destroy();
  }
}

function isOwnFolder(name: string): boolean {
  return name === "." || name === "./";
}

function refuseOddTarEntry(entry: TarEntry): void {
  if (entry.type === "link") throw refusedEntry(entry.name, "is a link");
  if (entry.type === "special") throw refusedEntry(entry.name, "is neither a file nor a folder");
}

async function* zipFiles({ path, names }: DepotUpload): AsyncGenerator<IncomingFile> {
  await using zip = await ZipArchive.open(path, { bounds: BOUNDS, names });
  for (const entry of zip.entries) {
    if (!entry.isFolder) yield { name: entry.path, mode: entry.mode, content: zip.read(entry) };
  }
}

function unreadable(upload: DepotUpload, error: unknown): AppError {
  const name = JSON.stringify(upload.filename.slice(0, 200));
  return new AppError("invalid", `The upload ${name} cannot be read: ${errorText(error)}.`, { cause: error });
}
