import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { complaints, lowered } from "./ratchets/compare.ts";
import { measure, type Measured } from "./ratchets/measure.ts";
import { callSites, type ListedFiles, loweredFiles, unrestrictedComplaints } from "./ratchets/unrestricted.ts";

/**
 * `npm run ratchets`: lowers the list of code that is longer than its bound, or hard to read, and the list of calls that
 * skip the rules for rows and columns, to the current state. With `--check`, as part of `npm run check`: fails if there is more of it than the list says, or less.
 */
const LIST = join(import.meta.dirname, "ratchets/list.json");
const UNRESTRICTED = join(import.meta.dirname, "ratchets/unrestricted.json");
const FILES = [
  "ls-files",
  "--cached",
  "--others",
  "--exclude-standard",
  "*.ts",
  "controller/areas/*README.md",
  ":!:*/gen/*",
  ":!:test/scripts/programs/*",
];

const isCheck = process.argv.includes("--check");
// During a merge, git lists a file with a conflict once for each side.
const paths = [...new Set(execFileSync("git", FILES, { encoding: "utf8" }).split("\n"))].filter(existsSync);
const sources = paths.map((path) => ({ path, text: readFileSync(path, "utf8") }));

function read<T>(path: string): T {
  return JSON.parse(readFileSync(path, "utf8")) as T;
}

function compared<L, M>(path: string, measured: M, { lower, complain }: Comparison<L, M>): readonly string[] {
  const listed = read<L>(path);
  if (isCheck) return complain(measured, listed);
  const left = lower(measured, listed);
  writeFileSync(path, `${JSON.stringify(left, null, 2)}\n`);
  return complain(measured, left);
}

interface Comparison<L, M> {
  readonly lower: (measured: M, listed: L) => L;
  readonly complain: (measured: M, listed: L) => readonly string[];
}

const sizes: Comparison<Measured, Measured> = { lower: lowered, complain: complaints };
const calls = { lower: loweredFiles, complain: unrestrictedComplaints } as const;
const found = [
  ...compared(LIST, measure(sources), sizes),
  ...compared<ListedFiles, ReturnType<typeof callSites>>(UNRESTRICTED, callSites(sources), calls),
];
for (const complaint of found) console.error(complaint);
process.exitCode = found.length === 0 ? 0 : 1;
