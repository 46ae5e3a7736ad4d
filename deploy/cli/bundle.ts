import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";
import { nameOf, PARAMETERS, partsOf } from "./parts.ts";

/** The file of the command line. */
export const COMMAND_LINE = "odp.js";

const COMMON = {
  ...{ bundle: true, platform: "node", target: "node20.19", write: false },
  // A smaller file starts faster. Names stay, for traces of the stack.
  ...{ minifySyntax: true, minifyWhitespace: true, legalComments: "none" },
  logLevel: "warning",
} as const satisfies BuildOptions;

/** The parts: files that the command line loads only when needed, and files that several of these share. */
const PARTS = {
  ...COMMON,
  entryPoints: { odp: "controller/cli/main.ts" },
  ...{ splitting: true, format: "esm", chunkNames: "[name]-[hash]", outdir: "parts" },
} as const satisfies BuildOptions;

/**
 * Writes the command line into the folder, which exists: one file that can be executed, with nothing beside it. Node
 * takes 30 ms to read a megabyte of code, so the file has its parts as texts, and compiles a part when it is needed.
 */
export async function writeCommandLine(folder: string): Promise<void> {
  const { outputFiles } = await build(PARTS);
  const { outputFiles: programs } = await build({
    ...COMMON,
    entryPoints: [join(import.meta.dirname, "loader.ts")],
    ...{ format: "iife", outdir: folder },
    define: {
      PARTS: JSON.stringify(partsOf(outputFiles)),
      PARAMETERS: JSON.stringify(PARAMETERS),
      FIRST: JSON.stringify(nameOf(COMMAND_LINE)),
      BUILT_IN: "process.getBuiltinModule",
    },
    banner: { js: "#!/usr/bin/env node" },
  });
  const path = join(folder, COMMAND_LINE);
  await writeFile(path, programs[0]?.contents ?? "");
  await chmod(path, 0o755);
}
