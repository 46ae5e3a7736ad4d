import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

/**
 * A step of `npm run check`: every code file that a page or a comment names is there. `controller/http/calls/serve.ts`
 * must be that path; `calls/serve.ts` and `serve.ts` may be the end of any path.
 */
const NAMED = /(?<![\w/.<>*{}-])(?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.ts\b/g;
const COMMENT = /^\s*(?:\/\*\*|\*|\/\/)/;
/** Pages about other versions. */
const HISTORY = /^(?:CHANGELOG\.md|changes\/|deploy\/docs\/decisions\/)/;

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { encoding: "utf8" })
  .split("\n")
  .filter((file) => file !== "" && existsSync(file));
const roots = new Set(files.map((file) => file.split("/")[0]));
const ends = new Set(files.filter((file) => file.endsWith(".ts")).flatMap(endsOf));

const missing = files.filter(isRead).flatMap((file) =>
  readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, at) => (file.endsWith(".md") || COMMENT.test(line) ? namedIn(line, `${file}:${at + 1}`) : [])),
);
for (const complaint of missing) console.error(complaint);
process.exitCode = missing.length === 0 ? 0 : 1;

function isRead(file: string): boolean {
  return (file.endsWith(".md") || file.endsWith(".ts")) && !HISTORY.test(file) && !file.includes("/gen/");
}

function namedIn(line: string, place: string): readonly string[] {
  return [...line.matchAll(NAMED)].flatMap(([name]) => (isThere(name) ? [] : [`${place}: there is no file ${name}`]));
}

function isThere(name: string): boolean {
  const [root = ""] = name.split("/");
  return name.includes("/") && roots.has(root) ? existsSync(name) : ends.has(name);
}

/** The path, without each of its first folders in turn. */
function endsOf(file: string): readonly string[] {
  const parts = file.split("/");
  return parts.map((_, at) => parts.slice(at).join("/"));
}
