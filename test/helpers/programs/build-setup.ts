import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { BESIDE_OTHERS } from "../../../vitest.config.ts";

/** End-to-end tests run the bundles. `npm test` has just built them; those of a single vitest run may be older. */
export function setup(): void {
  const isBuilt = existsSync("dist/controller.js") && existsSync("dist/agent.js");
  if (isBuilt && process.env[BESIDE_OTHERS] !== undefined) return;
  execFileSync("node_modules/.bin/tsx", ["deploy/build.ts"], { stdio: "inherit" });
}
