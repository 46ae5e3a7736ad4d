import type { BuildOptions } from "esbuild";

/** Bundled CommonJS packages call `require` for Node's own modules. */
export const REQUIRE =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);";

/** The command line as one file that can be executed, with nothing beside it. */
export const COMMAND_LINE: BuildOptions = {
  entryPoints: { odp: "controller/cli/main.ts" },
  bundle: true,
  platform: "node",
  target: "node20.19",
  format: "esm",
  // A smaller file starts faster. Names stay, for traces of the stack.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "none",
  logLevel: "warning",
  banner: { js: `#!/usr/bin/env node\n${REQUIRE}` },
};
