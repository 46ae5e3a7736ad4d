import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { LOG_DESCRIPTORS_MAX, LOG_FILES_MAX } from "../../../../common/limits.ts";
import { look, type FileLook } from "../folder.ts";

const PROCESSES = "/proc";
/** Masks for the flags in `/proc/<pid>/fdinfo/<fd>`: the access mode, and `O_APPEND`. */
const ACCESS = 0o3;
const APPEND = 0o2000;

/**
 * Positions of the programs that write the followed files. Linux stores for each open file the position at which its
 * last write ended, and keeps it if the file is truncated.
 */
export class Writers {
  readonly #processes: string;
  readonly #descriptorsMax: number;
  /** Descriptors by the path of their file, as the current look has listed them. */
  #opened: Promise<ReadonlyMap<string, readonly Descriptor[]>> | undefined;
  /** Position at the last truncation, by the id of the file. */
  readonly #atCut = new Map<string, number>();

  constructor({ processes = PROCESSES, descriptorsMax = LOG_DESCRIPTORS_MAX } = {}) {
    this.#processes = processes;
    this.#descriptorsMax = descriptorsMax;
  }

  /**
   * Forgets which files are open. They are listed once in a look, because that takes seconds on a host with many of
   * them. Positions are read when they are asked for.
   */
  beginLook(): void {
    this.#opened = undefined;
  }

  /**
   * Length of a file before it was truncated. Undefined when the position is not visible, when several writers have
   * different positions, or when there was a write since.
   */
  async lengthBeforeCut(root: string, { path, id }: Named): Promise<number | undefined> {
    const length = await this.#lastAppendedTo(join(root, path));
    // The look comes after the position was read. A writer that has written since is not beyond the size.
    const at = await look(root, path);
    if (length === undefined || at?.id !== id || length <= at.size) return undefined;
    this.#note(id, length);
    return length;
  }

  /** True if the only writer of an empty file has written nothing to it, or nothing since its last truncation. */
  async isUnused(root: string, { path, id }: Named): Promise<boolean> {
    const place = await this.#lastAppendedTo(join(root, path));
    const before = this.#atCut.get(id) ?? 0;
    if (place !== undefined) this.#note(id, place);
    return place === before;
  }

  async #lastAppendedTo(path: string): Promise<number | undefined> {
    const target = await realpath(path).catch(() => undefined);
    if (target === undefined) return undefined;
    this.#opened ??= openedFiles(this.#processes, this.#descriptorsMax);
    const places = new Set<number>();
    for (const { link, info } of (await this.#opened).get(target) ?? []) {
      if ((await readlink(link).catch(() => "")) !== target) continue;
      const place = await placeOf(info);
      if (place !== undefined) places.add(place);
    }
    return places.size === 1 ? [...places][0] : undefined;
  }

  #note(id: string, place: number): void {
    this.#atCut.delete(id);
    this.#atCut.set(id, place);
    if (this.#atCut.size <= LOG_FILES_MAX) return;
    for (const oldest of this.#atCut.keys()) return void this.#atCut.delete(oldest);
  }
}

type Named = Pick<FileLook, "path" | "id">;

/** A file that a process has open. */
interface Descriptor {
  readonly link: string;
  readonly info: string;
}

/** Open files by their paths, without sockets and pipes. Empty if there are more than `max`. */
async function openedFiles(processes: string, max: number): Promise<ReadonlyMap<string, readonly Descriptor[]>> {
  const opened = new Map<string, Descriptor[]>();
  let count = 0;
  for (const process of await list(processes)) {
    if (!/^\d+$/.test(process)) continue;
    for (const file of await list(`${processes}/${process}/fd`)) {
      if (++count > max) return new Map();
      const link = `${processes}/${process}/fd/${file}`;
      const target = await readlink(link).catch(() => "");
      if (!target.startsWith("/")) continue;
      const descriptor = { link, info: `${processes}/${process}/fdinfo/${file}` };
      const others = opened.get(target);
      if (others) others.push(descriptor);
      else opened.set(target, [descriptor]);
    }
  }
  return opened;
}

/** The position of a writer that appends; undefined for other open files. */
async function placeOf(path: string): Promise<number | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  const flags = Number.parseInt(/^flags:\s*([0-7]+)/m.exec(text)?.[1] ?? "0", 8);
  const place = /^pos:\s*(\d+)/m.exec(text)?.[1];
  return (flags & ACCESS) === 0 || (flags & APPEND) === 0 || place === undefined ? undefined : Number(place);
}

/** The names in a folder; empty when it does not exist or cannot be read. */
function list(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
