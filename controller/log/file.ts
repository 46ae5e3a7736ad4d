import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { LOG_FILE_GENERATIONS, LOG_FILE_MAX_BYTES } from "../../common/limits.ts";

/**
 * The controller's own log in a file of bounded size. At `LOG_FILE_MAX_BYTES` it becomes `.1`, the former `.1` becomes
 * `.2`, and so on; the oldest of `LOG_FILE_GENERATIONS` is removed. Writes are synchronous, so the last line before a
 * crash is stored. Failed writes are dropped and counted, because a log must not end the program.
 */
export class LogFile {
  readonly path: string;
  #descriptor: number;
  #size: number;
  #missing = 0;
  #isTorn = false;

  constructor(path: string) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.path = path;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#size = fstatSync(this.#descriptor).size;
  }

  /** Signature of a pino destination. */
  write(line: string): void {
    try {
      if (this.#missing > 0) this.#tellMissing();
      this.#append(line);
    } catch {
      this.#missing += 1;
    }
  }

  #tellMissing(): void {
    this.#append(
      `${this.#isTorn ? "\n" : ""}${JSON.stringify({ msg: "lines of this log could not be written", lines: this.#missing })}\n`,
    );
    this.#missing = 0;
  }

  #append(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#size > 0 && this.#size + bytes.length > LOG_FILE_MAX_BYTES) this.#rotate();
    for (let done = 0; done < bytes.length; ) {
      const count = writeSync(this.#descriptor, bytes, done);
      done += count;
      this.#size += count;
      this.#isTorn = done < bytes.length;
    }
  }

  #rotate(): void {
    for (let generation = LOG_FILE_GENERATIONS - 1; generation >= 1; generation -= 1) {
      renameIfThere(generation === 1 ? this.path : `${this.path}.${generation - 1}`, `${this.path}.${generation}`);
    }
    const full = this.#descriptor;
    this.#descriptor = this.#openNext();
    this.#size = 0;
    closeSync(full);
  }

  /** If there is no room for the next file, the full one keeps its name. */
  #openNext(): number {
    try {
      return openSync(this.path, "a", 0o600);
    } catch (error) {
      renameIfThere(`${this.path}.1`, this.path);
      throw error;
    }
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
