import { defineConfig } from "vitest/config";

/** Projects by what they need: `unit` nothing, `cluster` a real etcd and Cassandra, `e2e` built bundles and processes. */
export default defineConfig({
  test: {
    // A suite that hangs is a failure with a name; none waits for this in a good run.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 2,
    reporters: process.env.CI ? ["default"] : ["default"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{common,controller,agent,deploy,test}/**/*.test.ts"],
          exclude: ["**/*.cluster.test.ts", "test/e2e/**", "**/node_modules/**"],
        },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: ["{controller,test}/**/*.cluster.test.ts"],
          exclude: ["test/e2e/**"],
          globalSetup: ["test/helpers/cluster-setup.ts"],
          fileParallelism: false,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["test/helpers/cluster-setup.ts", "test/helpers/build-setup.ts"],
          fileParallelism: false,
          testTimeout: 300_000,
        },
      },
    ],
  },
});
