import { createHash } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DepotFile } from "../../../proto/gen/agent/v1/agent.ts";
import { AppError } from "../../../common/errors.ts";

/** Reads content by its SHA-256, in pieces from `offset`. */
export type FetchContent = (digest: string, offset: number, signal: AbortSignal) => AsyncIterable<Uint8Array>;

const DIGEST = /^[0-9a-f]{64}$/;

/** Stores files by their content. All versions of all depots share it. */
export class ContentCache {
  readonly #folder: string;
  readonly #fetch: FetchContent;

  constructor(folder: string, fetch: FetchContent) {
    this.#folder = folder;
    this.#fetch = fetch;
  }

  /**
   * The path of a file with the content, which is fetched and verified if it is not in the cache. `AppError("invalid")`
   * when the content does not have the announced size or digest.
   */
  async get(file: DepotFile, signal: AbortSignal): Promise<string> {
    if (!DIGEST.test(file.digest)) throw new AppError("invalid", `${file.path}: the digest is no SHA-256.`);
    const path = join(this.#folder, file.digest);
    if (await isThere(path)) return path;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await this.#download(file, { path, unfinished: `${path}.new`, signal });
    return path;
  }

  /** Deletes all content except that with these digests. */
  async keepOnly(digests: ReadonlySet<string>): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      if (!digests.has(name)) await rm(join(this.#folder, name), { force: true });
    }
  }

  async #download(
    file: DepotFile,
    { path, unfinished, signal }: { path: string; unfinished: string; signal: AbortSignal },
  ): Promise<void> {
    const hash = createHash("sha256");
    const target = await open(unfinished, "w", 0o600);
    let bytes = 0;
    try {
      for await (const chunk of this.#fetch(file.digest, 0, signal)) {
        bytes += chunk.length;
        if (bytes > file.size)
          throw new AppError("invalid", `${file.path}: the content is longer than the ${file.size} bytes announced.`);
        hash.update(chunk);
        await target.writeFile(chunk);
      }
      if (hash.digest("hex") !== file.digest)
        throw new AppError("invalid", `${file.path}: the content does not have its digest.`);
      await target.sync();
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    } finally {
      await target.close();
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}
