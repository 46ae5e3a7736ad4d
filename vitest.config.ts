import { defineConfig } from "vitest/config";
import LongestFirst from "./test/helpers/runs/longest-first.ts";

/**
 * Tests of areas that keep something in a store: `unit` runs them over the embedded engine, `areas-cluster` over etcd
 * and Cassandra. Here are those whose work depends on what a store can do (races, conditions, watches, plans, times,
 * pages), and one of every other area.
 */
const AREAS_ON_CLUSTER = [
  "controller/areas/appcontext/service.test.ts",
  "controller/areas/audit/{anchors,audit,heads,in-commit,stored-trail}.test.ts",
  "controller/areas/cluster/{ahead,cluster,membership,repairs,scrub-beside-writers,scrub}.test.ts",
  "controller/areas/config/{changes,config,histories,transfer,watch}.test.ts",
  "controller/areas/consolelog/oldest.test.ts",
  "controller/areas/depots/waiting/waiting.test.ts",
  "controller/areas/files/service.test.ts",
  "controller/areas/files/transfer/{conditions,deaths,downloads}.test.ts",
  "controller/areas/groups/at-once.test.ts",
  "controller/areas/hosts/changes.test.ts",
  "controller/areas/ingest/{batches,holders,in-flight,marks,pins,retries,service}.test.ts",
  "controller/areas/jobs/history/command-runs.test.ts",
  "controller/areas/jobs/queues/queues.test.ts",
  "controller/areas/jobs/runs/{batch,runs,takeover}.test.ts",
  "controller/areas/jobs/schedule/{firings,scheduled,scheduler}.test.ts",
  "controller/areas/keys/rotation.test.ts",
  "controller/areas/notifications/{frames,raw-bytes}.test.ts",
  "controller/areas/objects/changes/{changes,outbox}.test.ts",
  "controller/areas/objects/definitions/{catalog,definitions,followers,stopped-writers}.test.ts",
  "controller/areas/objects/history/history.test.ts",
  "controller/areas/objects/indexing/{filling,races}.test.ts",
  "controller/areas/objects/reading/edges.test.ts",
  "controller/areas/objects/{reads,writes}.test.ts",
  "controller/areas/objects/writing/races.test.ts",
  "controller/areas/objects/writing/times/futuretimes.test.ts",
  "controller/areas/query/{analyzed,asof,counted,ordered}.test.ts",
  "controller/areas/query/batch/takeover.test.ts",
  "controller/areas/query/graph/graph.test.ts",
  "controller/areas/query/search/{calls,random,search}.test.ts",
  "controller/areas/query/visible/objects.test.ts",
  "controller/areas/query/write/future.test.ts",
  "controller/areas/schema/{actions,revisions,schema}.test.ts",
  "controller/areas/scripts/host-objects.test.ts",
  "controller/areas/tenants/tenants.test.ts",
  "controller/areas/transfer/import.test.ts",
  "controller/areas/triggers/{several,takeover}.test.ts",
  "controller/areas/users/directory/at-once.test.ts",
  "controller/areas/users/sessions/signins.test.ts",
  "controller/grpc/peers.test.ts",
  "controller/store/journal/{journal,lost-answers}.test.ts",
  "controller/store/once.test.ts",
  "test/mql/scripts.test.ts",
  "test/security/neighbours.test.ts",
  "test/values/values.test.ts",
  "controller/areas/policies/ssh/{runner,task}.test.ts",
];

/**
 * The others: they ask of a store what its contract promises, which `cluster` proves for etcd and Cassandra. `npm run
 * soak` runs them over the cluster.
 */
const AREAS_IN_SOAK = [
  "controller/areas/appcontext/{age,listing,routes,store-faults}.test.ts",
  "controller/areas/audit/{broken-trails,earlier-versions,edits,tampering}.test.ts",
  "controller/areas/cluster/row-checks.test.ts",
  "controller/areas/config/{cache,many,mql,schema,wire}.test.ts",
  "controller/areas/consolelog/{routes,run-log,service}.test.ts",
  "controller/areas/depots/interface.test.ts",
  "controller/areas/extagents/*.test.ts",
  "controller/areas/files/archive/{export,import-death,import,interface,page}.test.ts",
  "controller/areas/files/{folders,known-texts,paths,routes,rules,spaces,work}.test.ts",
  "controller/areas/files/history/{deaths,history,page,rules,searched}.test.ts",
  "controller/areas/files/local/local.test.ts",
  "controller/areas/files/search/{extractions,page,search-routes,search,takeover}.test.ts",
  "controller/areas/files/transfer/{commits,listing,page,uploads}.test.ts",
  "controller/areas/files/versions/{aged,deaths,limits,page,routes,rules,service}.test.ts",
  "controller/areas/groups/{explain,giving,groups,known}.test.ts",
  "controller/areas/hosts/{agent,credentials,enrolment,records,room,routes}.test.ts",
  "controller/areas/hosts/targets/{calls,resolver}.test.ts",
  "controller/areas/ingest/{bodies,entries,error-records,functions,headings,hints,repeated-batches,sent-policies,times}.test.ts",
  "controller/areas/jobs/context/contexts.test.ts",
  "controller/areas/jobs/definitions/definitions.test.ts",
  "controller/areas/jobs/groups/{groups,proxied}.test.ts",
  "controller/areas/jobs/history/{retention,rows}.test.ts",
  "controller/areas/jobs/interface.test.ts",
  "controller/areas/jobs/output/{following,stream}.test.ts",
  "controller/areas/jobs/queues/places.test.ts",
  "controller/areas/jobs/rights/{kept-rights,run-access}.test.ts",
  "controller/areas/jobs/runs/{cancels,choosing,left-hosts,retries,scripted,states}.test.ts",
  "controller/areas/jobs/schedule/interrupted-firings.test.ts",
  "controller/areas/keys/resealing.test.ts",
  "controller/areas/licences/{routes,service}.test.ts",
  "controller/areas/notifications/{relations,rights}.test.ts",
  "controller/areas/objects/{classes,model}.test.ts",
  "controller/areas/objects/definitions/inherited.test.ts",
  "controller/areas/objects/history/asof.test.ts",
  "controller/areas/objects/indexing/indexing.test.ts",
  "controller/areas/objects/writing/edges/endings.test.ts",
  "controller/areas/objects/writing/entities/{afterends,ends}.test.ts",
  "controller/areas/openid/openid.test.ts",
  "controller/areas/policies/{faults,interface,policies,records}.test.ts",
  "controller/areas/policies/conf/{conf,page}.test.ts",
  "controller/areas/policies/states/states.test.ts",
  "controller/areas/policies/targets/{interface,targets}.test.ts",
  "controller/areas/hosts/tokens/tokens.test.ts",
  "controller/areas/query/{arrival,graph-host-objects,marked-records,more,patterns,records,row-gate}.test.ts",
  "controller/areas/query/batch/batch.test.ts",
  "controller/areas/query/visible/rows.test.ts",
  "controller/areas/query/write/{restoring,set,unseen-targets}.test.ts",
  "controller/areas/rules/grok/patterns.test.ts",
  "controller/areas/rules/parsing/{malformed-lines,parse-file,sent-lines}.test.ts",
  "controller/areas/rules/service.test.ts",
  "controller/areas/policies/preview/preview.test.ts",
  "controller/areas/rules/trial/trial.test.ts",
  "controller/areas/schema/posted.test.ts",
  "controller/areas/scripts/scripts.test.ts",
  "controller/areas/tables/{routes,rows,service}.test.ts",
  "controller/areas/tags/{branches,moves,owners,routes,service,tagging}.test.ts",
  "controller/areas/tenants/{companies,interrupted,removal,routes,use}.test.ts",
  "controller/areas/transfer/{headed-files,headed,past,restored,roundtrip,sheets,triggered}.test.ts",
  "controller/areas/triggers/{after,trigger-queues,triggers}.test.ts",
  "controller/areas/users/credentials/{signing-in,slowdown}.test.ts",
  "controller/areas/users/directory/{class,directory,organizations}.test.ts",
  "controller/areas/users/{host-objects,interface,sign-in-interface,users}.test.ts",
  "controller/areas/users/pages/{account-pages,sign-in-form}.test.ts",
  "controller/areas/users/providers/accounts.test.ts",
  "controller/areas/users/rights/left-work.test.ts",
  "controller/areas/users/second-factor/{pending-requirements,second-factor}.test.ts",
  "controller/areas/users/sessions/{lifetime,recent}.test.ts",
  "controller/grpc/{refused-agents,server,two-controllers}.test.ts",
  "controller/store/journal/deaths.test.ts",
  "controller/{systemclasses,typos}.test.ts",
  "test/mql/random.test.ts",
  "test/revisions/revisions.test.ts",
  "test/security/{class-reading,owned-records,owned-users,ruled-endpoints,ways-out}.test.ts",
];

/** Files of the ring that only the soak runs. Every run loses a node, a leader, a majority and the room of a disk. */
const RING_IN_SOAK = [
  "test/ring/{age,churn,config,edges,expiry,repairs,tenants}.test.ts",
  "test/e2e/exactly-once.ring.test.ts",
];

/** Projects that `npm test` leaves to `npm run soak`. */
export const SOAK_PROJECTS = ["areas-soak", "ring-soak"] as const;
const [AREAS_SOAK, RING_SOAK] = SOAK_PROJECTS;

/** Set where a project runs beside others, which want processors too: `npm test`. */
export const BESIDE_OTHERS = "ODP_TEST_BESIDE_OTHERS";
const IS_BESIDE_OTHERS = process.env[BESIDE_OTHERS] !== undefined;

/** For projects of low priority: they take the processor time that others leave, and wait for it. */
const LEFT_PROCESSOR = {
  testTimeout: 1_200_000,
  hookTimeout: 1_200_000,
  expect: { poll: { timeout: 300_000 } },
} as const;

/** Tests of a controller as a whole: what all its areas together promise. */
const WHOLE = ["test/{durability,mql,openapi,revisions,scripts,security,values}/**/*.test.ts"] as const;

const ON_NODE_ALONE = {
  // Files share a process: loading the controller takes longer than most of them do.
  isolate: false,
  // More than processors, as many tests wait for a time that passes.
  maxWorkers: IS_BESIDE_OTHERS ? 3 : 4,
  ...(IS_BESIDE_OTHERS && LEFT_PROCESSOR),
} as const;

/**
 * Projects by what they need: `unit` and `whole` nothing, `cluster` and `areas-cluster` a real etcd and Cassandra, `e2e` built
 * bundles and processes, `ring` three of each, `sim` processor time. They run one after the other: what is measured
 * against a deadline should not wait for another suite's work. `npm test` runs `unit`, `whole`, `sim` and `ring` beside
 * the others (`test/tools/test.ts`).
 */
export default defineConfig({
  test: {
    // A suite that hangs is a failure with a name; none waits for this in a good run.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A busy machine is no failure: a second, which polls have by default, may pass before anything runs.
    expect: { poll: { timeout: 30_000 } },
    setupFiles: [
      "test/helpers/runs/processor-time.ts",
      "test/helpers/programs/program-flags.ts",
      "test/helpers/runs/known-passwords.ts",
    ],
    // Projects that run after one another transform each module once.
    experimental: { fsModuleCache: true },
    sequence: { sequencer: LongestFirst },
    pool: "forks",
    // All processors have work: threads of the garbage collector only take them from each other.
    execArgv: ["--single-threaded-gc"],
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          ...ON_NODE_ALONE,
          name: "unit",
          sequence: { groupOrder: 0 },
          include: ["{common,controller,agent,deploy,test}/**/*.test.ts"],
          exclude: ["**/*.cluster.test.ts", ...WHOLE, "test/{e2e,ring,sim}/**", "**/node_modules/**"],
        },
      },
      {
        extends: true,
        test: {
          ...ON_NODE_ALONE,
          name: "whole",
          // With the order of another project, vitest would end a process, and load all modules anew, at each change between them.
          sequence: { groupOrder: 8 },
          include: [...WHOLE],
          exclude: ["**/*.cluster.test.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "sim",
          sequence: { groupOrder: 5 },
          include: ["test/sim/**/*.test.ts"],
          // Has two threads of its own.
          fileParallelism: false,
          ...LEFT_PROCESSOR,
        },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          sequence: { groupOrder: 1 },
          include: ["{controller,test}/**/*.cluster.test.ts"],
          exclude: ["test/{e2e,ring}/**"],
          globalSetup: ["test/helpers/cluster/cluster-setup.ts"],
          // Each file has name spaces of its own, and many wait for a time that passes.
          maxWorkers: 2,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "areas-cluster",
          sequence: { groupOrder: 2 },
          include: AREAS_ON_CLUSTER,
          globalSetup: ["test/helpers/cluster/cluster-setup.ts", "test/helpers/cluster/areas-cluster-setup.ts"],
          setupFiles: ["test/helpers/cluster/areas-cluster-file-setup.ts"],
          env: { ODP_TEST_ENGINE: "cluster" },
          fileParallelism: false,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: AREAS_SOAK,
          sequence: { groupOrder: 6 },
          include: AREAS_IN_SOAK,
          globalSetup: ["test/helpers/cluster/cluster-setup.ts", "test/helpers/cluster/areas-cluster-setup.ts"],
          setupFiles: ["test/helpers/cluster/areas-cluster-file-setup.ts"],
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
          globalSetup: ["test/helpers/cluster/cluster-setup.ts", "test/helpers/programs/build-setup.ts"],
          // Each file has controllers, agents and name spaces of its own.
          maxWorkers: 2,
          isolate: false,
          testTimeout: 300_000,
        },
      },
      {
        extends: true,
        test: {
          name: "ring",
          sequence: { groupOrder: 4 },
          include: ["test/ring/**/*.test.ts", "test/e2e/**/*.ring.test.ts"],
          exclude: RING_IN_SOAK,
          globalSetup: ["test/helpers/cluster/ring-setup.ts", "test/helpers/programs/build-setup.ts"],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        extends: true,
        test: {
          name: RING_SOAK,
          sequence: { groupOrder: 7 },
          include: RING_IN_SOAK,
          globalSetup: ["test/helpers/cluster/ring-setup.ts", "test/helpers/programs/build-setup.ts"],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
