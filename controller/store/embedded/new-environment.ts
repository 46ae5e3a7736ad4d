import { access, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../../common/time.ts";
import { isMissing, nodeFiles, syncFolder } from "../../files.ts";
import { Environment } from "./environment.ts";

const DATA = "data.mdb";
/** What a new environment is called until all of it is on the disk. */
const UNFINISHED = "-unfinished";

/**
 * The environment in that folder. A new one gets its name when it is whole on the disk: what a power cut leaves of a file before its first
 * commit would end the process that opens it.
 */
export async function openEnvironment(folder: string, clock: Clock): Promise<Environment> {
  if (!(await isThere(join(folder, DATA)))) await make(folder, clock);
  return new Environment(folder, clock);
}

async function make(folder: string, clock: Clock): Promise<void> {
  const unfinished = folder + UNFINISHED;
  await rm(unfinished, { recursive: true, force: true });
  await new Environment(unfinished, clock).close();
  await syncData(join(unfinished, DATA));
  await syncFolder(nodeFiles, unfinished);
  // Without its data nothing in it has a meaning.
  await rm(folder, { recursive: true, force: true });
  await rename(unfinished, folder);
  await syncFolder(nodeFiles, dirname(folder));
}

async function syncData(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
