import type { SFTPWrapper } from "ssh2";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { SSH_UPLOADS_AT_ONCE } from "../../../../common/limits.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { DepotFile } from "../types.ts";
import type { SshConnection } from "./connection.ts";

export interface Upload {
  readonly files: readonly DepotFile[];
  /** Folder on the host. It and those of the files are there. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Writes the files on the host by SFTP. `AppError("deadline")` as soon as the signal fires, also if the server does not
 * answer, and `unavailable` if a file cannot be written.
 */
export async function upload(
  connection: Pick<SshConnection, "sftp">,
  blobs: Pick<BlobStore, "read">,
  { files, folder, signal }: Upload,
): Promise<void> {
  const sftp = await answered<SFTPWrapper>({ path: folder, signal }, (answer) => {
    connection.sftp().then((opened) => {
      // The upload has ended without it.
      if (signal.aborted) opened.end();
      else answer(undefined, opened);
    }, answer);
  });
  try {
    await mapLimited(files, SSH_UPLOADS_AT_ONCE, (file) =>
      write(sftp, `${folder}/${file.path}`, {
        mode: file.executable ? 0o755 : 0o644,
        content: blobs.read(file.digest),
        signal,
      }),
    );
  } finally {
    sftp.end();
  }
}

interface RemoteFile {
  readonly mode: number;
  readonly content: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

async function write(sftp: SFTPWrapper, path: string, { mode, content, signal }: RemoteFile): Promise<void> {
  const step = { path, signal };
  const handle = await answered<Buffer>(step, (answer) => sftp.open(path, "wx", { mode }, answer));
  try {
    let offset = 0;
    for await (const bytes of content) {
      const at = offset;
      await answered(step, (answer) => sftp.write(handle, Buffer.from(bytes), 0, bytes.length, at, answer));
      offset += bytes.length;
    }
  } finally {
    // The end of the channel closes the file as well.
    await answered(step, (answer) => sftp.close(handle, () => answer())).catch(() => undefined);
  }
}

interface Step {
  readonly path: string;
  readonly signal: AbortSignal;
}

type Answer<T> = (error?: Error | null, value?: T) => void;

/** The answer of the server to one request. Rejects once the signal fires: a server may never answer. */
function answered<T = undefined>({ path, signal }: Step, ask: (answer: Answer<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const abandon = (): void => reject(late());
    if (signal.aborted) return abandon();
    signal.addEventListener("abort", abandon, { once: true });
    ask((error, value) => {
      signal.removeEventListener("abort", abandon);
      if (error) reject(isAppError(error) ? error : writeError(path, error));
      else resolve(value as T);
    });
  });
}

function late(): AppError {
  return new AppError("deadline", "The time was over before everything was sent.");
}

function writeError(path: string, error: unknown): AppError {
  return new AppError("unavailable", `${path} cannot be written on the host: ${errorText(error)}`, { cause: error });
}
