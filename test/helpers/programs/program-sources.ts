import { readdirSync, readFileSync } from "node:fs";

export interface ProgramSource {
  /** Relative to the root of the project. */
  readonly file: string;
  readonly text: string;
}

/** All code below the folders, without tests, declarations and contracts, which only tests run. */
export function programSources(...folders: readonly string[]): readonly ProgramSource[] {
  const sources = folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`))
    .filter((file) => /(?<!\.test|\.d)\.ts$/.test(file) && !file.includes("/contract/"))
    .map((file) => ({ file, text: readFileSync(file, "utf8") }));
  if (sources.length < SOURCES_MIN)
    throw new Error(`Of ${folders.join(", ")} only ${sources.length} files were found.`);
  return sources;
}

/** Fewer files mean that folders were moved: a test over them would prove nothing. */
const SOURCES_MIN = 300;
