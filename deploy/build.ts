import { rm } from "node:fs/promises";
import { build, type BuildOptions } from "esbuild";

/**
 * One bundle per program in `dist/`. The controller keeps its packages outside (some carry binaries) and its engines apart; the agent is a single
 * file with nothing beside it, so that a host needs Node and this file.
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

/** What the controller imports only when it needs it stays a file of its own: of the engines it loads the one that is chosen, with its driver. */
const SPLIT: BuildOptions = { splitting: true, chunkNames: "controller-[name]-[hash]" };

/** Bundled CommonJS packages call `require` for Node's own modules. */
const REQUIRE =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);";

await rm("dist", { recursive: true, force: true });
await Promise.all([
  build({
    ...COMMON,
    entryPoints: { controller: "controller/main.ts" },
    outdir: "dist",
    packages: "external",
    ...SPLIT,
  }),
  build({ ...COMMON, entryPoints: { odp: "controller/cli/main.ts" }, outdir: "dist", banner: { js: REQUIRE } }),
  build({
    ...COMMON,
    entryPoints: { agent: "agent/main.ts" },
    outdir: "dist",
    minifySyntax: true,
    minifyWhitespace: true,
    banner: { js: REQUIRE },
  }),
]);
