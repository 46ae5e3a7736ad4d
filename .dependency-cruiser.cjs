/** Who may import whom (ARCHITECTURE.md section 4), kept by a machine. */
const areas = "^controller/areas/([^/]+)/";
const tests = "\\.test\\.ts$|^test/";

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "unresolved", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "common-is-pure",
      comment: "common/ imports only itself and a few pure libraries (decision record 0002).",
      severity: "error",
      from: { path: "^common/", pathNot: tests },
      to: { pathNot: "^common/|^node_modules/(typebox|croner|ulid|re2js)/" },
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
      from: { path: "^controller/", pathNot: `^controller/areas/|${tests}` },
      to: { path: areas, pathNot: "/index\\.ts$" },
    },
    {
      name: "services-know-no-http",
      severity: "error",
      from: { path: `${areas}(?!routes\\.ts|index\\.ts)`, pathNot: tests },
      to: { path: "^controller/http/|^node_modules/(fastify|@fastify)/" },
    },
    {
      name: "routes-know-no-store",
      severity: "error",
      from: { path: "/routes\\.ts$" },
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
      name: "only-exec-starts-processes",
      severity: "error",
      from: { path: "^agent/", pathNot: `^agent/exec\\.ts$|${tests}` },
      to: { path: "^(node:)?child_process$" },
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
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { conditionNames: ["import", "node", "default"], exportsFields: ["exports"] },
  },
};
