import { join } from "node:path";
import { build } from "esbuild";
import { spreadFirst } from "../../../deploy/spread.ts";

/** Inside the project, so that packages that cannot be bundled are found. */
const BUNDLES = join(import.meta.dirname, "../../../node_modules/.cache/odp");

/**
 * Bundles a TypeScript source and its imports into one file, as the programs are built. `name` may contain folders.
 * Returns the path of the file.
 */
export async function bundle(entry: string, name: string, sourcemap: "inline" | false = false): Promise<string> {
  const outfile = join(BUNDLES, name);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.19",
    packages: "external",
    plugins: [spreadFirst],
    sourcemap,
    logLevel: "error",
  });
  return outfile;
}
