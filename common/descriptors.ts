/** The few calls of `node:fs` that `closeInherited` needs. */
export interface DescriptorFiles {
  readdirSync(path: string): string[];
  readFileSync(path: string, encoding: "utf8"): string;
  closeSync(descriptor: number): void;
}

const FOLDER = "/proc/self/fd";
const CLOSE_ON_EXEC = 0o2000000;
/** Standard input, output and error output are inherited on purpose. */
const STANDARD_DESCRIPTORS = 3;

/**
 * Closes the descriptors that this process inherited and would pass on to every process it starts. Node already
 * prevents this for descriptors below 16, and for all that it opens later. Returns the number of closed ones: 0 without
 * /proc. Call it before anything other than Node opens files.
 */
export function closeInherited(files: DescriptorFiles): number {
  let closed = 0;
  for (const name of namesIn(files)) {
    if (Number(name) < STANDARD_DESCRIPTORS || !isPassedOn(files, name)) continue;
    files.closeSync(Number(name));
    closed++;
  }
  return closed;
}

function namesIn(files: DescriptorFiles): string[] {
  try {
    return files.readdirSync(FOLDER);
  } catch {
    return [];
  }
}

function isPassedOn(files: DescriptorFiles, name: string): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(files.readFileSync(`${FOLDER}info/${name}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The descriptor that was used to read the folder is already closed.
    return false;
  }
}
