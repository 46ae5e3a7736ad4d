import { appendFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** The file that durations are appended to, a line for each test file; unset, nothing is written. */
export const DURATIONS_FILE = "TEST_DURATIONS_FILE";

/**
 * A reporter of vitest that keeps how long each test file took: project, file, seconds with loading, tests; separated by
 * tabs.
 */
export default class Durations implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    const file = process.env[DURATIONS_FILE];
    if (file === undefined) return;
    const { collectDuration, duration, setupDuration } = module.diagnostic();
    const seconds = (collectDuration + duration + setupDuration) / 1_000;
    const tests = [...module.children.allTests()].length;
    appendFileSync(file, `${module.project.name}\t${module.relativeModuleId}\t${seconds.toFixed(2)}\t${tests}\n`);
  }
}
