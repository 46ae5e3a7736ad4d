import { existsSync } from "node:fs";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The slowest test files, longest first, as `.reports/durations.tsv` reports them. A file that is missing here still
 * runs, but may start last and leave a processor idle until it ends.
 */
const LONGEST: readonly string[] = [
  "test/e2e/exactly-once.test.ts",
  "test/e2e/two-controllers.test.ts",
  "test/e2e/start.test.ts",
  "test/e2e/neighbours.test.ts",
  "test/e2e/outage.test.ts",
  "test/e2e/main-job.test.ts",
  "test/e2e/lost-access.test.ts",
  "test/e2e/leaders.test.ts",
  "test/e2e/full-disk.test.ts",
  "test/e2e/processes.test.ts",
  "controller/areas/triggers/after.test.ts",
  "controller/areas/triggers/takeover.test.ts",
  "test/security/event-loop.test.ts",
  "test/security/rights-fuzz-notices.test.ts",
  "test/security/hostile-bodies.test.ts",
  "test/tools/new-area/new-area.test.ts",
  "controller/scripting/javascript/javascript.test.ts",
  "test/mql/scripts.test.ts",
  "test/security/other-sites.test.ts",
  "controller/scripting/lua/lua.test.ts",
  "test/mql/random.test.ts",
  "agent/plugins/log-policy/rotation/rotation.test.ts",
  "controller/scripting/lua/sandbox.test.ts",
  "controller/outage.cluster.test.ts",
  "controller/store/cluster/upkeep/sweeps.cluster.test.ts",
  "controller/store/cluster/upkeep/late-changes.cluster.test.ts",
  "controller/store/cluster/faults.cluster.test.ts",
  "controller/store/cluster/cassandra/account.cluster.test.ts",
  "controller/store/cluster/readiness.cluster.test.ts",
  "controller/store/cluster/age.cluster.test.ts",
];

/** Starts the longest files first, the others in vitest's order: failed, slow, large. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = LONGEST.filter((name) => !existsSync(name));
    if (missing.length > 0) throw new Error(`Files that are to start first are missing: ${missing.join(", ")}.`);
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}`));
  return at === -1 ? LONGEST.length : at;
}
