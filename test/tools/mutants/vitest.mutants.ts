import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { mutated, type Mutation } from "./mutations.ts";

/** Change that `npm run mutants` has one run of vitest try. */
export interface Trial {
  /** Absolute. */
  readonly file: string;
  /** Absent in the run that shows that the tests pass as they are. */
  readonly mutation?: Mutation;
  /** Relative to the project. */
  readonly tests: readonly string[];
}

const trial = JSON.parse(process.env.ODP_TEST_MUTANT ?? "{}") as Trial;

/**
 * Runs the tests near a file with one change of that file. The change is made while the file is loaded; the file itself
 * is not modified.
 */
export default defineConfig({
  plugins: [
    {
      name: "odp-mutant",
      enforce: "pre",
      load: (id) =>
        id === trial.file && trial.mutation ? mutated(readFileSync(id, "utf8"), trial.mutation) : undefined,
    },
  ],
  test: {
    include: [...trial.tests],
    exclude: ["**/*.cluster.test.ts"],
    // As in `vitest.config.ts`: on a busy machine a shorter time would make slow tests notice every change.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    setupFiles: ["test/helpers/programs/program-flags.ts"],
    pool: "forks",
    maxWorkers: 2,
    // Files share a process: loading the controller takes longer than most of them do.
    isolate: false,
    bail: 1,
  },
});
