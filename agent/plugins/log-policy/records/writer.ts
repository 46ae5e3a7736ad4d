import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { look, type FileLook } from "../folder.ts";

const PROCESSES = "/proc";
/** Masks for the flags in `/proc/<pid>/fdinfo/<fd>`: the access mode, and `O_APPEND`. */
const ACCESS = 0o3;
const APPEND = 0o2000;

/**
 * Length of a file before it was truncated. Linux stores for each open file the position at which its last write ended.
 * Undefined when the position is not visible, when several writers have different positions, or when there was a write
 * since.
 */
export async function lengthBeforeCut(
  root: string,
  { path, id }: Pick<FileLook, "path" | "id">,
): Promise<number | undefined> {
  const length = await lastAppendedTo(join(root, path));
  // The look comes after the position was read. A writer that has written since is not beyond the size.
  const at = await look(root, path);
  return length !== undefined && at?.id === id && length > at.size ? length : undefined;
}

async function lastAppendedTo(path: string): Promise<number | undefined> {
  const target = await realpath(path).catch(() => undefined);
  if (target === undefined) return undefined;
  const places = new Set<number>();
  for (const process of await list(PROCESSES)) {
    if (!/^\d+$/.test(process)) continue;
    for (const file of await list(`${PROCESSES}/${process}/fd`)) {
      if ((await readlink(`${PROCESSES}/${process}/fd/${file}`).catch(() => "")) !== target) continue;
      const place = await placeOf(`${PROCESSES}/${process}/fdinfo/${file}`);
      if (place !== undefined) places.add(place);
    }
  }
  return places.size === 1 ? [...places][0] : undefined;
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
