/** The few calls of `node:fs` that `closeInherited` needs. */
export interface DescriptorFiles {
  readdirSync(path: string): string[];
  readFileSync(path: string, encoding: "utf8"): string;
  closeSync(descriptor: number): void;
}

const FOLDER = "/proc/self/fd";
const CLOSE_ON_EXEC = 0o2000000;
/** Input, output and error output are passed on purpose. */
const STANDARD_DESCRIPTORS = 3;

/**
 * Closes the descriptors that this process inherited and would pass on to every process it starts. Node marks those
 * below 16 itself, and all that it opens later. Answers how many were closed: 0 where there is no /proc. Call it before
 * anything opens files in another way than by Node.
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
    // The descriptor by which the folder was read is closed again.
    return false;
  }
}
