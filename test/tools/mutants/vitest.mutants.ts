import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { switched } from "./switched.ts";
import { planOf } from "./trials.ts";

const { sources, tests, number } = planOf(process.env);

/**
 * Runs tests over sources that have all changes of `npm run mutants` in them, each with a switch. The changes are made
 * while a file is loaded; the file itself is not modified.
 */
export default defineConfig({
  plugins: [
    {
      name: "odp-mutants",
      enforce: "pre",
      load: (id) => (sources[id] ? switched(readFileSync(id, "utf8"), sources[id]) : undefined),
    },
  ],
  test: {
    include: [...tests],
    exclude: ["**/*.cluster.test.ts"],
    // As in `vitest.config.ts`: on a busy machine a shorter time would make slow tests notice every change.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    setupFiles: ["test/helpers/programs/program-flags.ts", "test/helpers/runs/known-passwords.ts"],
    runner: "test/tools/mutants/runner.ts",
    reporters: [{}],
    update: "none",
    pool: "forks",
    // One process has loaded the sources, and tries all changes.
    maxWorkers: 1,
    isolate: false,
    bail: number === undefined ? 0 : 1,
    sequence: {
      sequencer: class {
        shard<T>(files: T): T {
          return files;
        }
        /** The tests in the order of the plan. */
        sort<T extends { readonly moduleId: string }>(files: readonly T[]): T[] {
          const placeOf = ({ moduleId }: T) => tests.findIndex((test) => moduleId.endsWith(`/${test}`));
          return [...files].sort((left, right) => placeOf(left) - placeOf(right));
        }
      },
    },
  },
});
