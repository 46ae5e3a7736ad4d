import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { LOG_FILE_GENERATIONS, LOG_FILE_MAX_BYTES } from "../common/limits.ts";

/**
 * The controller's own log as a file of bounded size: at `LOG_FILE_MAX_BYTES` it becomes `.1`, that one `.2`, and so on; the
 * oldest of `LOG_FILE_GENERATIONS` goes. Written synchronously, so that the last line before a crash is there.
 */
export class LogFile {
  readonly path: string;
  #descriptor: number;
  #size: number;

  constructor(path: string) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.path = path;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#size = fstatSync(this.#descriptor).size;
  }

  /** The form a pino destination has. */
  write(line: string): void {
    const length = Buffer.byteLength(line);
    if (this.#size > 0 && this.#size + length > LOG_FILE_MAX_BYTES) this.#rotate();
    this.#size += writeSync(this.#descriptor, line);
  }

  #rotate(): void {
    closeSync(this.#descriptor);
    for (let generation = LOG_FILE_GENERATIONS - 1; generation >= 1; generation -= 1) {
      renameIfThere(generation === 1 ? this.path : `${this.path}.${generation - 1}`, `${this.path}.${generation}`);
    }
    this.#descriptor = openSync(this.path, "a", 0o600);
    this.#size = 0;
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
