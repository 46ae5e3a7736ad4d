import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { look, type FileLook } from "../folder.ts";

const PROCESSES = "/proc";
/** Flags of an open file on Linux: what it may do, and whether it always writes at the end. */
const ACCESS = 0o3;
const APPEND = 0o2000;

/**
 * How long a file was before it was cut off: Linux keeps with each open file the place where its last write ended.
 * Undefined where that cannot be seen, where there are several writers, and when there was a write since.
 */
export async function lengthBeforeCut(
  root: string,
  { path, id }: Pick<FileLook, "path" | "id">,
): Promise<number | undefined> {
  const length = await lastAppendedTo(join(root, path));
  // Looked at after: the end of a later write would not be beyond it.
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

/** Undefined for a reader. */
async function placeOf(path: string): Promise<number | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  const flags = Number.parseInt(/^flags:\s*([0-7]+)/m.exec(text)?.[1] ?? "0", 8);
  const place = /^pos:\s*(\d+)/m.exec(text)?.[1];
  return (flags & ACCESS) === 0 || (flags & APPEND) === 0 || place === undefined ? undefined : Number(place);
}

/** Empty where it is not there or not for us to see. */
function list(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
