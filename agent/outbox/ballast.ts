import type { Files } from "../../common/files.ts";
import { isDiskFull, writeWholly } from "../disk/files.ts";

export interface BallastOptions {
  readonly path: string;
  readonly files: Files;
  /** Content of the file while the disk has room. */
  readonly bytes: Uint8Array;
}

/**
 * A file that reserves disk space. On a full disk, the outbox empties it. The freed space is enough for the one new
 * file that must be written before old files can be deleted.
 */
export class Ballast {
  readonly #options: BallastOptions;
  #held = false;

  constructor(options: BallastOptions) {
    this.#options = options;
  }

  get held(): boolean {
    return this.#held;
  }

  /**
   * Fills the file, so that the space is reserved. If the disk is full, the file is left empty and `held` stays false.
   */
  async take(): Promise<void> {
    if (this.#held) return;
    const { path, files, bytes } = this.#options;
    const file = await files.open(path, "w+", 0o600);
    try {
      await writeWholly(file, bytes, 0);
      this.#held = true;
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      await file.truncate(0);
    } finally {
      await file.close();
    }
  }

  async giveBack(): Promise<void> {
    this.#held = false;
    const file = await this.#options.files.open(this.#options.path, "w+", 0o600);
    try {
      await file.truncate(0);
    } finally {
      await file.close();
    }
  }
}
