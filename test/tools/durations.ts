import { appendFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** Variable with the file to which durations are appended, a line for each test file. Unset: nothing is written. */
export const DURATIONS_FILE = "TEST_DURATIONS_FILE";

/**
 * A reporter of vitest that writes the duration of each test file, separated by tabs: project, file, seconds with
 * loading, tests, seconds of processor (`test/helpers/runs/processor-time.ts`).
 */
export default class Durations implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    const file = process.env[DURATIONS_FILE];
    if (file === undefined) return;
    const { collectDuration, duration, setupDuration } = module.diagnostic();
    const seconds = (collectDuration + duration + setupDuration) / 1_000;
    const tests = [...module.children.allTests()].length;
    const processor = (module.meta().processorSeconds ?? 0).toFixed(2);
    const line = [module.project.name, module.relativeModuleId, seconds.toFixed(2), tests, processor];
    appendFileSync(file, `${line.join("\t")}\n`);
  }
}
