import { truncateSync } from "node:fs";
import {
  copyFile,
  open,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
  type FileHandle,
} from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";

export type Rotation = "rename" | "copy-truncate" | "copy-truncate-compress" | "link" | "racing copy-truncate";

/** An access log as a busy server writes it: many lines at a time, with rotations during the writing. */
export interface AccessLogOptions {
  readonly folder: string;
  /** Number of the last line, plus one. */
  readonly lines: number;
  /** The number of the first line; 0 when absent. */
  readonly from?: number;
  readonly rotateEveryLines: number;
  readonly linesPerBurst: number;
  readonly pauseMs: number;
  /** Number of rotated files kept; the next rotation deletes the oldest. */
  readonly generations?: number;
  /** Returns the kind of the next rotation; `undefined` postpones it. Absent: by rename. */
  readonly rotation?: () => Rotation | undefined;
  /** Called with the number of the first line after each rotation. */
  readonly onRotated?: (next: number) => void;
  /** Called between bursts with the number of lines written so far. */
  readonly onProgress?: (written: number) => Promise<void>;
  /** Called after a racing truncation, before the next line is written; without it the writer does not wait. */
  readonly onCut?: () => Promise<void>;
  /** Makes a racing truncation and the write before it while no agent reads the log, so that something is lost. */
  readonly unseen?: (cut: () => Promise<void>) => Promise<void>;
}

const GENERATIONS_KEPT = 20;
/** Targets of a link have days in their names, so that the agent finds lives between two of its looks. */
const FIRST_RUN = 20_260_101;
/** The copy is slow, and the truncation follows it after a pause. */
const COPY_PIECE_BYTES = 64 * 1024;
const COPY_PAUSE_MS = 5;
const CUT_PAUSE_MS = 400;

/**
 * Line `n` contains its number, so that sums and counts show if each arrived exactly once. A line cut off in the middle
 * does not count.
 */
export function accessLine(n: number): string {
  return `10.0.${(n >> 8) & 255}.${n & 255} - - [21/Nov/2026:13:55:36 +0000] "GET /item/${n} HTTP/1.1" 200 ${n}\n`;
}

/** Returns the number of rotations. */
export async function writeAccessLog(options: AccessLogOptions): Promise<number> {
  const path = join(options.folder, "access.log");
  const log = new RotatedLog(path, options);
  await log.open();
  for (let written = options.from ?? 0; written < options.lines; ) {
    const count = Math.min(options.linesPerBurst, options.lines - written);
    // A truncation in progress must not remove the last line, because a test may wait for it.
    if (written + 2 * options.linesPerBurst >= options.lines) await log.copied();
    if (options.onCut && log.takeCut()) await options.onCut();
    await log.write(Array.from({ length: count }, (_, index) => accessLine(written + index)).join(""), count);
    written += count;
    // After the last line there is no write for a truncation to wait for.
    const isDue = log.lines >= options.rotateEveryLines && !log.isRacing && written < options.lines;
    const rotation = isDue ? (options.rotation ?? (() => "rename" as const))() : undefined;
    if (rotation !== undefined) {
      await log.rotate(rotation);
      options.onRotated?.(written);
    }
    await options.onProgress?.(written);
    await pause(options.pauseMs);
  }
  await log.close();
  return log.rotations;
}

class RotatedLog {
  readonly #path: string;
  readonly #generations: number;
  readonly #unseen: (cut: () => Promise<void>) => Promise<void>;
  #file: FileHandle | undefined;
  #racing: Promise<void> | undefined;
  /** Resolves when the copy is done: the racing truncation then waits for the next write. */
  #copying: Promise<void> | undefined;
  #cut = false;
  #writing: Promise<void> | undefined;
  /** Resolves the wait for the next write. */
  #begun: (() => void) | undefined;
  lines = 0;
  rotations = 0;

  constructor(path: string, { generations = GENERATIONS_KEPT, unseen = (cut) => cut() }: AccessLogOptions) {
    this.#path = path;
    this.#generations = generations;
    this.#unseen = unseen;
  }

  async open(): Promise<void> {
    this.#file = await open(this.#path, "a");
  }

  async write(text: string, lines: number): Promise<void> {
    this.#writing = this.#file?.appendFile(text);
    this.#begun?.();
    await this.#writing;
    this.#writing = undefined;
    this.lines += lines;
  }

  async rotate(rotation: Rotation): Promise<void> {
    this.rotations++;
    this.lines = 0;
    await this.#shift();
    if (rotation === "rename") await this.#byRename();
    else if (rotation === "copy-truncate") await this.#byCopy();
    else if (rotation === "copy-truncate-compress") await this.#byCopy().then(() => this.#pack());
    else if (rotation === "link") await this.#byLink();
    else this.#race();
  }

  get isRacing(): boolean {
    return this.#racing !== undefined;
  }

  /** Resolves when the next write comes after the copy of a racing truncation, if there is one. */
  async copied(): Promise<void> {
    await Promise.race([this.#copying, this.#racing]);
  }

  /** True once for each racing truncation. */
  takeCut(): boolean {
    const cut = this.#cut;
    this.#cut = false;
    return cut;
  }

  async close(): Promise<void> {
    await this.#racing;
    await this.#file?.close();
  }

  async #shift(): Promise<void> {
    for (let generation = this.#generations; generation > 1; generation -= 1)
      for (const end of ["", ".gz"])
        await rename(`${this.#path}.${generation - 1}${end}`, `${this.#path}.${generation}${end}`).catch(
          (error: NodeJS.ErrnoException) => {
            if (error.code !== "ENOENT") throw error;
          },
        );
  }

  /** Packs like gzip: the packed file has the time of the original, which is removed. */
  async #pack(): Promise<void> {
    const path = `${this.#path}.1`;
    const { atime, mtime } = await stat(path);
    await writeFile(`${path}.gz`, gzipSync(await readFile(path), { level: 1 }));
    await utimes(`${path}.gz`, atime, mtime);
    await rm(path);
  }

  /** The log is a link to the written file. If it was a file, it becomes a link with the first rotation. */
  async #byLink(): Promise<void> {
    const target = (of: number) => `${this.#path}-${FIRST_RUN + of}`;
    await symlink(target(this.rotations), `${this.#path}-next`);
    await writeFile(target(this.rotations), "");
    if (this.rotations === 1) await rename(this.#path, target(0));
    await rename(`${this.#path}-next`, this.#path);
    await this.#file?.close();
    await this.open();
    await rm(target(this.rotations - this.#generations), { force: true });
  }

  async #byRename(): Promise<void> {
    await rename(this.#path, `${this.#path}.1`);
    await this.#file?.close();
    await this.open();
  }

  /** The writer pauses meanwhile, so the copy has every line. */
  async #byCopy(): Promise<void> {
    await copyFile(this.#path, `${this.#path}.1`);
    await truncate(this.#path, 0);
  }

  #race(): void {
    let copied = (): void => undefined;
    this.#copying = new Promise((resolve) => (copied = resolve));
    this.#racing = this.#byRacingCopy(copied).then(() => (this.#racing = undefined));
  }

  /** The writer continues: lines written between the end of the copy and the truncation are in neither file. */
  async #byRacingCopy(copied: () => void): Promise<void> {
    await using from = await open(this.#path, "r");
    await using to = await open(`${this.#path}.1`, "w");
    const piece = Buffer.alloc(COPY_PIECE_BYTES);
    for (let bytes = await from.read(piece); bytes.bytesRead > 0; bytes = await from.read(piece)) {
      await to.write(piece, 0, bytes.bytesRead);
      await pause(COPY_PAUSE_MS);
    }
    // Meanwhile the writer continues, and the agent compares the copy to its end. It counts the part that it could not
    // compare as lost.
    await pause(CUT_PAUSE_MS);
    await this.#unseen(async () => {
      const begun = new Promise<void>((resolve) => (this.#begun = resolve));
      copied();
      await begun;
      // Not during a write, because it would be unknown if that came before or after the truncation.
      while (this.#writing) await this.#writing;
      truncateSync(this.#path, 0);
      this.#cut = true;
    });
  }
}
