import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";
import { buildInto } from "./builds.ts";
import { writeCommandLine } from "./cli/bundle.ts";
import { writeSite } from "./manual/files.ts";
import { spreadFirst } from "./spread.ts";

/**
 * One bundle per program in `dist/`. The controller keeps its packages outside (some carry binaries), its engines and
 * the main files of its threads apart; the agent is a single file with nothing beside it, so that a host needs
 * Node and this file. The manual is a folder of finished files.
 */
const COMMON: BuildOptions = {
  bundle: true,
  platform: "node",
  target: "node20.19",
  format: "esm",
  sourcemap: "linked",
  legalComments: "none",
  logLevel: "warning",
};

/** Bundled CommonJS packages call `require` for Node's own modules. */
const REQUIRE =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);";

/**
 * Modules that the controller imports only when needed stay files of their own. It loads only the chosen engine, with
 * its driver.
 */
const SPLIT: BuildOptions = { splitting: true, chunkNames: "controller-[name]-[hash]" };
/** Not for the minified agent: minifying removes `...null`. */
const CONTROLLER: BuildOptions = { ...COMMON, packages: "external", plugins: [spreadFirst] };

const name = `${new Date().toISOString().replaceAll(/[^0-9]/g, "")}-${process.pid}`;

await buildInto("dist", name, async (outdir) => {
  await Promise.all([
    build({ ...CONTROLLER, entryPoints: { controller: "controller/main.ts" }, outdir, ...SPLIT }),
    build({ ...COMMON, entryPoints: { "controller-spawner": "controller/spawner.ts" }, outdir }),
    build({ ...CONTROLLER, entryPoints: { "controller-worker": "controller/worker.ts" }, outdir }),
    build({ ...CONTROLLER, entryPoints: { "controller-script-worker": "controller/script-worker.ts" }, outdir }),
    writeCommandLine(outdir),
    build({
      ...COMMON,
      entryPoints: { agent: "agent/main.ts" },
      outdir,
      minifySyntax: true,
      minifyWhitespace: true,
      banner: { js: REQUIRE },
    }),
    writeSite("deploy/docs", join(outdir, "manual")),
  ]);
});
