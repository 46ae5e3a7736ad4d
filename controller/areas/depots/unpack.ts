import { createReadStream } from "node:fs";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { openPromise, type Entry } from "yauzl";
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
import type { DepotFile } from "../hosts/index.ts";
import { zipName } from "./entry-names.ts";
import { tarEntries, type TarEntry } from "./tar.ts";
import type { DepotUpload } from "./types.ts";

/** Stores one file's bytes and says where. */
export type SaveContent = (
  bytes: AsyncIterable<Uint8Array>,
) => Promise<{ readonly digest: string; readonly size: number }>;

/** A regular file on its way into a depot. */
interface IncomingFile {
  /** As the sender named it. */
  readonly name: string;
  /** Permission bits; absent when the sender knows none. */
  readonly mode: number | undefined;
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Turns uploads into a depot's files. Archives (`.zip .tar .tar.gz .tgz`) are unpacked, everything else is a file of
 * its own; archives inside archives stay files. Links, devices, encrypted entries, paths that leave the folder, and
 * whatever passes a limit refuse the whole.
 */
export async function unpackUploads(uploads: readonly DepotUpload[], save: SaveContent): Promise<readonly DepotFile[]> {
  const intake = new Intake(save);
  try {
    for (const upload of uploads) await takeUpload(upload, intake);
  } finally {
    // Also after a failure: the removal of the content must not be overtaken by a write still under way.
    await intake.settled();
  }
  refuseFileAsFolder(intake.paths);
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

/** Begins like a script (`#!`) or an ELF program. */
export function looksExecutable(head: Uint8Array): boolean {
  const text = String.fromCharCode(...head.subarray(0, HEAD_BYTES));
  return text.startsWith("#!") || text === "\u007fELF";
}

/** Takes files in one by one, keeps to the limits, and stores small ones side by side. */
class Intake {
  readonly paths = new Set<string>();
  readonly #save: SaveContent;
  readonly #files: DepotFile[] = [];
  readonly #saving = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;
  #left = DEPOT_MAX_BYTES;
  #leftOfUpload = 0;

  constructor(save: SaveContent) {
    this.#save = save;
  }

  /** What follows comes out of this upload, whose size bounds what it may unpack to. */
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

  /** The safe path of one more file. */
  #admit(name: string): string {
    const path = relativePath(name);
    if (this.paths.has(path)) throw new AppError("invalid", `The file ${JSON.stringify(path)} is in the upload twice.`);
    if (this.paths.size >= DEPOT_FILES_MAX)
      throw new AppError("too_large", `A depot holds at most ${DEPOT_FILES_MAX} files.`);
    this.paths.add(path);
    return path;
  }

  /** A small file whole, of a large one the first part and the rest to be read on. */
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
      if (this.#left < 0 || this.#leftOfUpload < 0) throw tooLarge();
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

function tooLarge(): AppError {
  return new AppError(
    "too_large",
    "The upload unpacks to more than allowed: " +
      `at most ${DEPOT_MAX_BYTES} bytes for a depot and ${DEPOT_RATIO_MAX} times the size of its archive.`,
  );
}

function mostUnpacked(upload: DepotUpload): number {
  return upload.size * DEPOT_RATIO_MAX + DEPOT_RATIO_FREE_BYTES;
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

/** Opens only when it is read: content that is refused by its name must not leave a file open. */
async function* opened(open: () => Readable | Promise<Readable>): AsyncGenerator<Uint8Array> {
  yield* (await open()) as AsyncIterable<Uint8Array>;
}

function gunzipped(path: string): Readable {
  // The gunzip stream carries the error of either to its reader; pipeline only closes both.
  return pipeline(createReadStream(path), createGunzip(), () => {});
}

/** Headers, and what stands behind the end, count as well: they are unpacked like files, and cost nothing to pack. */
async function* bounded(bytes: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let left = maxBytes;
  for await (const piece of bytes) {
    left -= piece.length;
    if (left < 0) throw tooLarge();
    yield piece;
  }
}

async function* tarFiles(open: () => Readable, upload: DepotUpload): AsyncGenerator<IncomingFile> {
  const bytes = open();
  let entries = 0;
  try {
    for await (const entry of tarEntries(bounded(bytes, mostUnpacked(upload)), upload.names)) {
      refuseTooManyEntries(++entries);
      refuseOddTarEntry(entry);
      if (entry.type === "file") yield { name: entry.name, mode: entry.mode, content: entry.content };
      else if (!isOwnFolder(entry.name)) relativePath(entry.name);
    }
  } finally {
    bytes.destroy();
  }
}

/** Folder entries count too: an archive of nothing but folders is not free. */
function refuseTooManyEntries(entries: number): void {
  if (entries > 2 * DEPOT_FILES_MAX)
    throw new AppError("too_large", `An archive holds at most ${2 * DEPOT_FILES_MAX} entries.`);
}

function isOwnFolder(name: string): boolean {
  return name === "." || name === "./";
}

function refuseOddTarEntry(entry: TarEntry): void {
  if (entry.type === "link") throw refusedEntry(entry.name, "is a link");
  if (entry.type === "special") throw refusedEntry(entry.name, "is neither a file nor a folder");
}

async function* zipFiles({ path, names }: DepotUpload): AsyncGenerator<IncomingFile> {
  // The decoder of yauzl takes names without a mark for code page 437.
  const zip = await openPromise(path, { decodeStrings: false });
  try {
    refuseTooManyEntries(zip.entryCount);
    for await (const entry of zip.eachEntry()) {
      const mode = unixMode(entry);
      const name = zipName(entry, names);
      refuseOddZipEntry(entry, name, mode);
      if (name.endsWith("/")) relativePath(name);
      else yield { name, mode, content: opened(() => zip.openReadStreamPromise(entry)) };
    }
  } finally {
    zip.close();
  }
}

const MADE_ON_UNIX = 3;
const TYPE_BITS = 0o170000;

/** Type and permission bits when the archive was made on a system that has them. */
function unixMode(entry: Entry): number | undefined {
  const mode = entry.externalFileAttributes >>> 16;
  return entry.versionMadeBy >>> 8 === MADE_ON_UNIX && mode !== 0 ? mode : undefined;
}

function refuseOddZipEntry(entry: Entry, name: string, mode: number | undefined): void {
  const type = (mode ?? 0) & TYPE_BITS;
  if (type === 0o120000) throw refusedEntry(name, "is a link");
  if (type !== 0 && type !== 0o100000 && type !== 0o040000) throw refusedEntry(name, "is neither a file nor a folder");
  if (entry.isEncrypted()) throw refusedEntry(name, "is encrypted");
  if (!entry.canDecodeFileData()) throw refusedEntry(name, "is packed in an unknown way");
}

function refuseFileAsFolder(paths: ReadonlySet<string>): void {
  for (const path of paths) {
    for (let slash = path.indexOf("/"); slash > 0; slash = path.indexOf("/", slash + 1)) {
      const folder = path.slice(0, slash);
      if (paths.has(folder))
        throw new AppError("invalid", `${JSON.stringify(folder)} is both a file and a folder in the upload.`);
    }
  }
}

function refusedEntry(name: string, reason: string): AppError {
  return new AppError(
    "invalid",
    `The archive's entry ${JSON.stringify(name.slice(0, 200))} ${reason}; the upload is refused.`,
  );
}

function unreadable(upload: DepotUpload, error: unknown): AppError {
  const name = JSON.stringify(upload.filename.slice(0, 200));
  return new AppError("invalid", `The upload ${name} cannot be read: ${errorText(error)}.`, { cause: error });
}
