import { join } from "node:path";
import { build } from "esbuild";

/** Inside the project, so that the packages are found which no bundle can hold. */
const BUNDLES = join(import.meta.dirname, "../../node_modules/.cache/odp");

/**
 * One file out of a TypeScript source and all it imports, in the form in which the programs are built; `name` may have
 * folders. Answers where it lies.
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
    sourcemap,
    logLevel: "error",
  });
  return outfile;
}
