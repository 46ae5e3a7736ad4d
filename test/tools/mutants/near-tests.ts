import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";

/** How far up a test still counts as near: no further than one area, one part of a program. */
const ROOMS = [/^controller\/areas\/[^/]+$/, /^controller\/(?!areas$)[^/]+$/, /^agent\/plugins\/[^/]+$/, /^[^/]+$/];

/**
 * The tests in the folder of a source file and in the folders above it, up to the edge of its room; in stages, as the
 * test that bears the file's name is the likeliest to notice a change, and the cheapest to ask.
 */
export function nearTests(file: string, further: readonly string[]): readonly (readonly string[])[] {
  const near = [...new Set([...inRoom(file), ...further])];
  const own = file.replace(/\.ts$/, ".test.ts");
  return [near.filter((test) => test === own), near.filter((test) => test !== own)].filter((tests) => tests.length > 0);
}

function inRoom(file: string): readonly string[] {
  const folder = dirname(file);
  const above = ROOMS.some((room) => room.test(folder)) ? [] : inRoom(folder);
  return [...testsIn(folder), ...above];
}

export function sourcesBelow(path: string): readonly string[] {
  if (path.endsWith(".ts")) return [path];
  return filesBelow(path).filter((file) => file.endsWith(".ts") && !/\.(?:test|d)\.ts$/.test(file));
}

function testsIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const tests = readdirSync(folder).filter((name) => name.endsWith(".test.ts") && !name.endsWith(".cluster.test.ts"));
  return tests.sort().map((name) => join(folder, name));
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .sort();
}
