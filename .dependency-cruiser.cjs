/** Who may import whom ("Imports" in ARCHITECTURE.md), kept by a machine. Cycles are found by the linter. */
const areas = "^controller/areas/([^/]+)/";
const tests = "\\.test\\.ts$|^test/";

/** Folders of big areas, the lowest first: each imports itself, those before it and two files on top. */
const floors = {
  objects: ["visible", "definitions", "values", "reading", "history", "changes", "writing", "indexing"],
  query: ["expressions", "plan", "visible", "run", "write", "batch", "graph", "statements", "search"],
};

const floorRules = Object.entries(floors).flatMap(([area, folders]) =>
  folders.map((folder, at) => ({
    name: `${area}-${folder}-imports-lower-folders`,
    severity: "error",
    from: { path: `^controller/areas/${area}/${folder}/`, pathNot: tests },
    to: {
      path: `^controller/areas/${area}/`,
      pathNot: `^controller/areas/${area}/((${folders.slice(0, at + 1).join("|")})/|(types|audited)\\.ts$)`,
    },
  })),
);

module.exports = {
  forbidden: [
    ...floorRules,
    { name: "unresolved", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "common-is-pure",
      comment: "common/ imports only itself and a few pure libraries (decision record 0002).",
      severity: "error",
      from: { path: "^common/", pathNot: tests },
      to: { pathNot: "^common/|^node_modules/(typebox|croner|ulid|re2js|@noble/hashes)/" },
    },
    {
      name: "controller-and-agent-never-meet",
      severity: "error",
      from: { path: "^controller/", pathNot: tests },
      to: { path: "^agent/" },
    },
    {
      name: "agent-sees-no-controller",
      severity: "error",
      from: { path: "^agent/", pathNot: tests },
      to: { path: "^controller/" },
    },
    {
      name: "only-main-chooses-an-engine",
      severity: "error",
      from: { pathNot: `^controller/store/(embedded|cluster|contract)/|^controller/main\\.ts$|${tests}` },
      to: { path: "^controller/store/(embedded|cluster)/" },
    },
    {
      name: "drivers-stay-in-their-engine",
      severity: "error",
      from: { pathNot: `^controller/store/(embedded|cluster)/|^deploy/|${tests}` },
      to: { path: "^node_modules/(lmdb|etcd3|cassandra-driver)/" },
    },
    {
      name: "areas-meet-at-index",
      severity: "error",
      from: { path: areas, pathNot: tests },
      to: { path: areas, pathNot: ["^controller/areas/$1/", "^controller/areas/[^/]+/index\\.ts$"] },
    },
    {
      name: "outside-sees-area-index-only",
      severity: "error",
      from: { path: "^controller/", pathNot: `^controller/areas/|^controller/worker\\.ts$|${tests}` },
      to: { path: areas, pathNot: "/index\\.ts$" },
    },
    {
      name: "threads-get-tasks-only",
      comment: "The main file of worker threads takes from areas what they put into tasks.ts.",
      severity: "error",
      from: { path: "^controller/worker\\.ts$" },
      to: { pathNot: "^controller/workers/|^controller/areas/[^/]+/tasks\\.ts$" },
    },
    {
      name: "script-threads-see-no-controller",
      comment: "What runs in the thread of a script reaches the controller by host calls only.",
      severity: "error",
      from: { path: "^controller/(script-worker\\.ts$|scripting/(javascript|lua)/)", pathNot: tests },
      to: { path: "^controller/", pathNot: "^controller/(workers|scripting)/" },
    },
    {
      name: "script-languages-stay-in-their-room",
      severity: "error",
      from: { pathNot: `^controller/scripting/|${tests}` },
      to: { path: "^node_modules/(quickjs-wasi|wasmoon-lua5\\.1)/" },
    },
    {
      name: "tasks-are-pure",
      comment: "What runs in a worker thread has no store, no connection and no service.",
      severity: "error",
      from: { path: "^controller/areas/[^/]+/tasks\\.ts$" },
      to: {
        path: "^controller/(store|http|grpc|secrets)/|/service\\.ts$|^node_modules/(fastify|lmdb|etcd3|cassandra-driver)/",
        reachable: true,
      },
    },
    {
      name: "only-workers-starts-threads",
      severity: "error",
      from: { path: "^(controller|agent|common)/", pathNot: `^controller/workers/|${tests}` },
      to: { path: "^(node:)?worker_threads$" },
    },
    {
      name: "services-know-no-http",
      severity: "error",
      from: { path: areas, pathNot: `/(routes|[a-z-]+-routes)\\.ts$|^controller/areas/[^/]+/index\\.ts$|${tests}` },
      to: { path: "^controller/http/|^node_modules/(fastify|@fastify)/" },
    },
    {
      name: "routes-know-no-store",
      severity: "error",
      from: { path: "/(routes|[a-z-]+-routes)\\.ts$" },
      to: { path: "^controller/store/|/store\\.ts$" },
    },
    {
      name: "command-line-sees-only-common",
      severity: "error",
      from: { path: "^controller/(cli|console)/", pathNot: tests },
      to: { path: "^(controller|agent)/", pathNot: "^controller/(cli|console)/" },
    },
    {
      name: "plugins-never-meet",
      severity: "error",
      from: { path: "^agent/plugins/([^/]+)/", pathNot: tests },
      to: { path: "^agent/plugins/", pathNot: "^agent/plugins/$1/" },
    },
    {
      name: "only-exec-and-the-spawner-start-processes",
      comment:
        "A process started elsewhere inherits the stores' open files: agents use agent/commands/exec.ts, the controller controller/processes/. The command line has no stores: it starts pager and editor.",
      severity: "error",
      from: {
        path: "^(agent|common|controller|proto)/",
        pathNot: `^agent/commands/exec\\.ts$|^controller/processes/|^controller/cli/(pager|fs/editor)\\.ts$|${tests}`,
      },
      to: { path: "^(node:)?(child_process|cluster)$" },
    },
    {
      name: "the-spawner-opens-nothing",
      comment: "The process that starts all others has no store and no service whose files it could pass on.",
      severity: "error",
      from: { path: "^controller/(spawner\\.ts|processes/)", pathNot: tests },
      to: { path: "^(controller|agent)/|^node_modules/", pathNot: "^controller/processes/" },
    },
    {
      name: "the-product-needs-no-tests",
      severity: "error",
      from: { pathNot: tests },
      to: { path: "^test/", pathNot: "^test/helpers/" },
    },
    {
      name: "no-development-packages",
      severity: "error",
      from: { path: "^(common|controller|agent)/", pathNot: `${tests}|/contract/` },
      to: { dependencyTypes: ["npm-dev"], pathNot: "^node_modules/@types/" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    skipAnalysisNotInRules: true,
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { conditionNames: ["import", "node", "default"], exportsFields: ["exports"] },
  },
};
