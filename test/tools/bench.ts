import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "../helpers/programs/bundle.ts";

/**
 * `npm run bench [-- name …]`: builds the benches as the programs are built and runs them. If they were loaded as
 * TypeScript, every function that is made inside another one would cost more than in the shipped program. No source
 * maps: one takes a hundred megabytes of the measured memory.
 *
 * `npm run bench -- --beside <commit> [name …]`: runs the works of these benches with the programs of this checkout and
 * of that commit, in turns.
 */
const ROOT = join(import.meta.dirname, "../..");
const [flag, commit, ...rest] = process.argv.slice(2);
const file = await bundle(join(ROOT, "test/bench/main.ts"), "bench.mjs");
if (flag !== "--beside") process.exitCode = run(process.argv.slice(2));
else if (commit === undefined) throw new RangeError("--beside takes a commit");
else process.exitCode = besideCommit(commit, (ODP_BENCH_BESIDE) => run(rest, { ODP_BENCH_BESIDE }));

function run(names: readonly string[], variables: Readonly<Record<string, string>> = {}): number {
  const options = { stdio: "inherit", env: { ...process.env, ...variables } } as const;
  return spawnSync(process.execPath, [file, ...names], options).status ?? 1;
}

/** Builds the programs of a commit in a separate folder and runs `work` with it. The folder is removed at the end. */
function besideCommit(name: string, work: (folder: string) => number): number {
  const folder = mkdtempSync(join(tmpdir(), "odp-beside-"));
  const git = (...words: readonly string[]): string => execFileSync("git", words, { cwd: ROOT, encoding: "utf8" });
  try {
    git("worktree", "add", "--quiet", "--detach", folder, name);
    const isSame = git("diff", "--name-only", name, "--", "package-lock.json") === "";
    const options = { cwd: folder, stdio: "inherit" } as const;
    if (isSame) symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    else execFileSync("npm", ["ci", "--no-audit", "--no-fund"], options);
    execFileSync("npm", ["run", "--silent", "build"], options);
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    git("worktree", "prune");
  }
}
