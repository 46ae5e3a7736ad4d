import { LOG_PACKED_JOBS_MAX, LOG_PACKED_LOOK_BYTES } from "../../../common/limits.ts";
import type { FileLook } from "./folder.ts";

/** Work on a packed file. It yields the number of bytes after each piece that it has unpacked. */
export type UnpackingJob<T> = AsyncGenerator<number, T>;

/** A state of a file. It changes when the file is written. */
type FileVersion = Pick<FileLook, "id" | "size" | "mtimeMs">;

interface Started {
  readonly job: UnpackingJob<unknown>;
  readonly file: FileVersion | undefined;
  /** Bytes that the job may still unpack in this look. */
  left: number;
  isAsked: boolean;
  end?: { readonly result: unknown };
}

/**
 * Unpacks files in parts, so that a long one does not hold up other files. In one look, each job unpacks about
 * `lookBytes`. The next look continues it. A job that a look does not ask for is given up.
 */
export class Unpacking {
  readonly #lookBytes: number;
  readonly #jobs = new Map<string, Started>();

  constructor(lookBytes = LOG_PACKED_LOOK_BYTES) {
    this.#lookBytes = lookBytes;
  }

  /** True if the next look continues a job. */
  get isUnderWay(): boolean {
    return [...this.#jobs.values()].some(({ end }) => end === undefined);
  }

  beginLook(): void {
    for (const started of this.#jobs.values()) Object.assign(started, { left: this.#lookBytes, isAsked: false });
  }

  async endLook(): Promise<void> {
    for (const [key, { isAsked }] of this.#jobs) if (!isAsked) await this.#drop(key);
  }

  /**
   * Continues a job, or begins it. `more`: the job is not finished in this look. The result is kept while each look asks
   * for it, so that no file is read twice. `file`: the state of the file that the job reads.
   */
  async run<T>(key: string, begin: () => UnpackingJob<T>, file?: FileVersion): Promise<T | "more"> {
    const started = this.#started(key, begin, file);
    if (!started) return "more";
    started.isAsked = true;
    try {
      while (!started.end && started.left > 0) {
        const { done, value } = await started.job.next();
        if (done) started.end = { result: value };
        else started.left -= value as number;
      }
    } catch (error) {
      this.#jobs.delete(key);
      throw error;
    }
    return started.end ? (started.end.result as T) : "more";
  }

  /** True if this look or the last one has begun to read the file in another state. */
  isRestarted({ id, size, mtimeMs }: FileVersion): boolean {
    return [...this.#jobs.values()].some(
      ({ file }) => file?.id === id && (file.size !== size || file.mtimeMs !== mtimeMs),
    );
  }

  /** Forgets a result, so that the next call of `run` begins again. */
  forget(key: string): void {
    this.#jobs.delete(key);
  }

  async close(): Promise<void> {
    for (const key of this.#jobs.keys()) await this.#drop(key);
  }

  #started(key: string, begin: () => UnpackingJob<unknown>, file?: FileVersion): Started | undefined {
    const known = this.#jobs.get(key);
    if (known) return known;
    const open = [...this.#jobs.values()].filter(({ end }) => end === undefined);
    if (open.length >= LOG_PACKED_JOBS_MAX) return undefined;
    const started: Started = { job: begin(), file, left: this.#lookBytes, isAsked: true };
    this.#jobs.set(key, started);
    return started;
  }

  async #drop(key: string): Promise<void> {
    const started = this.#jobs.get(key);
    this.#jobs.delete(key);
    if (started && !started.end) await started.job.return(undefined);
  }
}
