import { defineConfig } from "vitest/config";

/**
 * Tests of areas that keep something in a store: `unit` runs them over the embedded engine, `areas-cluster` over etcd
 * and Cassandra.
 */
const AREAS_ON_CLUSTER = [
  "controller/areas/scripts/*.test.ts",
  "controller/areas/{appcontext,audit,cluster,files,groups,ingest,keys,licences,policies,schema,tables,tags,tenants,users,openid}/*.test.ts",
  "controller/store/{once,journal/journal}.test.ts",
  "controller/areas/{config,consolelog}/*.test.ts",
  "controller/areas/triggers/*.test.ts",
  "controller/areas/query/{graph-host-objects,ordered,search/*}.test.ts",
  "controller/areas/rules/{parse-file,patterns,sent-lines,service,trial}.test.ts",
  "controller/areas/objects/{model,service}.test.ts",
  "controller/areas/objects/{definitions/{catalog,definitions,followers,inherited},changes/changes,reading/edges,history/history,indexing/indexing,writing/{edgeendings,futuretimes,races}}.test.ts",
  "controller/areas/{depots,jobs}/interface.test.ts",
  "controller/areas/jobs/{batch,cancels,choosing,command-runs,contexts,definitions,firings,following,groups,kept-rights,places,proxied,queues,retention,retries,run-access,run-rows,scheduled,scheduler,scripted,stream}.test.ts",
  "controller/areas/notifications/rights.test.ts",
  "test/security/{neighbours,owned-records,ways-out}.test.ts",
  "controller/areas/jobs/{runs,takeover}.test.ts",
  "controller/areas/transfer/{import,roundtrip,sheets,triggered}.test.ts",
  "controller/areas/hosts/{agent,credentials,enrolment,records,room,routes}.test.ts",
  "controller/grpc/{peers,server}.test.ts",
  "controller/areas/query/{analyzed,asof,counted,more,patterns,records,batch/batch,graph/graph,write/{future,set}}.test.ts",
  "controller/systemclasses.test.ts",
  "test/mql/{random,scripts}.test.ts",
];

/**
 * Projects by what they need: `unit` nothing, `cluster` and `areas-cluster` a real etcd and Cassandra, `e2e` built
 * bundles and processes, `ring` three of each, `sim` processor time. They run one after the other: what is measured
 * against a deadline should not wait for another suite's work. `npm test` runs `unit`, `sim` and `ring` beside the
 * others (`test/tools/test.ts`).
 */
export default defineConfig({
  test: {
    // A suite that hangs is a failure with a name; none waits for this in a good run.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A busy machine is no failure: a second, which polls have by default, may pass before anything runs.
    expect: { poll: { timeout: 30_000 } },
    setupFiles: ["test/helpers/program-flags.ts"],
    pool: "forks",
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          sequence: { groupOrder: 0 },
          include: ["{common,controller,agent,deploy,test}/**/*.test.ts"],
          exclude: ["**/*.cluster.test.ts", "test/{e2e,ring,sim}/**", "**/node_modules/**"],
          // Files share a process: loading the controller takes longer than most of them do.
          isolate: false,
          // More than processors, as many tests wait for a time that passes.
          maxWorkers: 3,
        },
      },
      {
        extends: true,
        // Has two threads of its own.
        test: { name: "sim", sequence: { groupOrder: 5 }, include: ["test/sim/**/*.test.ts"], fileParallelism: false },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          sequence: { groupOrder: 1 },
          include: ["{controller,test}/**/*.cluster.test.ts"],
          exclude: ["test/{e2e,ring}/**"],
          globalSetup: ["test/helpers/cluster-setup.ts"],
          fileParallelism: false,
        },
      },
      {
        extends: true,
        test: {
          name: "areas-cluster",
          sequence: { groupOrder: 2 },
          include: AREAS_ON_CLUSTER,
          globalSetup: ["test/helpers/cluster-setup.ts", "test/helpers/areas-cluster-setup.ts"],
          setupFiles: ["test/helpers/areas-cluster-file-setup.ts"],
          env: { ODP_TEST_ENGINE: "cluster" },
          fileParallelism: false,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          sequence: { groupOrder: 3 },
          include: ["test/e2e/**/*.test.ts"],
          exclude: ["**/*.ring.test.ts"],
          globalSetup: ["test/helpers/cluster-setup.ts", "test/helpers/build-setup.ts"],
          // Each file has controllers, agents and name spaces of its own.
          maxWorkers: 2,
          testTimeout: 300_000,
        },
      },
      {
        extends: true,
        test: {
          name: "ring",
          sequence: { groupOrder: 4 },
          include: ["test/ring/**/*.test.ts", "test/e2e/**/*.ring.test.ts"],
          globalSetup: ["test/helpers/ring-setup.ts", "test/helpers/build-setup.ts"],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
