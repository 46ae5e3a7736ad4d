import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { areaFiles, type AreaNames } from "./templates.ts";

const NAME = /^[a-z]{3,20}$/;

interface Line {
  readonly file: string;
  /** The new text is inserted before the first occurrence of this. */
  readonly before: string;
  readonly text: string;
}

/**
 * Lays out an area in a checkout at `root`: its files, and the lines by which the program and the tests on the cluster
 * know it. Returns the created and changed paths. Throws before anything is written if the name is no plural noun in
 * small letters or is taken, or if a file no longer has the place for a line.
 */
export async function layOut(root: string, name: string): Promise<readonly string[]> {
  if (!NAME.test(name))
    throw new Error(`"${name}" is no name of an area: three to twenty small letters, as in "shifts".`);
  const names: AreaNames = { name, type: name.charAt(0).toUpperCase() + name.slice(1) };
  const files = new Map(areaFiles(names));
  const taken = [...files.keys()].find((path) => existsSync(join(root, path)));
  if (taken !== undefined) throw new Error(`${taken} is there already.`);
  for (const line of lines(names))
    files.set(line.file, withLine(files.get(line.file) ?? (await readFile(join(root, line.file), "utf8")), line));
  for (const [path, text] of files) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  await format(root, [...files.keys()]);
  return [...files.keys()];
}

/** Formats the files, because line breaks depend on the length of the name. */
async function format(root: string, paths: readonly string[]): Promise<void> {
  await promisify(execFile)("node_modules/.bin/biome", ["format", "--write", "--vcs-enabled=false", ...paths], {
    cwd: root,
  });
}

function lines({ name, type }: AreaNames): readonly Line[] {
  const assembly = "controller/assembly/areas.ts";
  return [
    {
      file: assembly,
      before: "import { tablesArea ",
      text: `import { ${name}Area, ${type}Service } from "../areas/${name}/index.ts";\n`,
    },
    { file: assembly, before: "    usersArea(", text: `    ${name}Area(new ${type}Service({ stores })),\n` },
    {
      file: "controller/areas/permissions/names.ts",
      before: '  "users:read",',
      text: `  "${name}:read",\n  "${name}:write",\n`,
    },
    {
      file: "vitest.config.ts",
      before: '  "controller/areas/query/',
      text: `  "controller/areas/${name}/*.test.ts",\n`,
    },
  ];
}

function withLine(text: string, { file, before, text: added }: Line): string {
  const at = text.indexOf(before);
  if (at < 0) throw new Error(`${file} has no ${JSON.stringify(before)}, before which a line of the new area belongs.`);
  return text.slice(0, at) + added + text.slice(at);
}
