import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { bundle } from "../helpers/bundle.ts";

/**
 * `npm run bench [-- name …]`: builds the benches as the programs are built and runs them. Loaded as TypeScript, every
 * function that is made inside another one would cost more than where it ships. No source maps: one takes a hundred
 * megabytes of what is measured.
 */
const file = await bundle(join(import.meta.dirname, "../bench/main.ts"), "bench.mjs");
const { status } = spawnSync(process.execPath, [file, ...process.argv.slice(2)], { stdio: "inherit" });
process.exitCode = status ?? 1;
