import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** An area has one `index.ts`, so a test in any of its folders may be the one that notices a change. */
const AREA = /^controller\/areas\/[^/]+(?=\/|$)/;
/** Highest folders whose tests count as near: one area, or one part of a program. */
const ROOMS = [/^controller\/areas\/[^/]+$/, /^controller\/(?!areas$)[^/]+$/, /^agent\/plugins\/[^/]+$/, /^[^/]+$/];

/** Tests of `test/` that need nothing but Node. */
const OUTSIDE = /^test\/(?!e2e|ring|sim|tools)/;
const IMPORTED = /\bfrom "(\.[^"]+)"/g;

/**
 * The near tests of a source file, in stages, the likeliest and cheapest to notice a change first: the test with the
 * file's name, tests in its folder and in the folders above it (up to `ROOMS`), tests of `test/` that use the file or
 * its area, all others of the area, and `further`.
 */
export function nearTests(file: string, further: readonly string[]): readonly (readonly string[])[] {
  const own = file.replace(/\.ts$/, ".test.ts");
  const asked = new Set<string>();
  const [area] = AREA.exec(file) ?? [];
  const inArea = area === undefined ? [] : filesBelow(area).filter(isTest);
  const used = usersOf(area === undefined ? file : `${area}/`);
  return [[own].filter((test) => existsSync(test)), ...outwards(dirname(file)), used, inArea, further]
    .map((tests) => tests.filter((test) => !asked.has(test) && asked.add(test)))
    .filter((tests) => tests.length > 0);
}

function outwards(folder: string): readonly (readonly string[])[] {
  const above = ROOMS.some((room) => room.test(folder)) ? [] : outwards(dirname(folder));
  return [testsIn(folder), ...above];
}

/** Tests of `test/` that import a path with this beginning. */
function usersOf(path: string): readonly string[] {
  return filesBelow("test").filter(
    (file) => OUTSIDE.test(file) && isTest(file) && importedBy(file).some((imported) => imported.startsWith(path)),
  );
}

function importedBy(file: string): readonly string[] {
  return [...readFileSync(file, "utf8").matchAll(IMPORTED)].map(([, path = ""]) => join(dirname(file), path));
}

export function sourcesBelow(path: string): readonly string[] {
  if (path.endsWith(".ts")) return [path];
  return filesBelow(path).filter((file) => file.endsWith(".ts") && !/\.(?:test|d)\.ts$/.test(file));
}

function testsIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const tests = readdirSync(folder).filter(isTest);
  return tests.sort().map((name) => join(folder, name));
}

function isTest(name: string): boolean {
  return name.endsWith(".test.ts") && !name.endsWith(".cluster.test.ts");
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .sort();
}
