import { chmod, cp, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import packageJson from "../../package.json" with { type: "json" };
import { emptyPackage, packedFile } from "../package-folder.ts";
import { COMMAND_LINE } from "./bundle.ts";

/**
 * `npm run pack-cli [-- <folder>]`: makes the npm package of the command line in the folder, and beside it the file that
 * npm installs. Nothing is published.
 */
const folder = resolve(process.argv[2] ?? ".builds/cli");
const NAME = "odp-cli";

await emptyPackage(folder, NAME);
await build({ ...COMMAND_LINE, outdir: folder });
await chmod(join(folder, "odp.js"), 0o755);
await describe();
const { file, bytes } = await packedFile(folder);
console.error(`odp.js: ${(await stat(join(folder, "odp.js"))).size} bytes; package: ${bytes} bytes`);
console.log(file);

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
