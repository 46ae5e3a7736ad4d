import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const STEP_DEADLINE_MS = 120_000;

/**
 * Makes the folder of a package of this name, without what an earlier run made. A folder that holds anything else stays
 * as it is, and an error is thrown.
 */
export async function emptyPackage(folder: string, name: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const text = names.includes("package.json") ? await readFile(join(folder, "package.json"), "utf8") : "{}";
  if (names.length > 0 && (JSON.parse(text) as { readonly name?: unknown }).name !== name)
    throw new Error(`${folder} holds something else: name an empty folder, or one that does not exist.`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
}

/** Runs a program of a step. Returns its standard output. */
export async function runStep(program: string, args: readonly string[], cwd = "."): Promise<string> {
  return (await promisify(execFile)(program, args, { cwd, timeout: STEP_DEADLINE_MS })).stdout;
}

/** Makes the file that npm installs, beside the folder of the package. Returns its path and size in bytes. */
export async function packedFile(folder: string): Promise<{ readonly file: string; readonly bytes: number }> {
  const beside = dirname(folder);
  const file = join(
    beside,
    (await runStep("npm", ["pack", "--ignore-scripts", "--pack-destination", beside], folder)).trim(),
  );
  return { file, bytes: (await stat(file)).size };
}
