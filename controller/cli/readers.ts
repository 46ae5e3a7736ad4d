import { lstat, readdir, readlink } from "node:fs/promises";

const PROCESSES = "/proc";
/** Permission of a link in `/proc/<pid>/fd` to a file that is open for reading. */
const READABLE = 0o400;

/**
 * Watches who reads the pipe that a process writes. A pipe tells that its reader is gone only when something is written,
 * and Node cannot poll it. Linux shows the open files of processes.
 */
export class PipeReaders {
  readonly #pid: string;
  /** Processes that were seen with the other end; `undefined`: not looked yet. */
  #seen: readonly string[] | undefined;

  /** `pid`: the process whose standard output may be a pipe. */
  constructor(pid: number) {
    this.#pid = String(pid);
  }

  /**
   * True once all processes that were seen with the other end have closed it. False if that cannot be known: on another
   * system, if the output is no pipe, or if only processes of other users read it.
   */
  async areGone(): Promise<boolean> {
    const pipe = await readlink(`${PROCESSES}/${this.#pid}/fd/1`).catch(() => "");
    if (!pipe.startsWith("pipe:")) return false;
    if (this.#seen === undefined) this.#seen = await this.#readers(pipe);
    else if (this.#seen.length > 0 && !(await isHeld(this.#seen, pipe))) {
      const others = await this.#readers(pipe);
      if (others.length === 0) return true;
      this.#seen = others;
    }
    return false;
  }

  async #readers(pipe: string): Promise<readonly string[]> {
    const found: string[] = [];
    for (const name of await readdir(PROCESSES))
      if (/^\d+$/.test(name) && name !== this.#pid && (await reads(name, pipe)) === true) found.push(name);
    return found;
  }
}

/** True if one of the processes reads the pipe, or may do so, as after it became another user. */
async function isHeld(pids: readonly string[], pipe: string): Promise<boolean> {
  for (const pid of pids) if ((await reads(pid, pipe)) !== false) return true;
  return false;
}

/** `undefined`: this user may not know. */
async function reads(pid: string, pipe: string): Promise<boolean | undefined> {
  const folder = `${PROCESSES}/${pid}/fd`;
  try {
    for (const descriptor of await readdir(folder)) if (await isReadable(`${folder}/${descriptor}`, pipe)) return true;
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? undefined : false;
  }
}

/** False also for a descriptor that was closed meanwhile. */
async function isReadable(link: string, pipe: string): Promise<boolean> {
  try {
    return (await readlink(link)) === pipe && ((await lstat(link)).mode & READABLE) !== 0;
  } catch {
    return false;
  }
}
