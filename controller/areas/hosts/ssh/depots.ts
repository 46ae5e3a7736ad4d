import type { SFTPWrapper } from "ssh2";
import { AppError, errorText } from "../../../../common/errors.ts";
import { mapLimited } from "../../../../common/concurrency.ts";
import { SSH_UPLOADS_AT_ONCE } from "../../../../common/limits.ts";
import { absolutePath, fileName, relativePath } from "../../../../common/paths.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { DepotFile, DepotToDeploy } from "../types.ts";
import type { SshConnection } from "./connection.ts";
import { quoted } from "./shell.ts";

/** Below the SSH user's home. */
const DEFAULT_ROOT = "odp/depots";
const SSH_PORTION_BYTES = 16 * 1024;

/** Where a depot lies on a host: one folder, whatever the version. */
export function depotFolder(name: string, remotePath: string | undefined): string {
  const root = remotePath === undefined || remotePath === "" ? DEFAULT_ROOT : absolutePath(remotePath);
  return `${root}/${fileName(name)}`;
}

/** The depot's files with their paths made safe, before anything is sent. */
export function checkedFiles(depot: DepotToDeploy): readonly DepotFile[] {
  const files = depot.files.map((file) => ({ ...file, path: relativePath(file.path) }));
  if (new Set(files.map((file) => file.path)).size < files.length) {
    throw new AppError("invalid", `The depot ${depot.name} names a file twice.`);
  }
  return files;
}

export interface PutDepot {
  readonly files: readonly DepotFile[];
  readonly folder: string;
  /** Tells this attempt from others, for the folder beside. */
  readonly attempt: string;
}

/** Unpacks beside, compares every byte's digest on the host, and only then takes the place of what was there. */
export async function putDepot(connection: SshConnection, blobs: BlobStore, put: PutDepot & { readonly signal: AbortSignal }): Promise<void> {
  const beside = `${put.folder}.new-${put.attempt}`;
  const old = `${put.folder}.old-${put.attempt}`;
  try {
    await makeFolders(connection, beside, put);
    await upload(connection, blobs, { ...put, beside });
    await verify(connection, beside, put);
    await must(connection, switchScript(put.folder, beside, old), put.signal);
  } catch (error) {
    // Also when the time is over: what was half sent must not stay.
    await connection.run(`rm -rf -- ${quoted(beside)}`, { signal: new AbortController().signal }).catch(() => undefined);
    throw error;
  }
}

export async function removeDepot(connection: SshConnection, folder: string, signal: AbortSignal): Promise<void> {
  await must(connection, `rm -rf -- ${quoted(folder)}`, signal);
}

/** The old folder comes back when the new one cannot take its place. */
function switchScript(folder: string, beside: string, old: string): string {
  const [to, from, aside] = [quoted(folder), quoted(beside), quoted(old)];
  return [
    `if [ -e ${to} ] || [ -L ${to} ]; then mv -- ${to} ${aside} || exit 1; fi`,
    `if ! mv -- ${from} ${to}; then [ -e ${aside} ] && mv -- ${aside} ${to}; exit 1; fi`,
    `rm -rf -- ${aside}`,
  ].join("\n");
}

async function makeFolders(connection: SshConnection, beside: string, put: PutDepot & { readonly signal: AbortSignal }): Promise<void> {
  const folders = new Set([beside]);
  for (const { path } of put.files) {
    if (path.includes("/")) folders.add(`${beside}/${path.slice(0, path.lastIndexOf("/"))}`);
  }
  for (const some of portions([...folders], (folder) => folder)) {
    await must(connection, `umask 077\nmkdir -p -- ${some.map(quoted).join(" ")}`, put.signal);
  }
}

async function upload(connection: SshConnection, blobs: BlobStore, put: PutDepot & { readonly beside: string; readonly signal: AbortSignal }): Promise<void> {
  const sftp = await connection.sftp();
  try {
    await mapLimited(put.files, SSH_UPLOADS_AT_ONCE, async (file) => {
      if (put.signal.aborted) throw new AppError("deadline", "The time was over before everything was sent.");
      await write(sftp, `${put.beside}/${file.path}`, { mode: file.executable ? 0o755 : 0o644, content: blobs.read(file.digest), signal: put.signal });
    });
  } finally {
    sftp.end();
  }
}

async function write(sftp: SFTPWrapper, path: string, file: { mode: number; content: AsyncIterable<Uint8Array>; signal: AbortSignal }): Promise<void> {
  const handle = await open(sftp, path, file.mode);
  try {
    let offset = 0;
    for await (const bytes of file.content) {
      if (file.signal.aborted) throw new AppError("deadline", "The time was over before everything was sent.");
      await writeAt(sftp, { handle, path }, { bytes: Buffer.from(bytes), offset });
      offset += bytes.length;
    }
  } finally {
    await new Promise<void>((resolve) => sftp.close(handle, () => resolve()));
  }
}

function open(sftp: SFTPWrapper, path: string, mode: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    sftp.open(path, "wx", { mode }, (error, handle) => (error ? reject(writeError(path, error)) : resolve(handle)));
  });
}

function writeAt(sftp: SFTPWrapper, to: { handle: Buffer; path: string }, part: { bytes: Buffer; offset: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    sftp.write(to.handle, part.bytes, 0, part.bytes.length, part.offset, (error) => (error ? reject(writeError(to.path, error)) : resolve()));
  });
}

function writeError(path: string, error: unknown): AppError {
  return new AppError("unavailable", `${path} cannot be written on the host: ${errorText(error)}`, { cause: error });
}

const DIGESTS = `if command -v sha256sum >/dev/null 2>&1; then sha256sum -b -- "$@"; else shasum -a 256 -b -- "$@"; fi`;

async function verify(connection: SshConnection, beside: string, put: PutDepot & { readonly signal: AbortSignal }): Promise<void> {
  for (const files of portions(put.files, (file) => file.path)) {
    const script = [`cd -- ${quoted(beside)} || exit 1`, `set -- ${files.map((file) => quoted(`./${file.path}`)).join(" ")}`, DIGESTS].join("\n");
    const lines = (await must(connection, script, put.signal)).split("\n");
    files.forEach((file, index) => {
      // A backslash before the digest tells of an escaped name; the digest is what counts.
      const digest = lines[index]?.replace(/^\\/, "").slice(0, 64);
      if (digest !== file.digest) throw new AppError("unavailable", `${file.path} arrived damaged on the host: is its disk full?`);
    });
  }
}

/** Command lines of bounded length: a long one is refused by the host. */
function* portions<T>(items: readonly T[], text: (item: T) => string): Iterable<readonly T[]> {
  let portion: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const more = Buffer.byteLength(quoted(text(item))) + 4;
    if (portion.length > 0 && bytes + more > SSH_PORTION_BYTES) {
      yield portion;
      portion = [];
      bytes = 0;
    }
    portion.push(item);
    bytes += more;
  }
  if (portion.length > 0) yield portion;
}

/** Output of a script that must end well. */
async function must(connection: SshConnection, script: string, signal: AbortSignal): Promise<string> {
  const out: Uint8Array[] = [];
  const errors: Uint8Array[] = [];
  const end = await connection.run(script, { signal, onOutput: ({ stderr, data }) => void (stderr ? errors : out).push(data) });
  if (end.code === 0) return Buffer.concat(out).toString();
  const reason = Buffer.concat(errors).toString().trim().slice(0, 500);
  throw new AppError("unavailable", reason || `A step on the host ended with ${end.code ?? end.signal ?? "no code"}.`);
}
