import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

/** End-to-end tests run the bundles. `npm test` has just built them; a single vitest run may not have. */
export function setup(): void {
  if (existsSync("dist/controller.js") && existsSync("dist/agent.js")) return;
  execFileSync("node_modules/.bin/tsx", ["deploy/build.ts"], { stdio: "inherit" });
}
