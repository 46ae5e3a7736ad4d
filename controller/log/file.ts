import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import {
  LOG_FILE_GENERATIONS,
  LOG_FILE_MAX_BYTES,
  LOG_LATER_MAX_CHARACTERS,
  LOG_LATER_MS,
} from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";

/** As that of Node: returns the number of bytes stored. */
type WriteSync = (descriptor: number, bytes: Uint8Array, from: number) => number;

const LINE_END = "\n".charCodeAt(0);

/**
 * The controller's own log in a file of bounded size. At `LOG_FILE_MAX_BYTES` it becomes `.1`, the former `.1` becomes
 * `.2`, and so on; the oldest of `LOG_FILE_GENERATIONS` is removed. `write` is synchronous, so the last line before a
 * crash is stored. Lines of `writeLater` wait up to `LOG_LATER_MS`, and are stored before every later line of `write`.
 * Failed writes are dropped and counted, because a log must not end the program.
 */
export class LogFile {
  readonly path: string;
  #descriptor: number;
  #size: number;
  #missing = 0;
  #isTorn = false;
  readonly #clock: Clock | undefined;
  readonly #writeSync: WriteSync;
  /** Lines that are not written yet. */
  #later = "";
  #cancelFlush: (() => void) | undefined;

  /** Without a clock, `writeLater` does not wait. `write` stores bytes of an open file; tests pass a full disk. */
  constructor(path: string, clock?: Clock, write: WriteSync = writeSync) {
    this.#clock = clock;
    this.#writeSync = write;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.path = path;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#size = fstatSync(this.#descriptor).size;
  }

  /** Signature of a pino destination. */
  write(line: string): void {
    this.flush();
    this.#store(line);
  }

  /** Takes a line that may be lost if the process is killed within `LOG_LATER_MS`. The end of the program is no loss. */
  writeLater(line: string): void {
    if (this.#later === "") this.#cancelFlush = this.#clock?.after(LOG_LATER_MS, () => this.flush());
    this.#later += line;
    if (this.#clock === undefined || this.#later.length >= LOG_LATER_MAX_CHARACTERS) this.flush();
  }

  /** Stores the lines of `writeLater`. Call it before the program ends. */
  flush(): void {
    const lines = this.#later;
    this.#later = "";
    this.#cancelFlush?.();
    if (lines !== "") this.#store(lines);
  }

  #store(lines: string): void {
    const bytes = Buffer.from(lines);
    let stored = 0;
    try {
      if (this.#missing > 0) this.#tellMissing();
      this.#append(bytes, (count) => (stored = count));
    } catch {
      this.#missing += linesIn(bytes.subarray(stored));
    }
  }

  #tellMissing(): void {
    const told = JSON.stringify({ msg: "lines of this log could not be written", lines: this.#missing });
    this.#append(Buffer.from(`${this.#isTorn ? "\n" : ""}${told}\n`), () => undefined);
    this.#missing = 0;
  }

  /** `stored` gets the number of bytes stored so far after each step. */
  #append(bytes: Buffer, stored: (count: number) => void): void {
    if (this.#size > 0 && this.#size + bytes.length > LOG_FILE_MAX_BYTES) this.#rotate();
    for (let done = 0; done < bytes.length; ) {
      const count = this.#writeSync(this.#descriptor, bytes, done);
      stored((done += count));
      this.#size += count;
      this.#isTorn = bytes[done - 1] !== LINE_END;
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

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if (byte === LINE_END) count += 1;
  return count;
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
