import { mkdtemp, open, readdir, readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isOdpError } from "../../../common/client/index.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { CLI_INPUT_MAX_BYTES } from "../../../common/limits.ts";
import { remoteEntry } from "./places.ts";
import { RemoteFolder } from "./remote.ts";
import type { Wanted } from "./side.ts";
import type { VerbOptions } from "./verbs.ts";

export interface EditOptions extends VerbOptions {
  /** Folder for temporary files. */
  readonly temporary: string;
  /** Opens a file in the editor of the user, and returns its exit code when it ends. */
  readonly editor: (file: string) => Promise<number>;
}

/**
 * Has the user change a file of the controller, or make it, in a private local copy. Writes it back only if it was
 * changed, and only over the version that was read. The copy is kept and named if it holds changes that were not
 * written; so is what an editor that failed left beside it, as a swap file. Returns false if nothing was changed.
 */
export async function editFile(path: string, options: EditOptions): Promise<boolean> {
  const entry = remoteEntry(path);
  const root = new RemoteFolder({ ...options, root: "" });
  const before = await contentOf(root, entry, options.signal);
  const folder = await mkdtemp(join(options.temporary, "odp-edit-"));
  const file = join(folder, basename(entry));
  let isKept = false;
  try {
    await writePrivate(file, before.content);
    const code = await options.editor(file);
    isKept = true;
    const { content, why } = await editedIn(file, code);
    const isChanged = content?.equals(before.content) !== true;
    if (content === undefined || why !== undefined) {
      const kept = await keptIn(folder, isChanged ? undefined : file);
      isKept = kept !== "";
      throw new AppError(content === undefined ? "not_found" : "invalid", `${why}, so nothing was written.${kept}`);
    }
    if (isChanged) await writeBack(root, { entry, file, content, wanted: before.wanted, signal: options.signal });
    isKept = false;
    return isChanged;
  } finally {
    if (!isKept) await rm(folder, { recursive: true, force: true });
  }
}

/** The content that the user wants, or why nothing is to be written. */
async function editedIn(file: string, code: number): Promise<{ readonly content?: Buffer; readonly why?: string }> {
  const failed = code === 0 ? {} : { why: `The editor ended with ${code}` };
  try {
    return { content: await readFile(file), ...failed };
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return { why: isMissing ? `The editor removed ${file}` : errorText(error), ...failed };
  }
}

/** Names what is kept of a failed edit; empty if the folder has nothing but the file that was not changed. */
async function keptIn(folder: string, unchanged: string | undefined): Promise<string> {
  const names = await readdir(folder);
  const [first, ...more] = names.map((name) => join(folder, name)).filter((file) => file !== unchanged);
  if (first === undefined) return "";
  return keptText(more.length === 0 && unchanged === undefined ? first : folder);
}

interface Before {
  readonly content: Buffer;
  readonly wanted: Wanted;
}

/** The file as it is at the controller; an empty one that must not exist if there is none. */
async function contentOf(root: RemoteFolder, path: string, signal: AbortSignal): Promise<Before> {
  const source = await root.open({ path, kind: "file", size: 0, version: "" }, signal);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const piece of source.pieces()) {
      bytes += piece.length;
      if (bytes > CLI_INPUT_MAX_BYTES)
        throw new AppError("too_large", `/${path} has more than ${CLI_INPUT_MAX_BYTES} bytes: use odp fs cp.`);
      pieces.push(piece);
    }
  } catch (error) {
    if (isOdpError(error, "not_found")) return { content: Buffer.alloc(0), wanted: { version: undefined } };
    throw error;
  }
  return { content: Buffer.concat(pieces), wanted: { version: source.read().version } };
}

async function writePrivate(file: string, content: Buffer): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    await handle.writeFile(content);
  } finally {
    await handle.close();
  }
}

interface Written {
  readonly entry: string;
  readonly file: string;
  readonly content: Buffer;
  readonly wanted: Wanted;
  readonly signal: AbortSignal;
}

/** `AppError` with the name of the local file if the content was not written. */
async function writeBack(root: RemoteFolder, { entry, file, content, wanted, signal }: Written): Promise<void> {
  try {
    await root.write(entry, { whole: new Uint8Array(content), pieces: noPieces }, { wanted, signal });
  } catch (error) {
    const code = isAppError(error) ? error.code : "internal";
    const why = code === "stale" ? `/${entry} was changed meanwhile.` : errorText(error);
    throw new AppError(code, `${why}${keptText(file)}`, { cause: error });
  }
}

/** The content is given as a whole. */
async function* noPieces(): AsyncGenerator<Uint8Array> {}

function keptText(path: string): string {
  return ` Your version is kept in ${path}`;
}
