import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { complaints, lowered } from "./ratchets/compare.ts";
import { measure, type Measured } from "./ratchets/measure.ts";

/**
 * `npm run ratchets`: lowers the list of code that is longer than its bound, or hard to read, to the current state.
 * With `--check`, as part of `npm run check`: fails if there is more of it than the list says, or less.
 */
const LIST = join(import.meta.dirname, "ratchets/list.json");
const FILES = ["ls-files", "*.ts", "controller/areas/*README.md", ":!:*/gen/*", ":!:test/scripts/programs/*"];

const paths = execFileSync("git", FILES, { encoding: "utf8" }).split("\n").filter(existsSync);
const measured = measure(paths.map((path) => ({ path, text: readFileSync(path, "utf8") })));
const listed = JSON.parse(readFileSync(LIST, "utf8")) as Measured;
if (!process.argv.includes("--check")) writeFileSync(LIST, `${JSON.stringify(lowered(measured, listed), null, 2)}\n`);
const found = complaints(measured, process.argv.includes("--check") ? listed : lowered(measured, listed));
for (const complaint of found) console.error(complaint);
process.exitCode = found.length === 0 ? 0 : 1;
