import { constants } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { endianness } from "node:os";
import { dirname, join } from "node:path";
import type { Clock } from "../../../../common/time.ts";
import { isThere, nodeFiles, readWholly, syncFolder, writeWholly } from "../../../files.ts";
import { Environment } from "./environment.ts";
import { diskErrors } from "../blobs/files.ts";
import { requireOpenable } from "../lmdb/file-check.ts";

const DATA = "data.mdb";
/** Suffix of a new environment's folder until it is completely on disk. */
const UNFINISHED = "-unfinished";
/** More than LMDB's table of readers needs; LMDB uses all of it. */
const READERS_BYTES = 65_536;
/** Block size in which the system counts the space of a file. */
const BLOCK_BYTES = 512;

export function hasEnvironment(folder: string): Promise<boolean> {
  return isThere(nodeFiles, join(folder, DATA));
}

/**
 * Opens the environment in that folder. A new environment gets its final name only when it is completely on disk. After
 * a power cut before its first commit, opening its file would end the process. A damaged environment is refused.
 */
export async function openEnvironment(folder: string, clock: Clock): Promise<Environment> {
  if (await hasEnvironment(folder)) checkFile(join(folder, DATA));
  else await diskErrors(make(folder, clock));
  await diskErrors(reserveReaders(folder));
  return new Environment(folder, clock);
}

/** The check reads little-endian files only; on other systems it is skipped. */
function checkFile(path: string): void {
  if (endianness() === "LE") requireOpenable(path);
}

async function make(folder: string, clock: Clock): Promise<void> {
  const unfinished = folder + UNFINISHED;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  await reserveReaders(unfinished);
  await new Environment(unfinished, clock).close();
  await syncData(join(unfinished, DATA));
  await syncFolder(nodeFiles, unfinished);
  // Without its data file, nothing in the folder is of use.
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

/**
 * Reserves disk space for LMDB's table of readers. LMDB writes it through memory, and a disk without space for a page
 * of it would end the process. Existing content stays; LMDB decides itself which parts are valid.
 */
async function reserveReaders(folder: string): Promise<void> {
  const file = await open(join(folder, "lock.mdb"), constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const { blocks } = await file.stat();
    if (blocks * BLOCK_BYTES >= READERS_BYTES) return;
    const table = new Uint8Array(READERS_BYTES);
    table.set(await readWholly(file, 0, READERS_BYTES));
    await writeWholly(file, table, 0);
    await file.sync();
  } finally {
    await file.close();
  }
}
