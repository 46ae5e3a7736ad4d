import { cp, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { emptyPackage, packedFile } from "../package-folder.ts";
import { COMMAND_LINE, writeCommandLine } from "./bundle.ts";

/**
 * `npm run pack-cli [-- <folder>]`: makes the npm package of the command line in the folder, and beside it the file that
 * npm installs. Nothing is published.
 */
const folder = resolve(process.argv[2] ?? ".builds/cli");
const NAME = "odp-cli";

await emptyPackage(folder, NAME);
await writeCommandLine(folder);
await describe();
const { file, bytes } = await packedFile(folder);
console.error(`${COMMAND_LINE}: ${(await stat(join(folder, COMMAND_LINE))).size} bytes; package: ${bytes} bytes`);
console.log(file);

async function describe(): Promise<void> {
  const { version, license, engines } = packageJson;
  const described = {
    name: NAME,
    version,
    description: "Command line of odp, an operations data platform",
    license,
    type: "commonjs",
    bin: { odp: COMMAND_LINE },
    man: "odp.1",
    files: [COMMAND_LINE, "odp.1"],
    engines,
  };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(described, undefined, 2)}\n`);
  await cp("LICENSE", join(folder, "LICENSE"));
  await cp("deploy/cli/README.md", join(folder, "README.md"));
  await cp("deploy/docs/odp.1", join(folder, "odp.1"));
}
