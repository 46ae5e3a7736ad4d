import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { faults, section, withSection } from "./changes/fragments.ts";

/**
 * `npm run changes`: prints the changes since the last release, as gathered from `changes/`. With `--release <version>`:
 * writes them to the changelog under the date of the day, and removes their files.
 */
const ROOT = join(import.meta.dirname, "../..");
const CHANGES = join(ROOT, "changes");
const CHANGELOG = join(ROOT, "CHANGELOG.md");

const { values } = parseArgs({ options: { release: { type: "string" } } });
const files = readdirSync(CHANGES).filter((file) => file !== "README.md");
const fragments = files.map((file) => ({ file, text: readFileSync(join(CHANGES, file), "utf8") }));
const wrong = faults(fragments);
for (const fault of wrong) console.error(fault);
if (wrong.length > 0) process.exitCode = 1;
else if (values.release === undefined) console.log(section("Next release", fragments));
else release(values.release);

function release(version: string): void {
  const changelog = readFileSync(CHANGELOG, "utf8");
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`${version} is not a version such as 0.2.0.`);
  if (changelog.includes(`\n## ${version}`)) throw new Error(`${version} was released before.`);
  if (fragments.length === 0) throw new Error("There are no changes to release.");
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(CHANGELOG, withSection(changelog, section(`${version}, ${day}`, fragments)));
  for (const file of files) rmSync(join(CHANGES, file));
  console.log(`${files.length} changes are in CHANGELOG.md now, under ${version}.`);
}
