import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";

/**
 * `npm run bench [-- name …]`: builds the benches as the programs are built and runs them. Loaded as TypeScript, every function that is made
 * inside another one would cost more than where it ships. No source maps: one takes a hundred megabytes of what is measured.
 */
const ROOT = join(import.meta.dirname, "../..");
/** Inside the project, so that the packages are found which no bundle can hold. */
const FILE = join(ROOT, "node_modules/.cache/odp-bench/main.mjs");

await build({
  entryPoints: [join(ROOT, "test/bench/main.ts")],
  outfile: FILE,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.19",
  packages: "external",
  logLevel: "error",
});
const { status } = spawnSync(process.execPath, [FILE, ...process.argv.slice(2)], { cwd: ROOT, stdio: "inherit" });
process.exitCode = status ?? 1;
