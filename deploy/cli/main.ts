import { execFile } from "node:child_process";
import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import packageJson from "../../package.json" with { type: "json" };
import { COMMAND_LINE } from "./bundle.ts";

/**
 * `npm run pack-cli [-- <folder>]`: makes the npm package of the command line in the folder, and beside it the file that
 * npm installs. Nothing is published.
 */
const folder = resolve(process.argv[2] ?? ".builds/cli");
const NAME = "odp-cli";
const STEP_DEADLINE_MS = 120_000;

await empty();
await mkdir(folder, { recursive: true });
await build({ ...COMMAND_LINE, outdir: folder, minifySyntax: true, minifyWhitespace: true });
await chmod(join(folder, "odp.js"), 0o755);
await describe();
const pack = ["pack", "--ignore-scripts", "--pack-destination", dirname(folder)];
const { stdout } = await promisify(execFile)("npm", pack, { cwd: folder, timeout: STEP_DEADLINE_MS });
const file = join(dirname(folder), stdout.trim());
console.error(`odp.js: ${(await stat(join(folder, "odp.js"))).size} bytes; package: ${(await stat(file)).size} bytes`);
console.log(file);

/** Removes an earlier package. A folder that holds anything else stays as it is, and nothing is made. */
async function empty(): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const text = names.includes("package.json") ? await readFile(join(folder, "package.json"), "utf8") : "{}";
  if (names.length > 0 && (JSON.parse(text) as { readonly name?: unknown }).name !== NAME)
    throw new Error(`${folder} holds something else: name an empty folder, or one that does not exist.`);
  await rm(folder, { recursive: true, force: true });
}

async function describe(): Promise<void> {
  const { version, license, engines } = packageJson;
  const described = {
    name: NAME,
    version,
    description: "Command line of odp, an operations data platform",
    license,
    type: "module",
    bin: { odp: "odp.js" },
    man: "odp.1",
    files: ["odp.js", "odp.1"],
    engines,
  };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(described, undefined, 2)}\n`);
  await cp("LICENSE", join(folder, "LICENSE"));
  await cp("deploy/cli/README.md", join(folder, "README.md"));
  await cp("deploy/docs/odp.1", join(folder, "odp.1"));
}
