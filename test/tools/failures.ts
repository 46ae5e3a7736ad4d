import { appendFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

/** Variable with the file to which failures are appended, a text for each. Unset: nothing is written. */
export const FAILURES_FILE = "TEST_FAILURES_FILE";

/** Characters kept of one failure, so that the end of a log shows several. */
const FAILURE_SHOWN_MAX = 1_200;

/**
 * A reporter of vitest that keeps the failures, so that `npm test` can print them after all projects have ended. Where
 * everything has to run, as in CI, a file counts as failed if all its tests were skipped: a tool is missing there.
 */
export default class Failures implements Reporter {
  /** Writes the failures of a file at once, so that a run that is ended early has them too. */
  onTestModuleEnd(module: TestModule): void {
    keep([
      ...module.errors().map((error) => failure(module.relativeModuleId, error)),
      ...[...module.children.allTests("failed")].flatMap(failuresOf),
      ...(mustRun && isSkipped(module) ? [skipped(module)] : []),
    ]);
  }

  onTestRunEnd(_modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    keep(errors.map((error) => failure("outside of every test", error)));
  }
}

const mustRun = process.env["ODP_REQUIRE_CLUSTER"] === "1";

function isSkipped(module: TestModule): boolean {
  const tests = [...module.children.allTests()];
  return tests.length > 0 && tests.every((test) => test.result().state === "skipped");
}

function skipped({ project, relativeModuleId }: TestModule): string {
  process.exitCode = 1;
  return `SKIPPED ${project.name} ${relativeModuleId}: every test of it was skipped.`;
}

function keep(texts: readonly string[]): void {
  const file = process.env[FAILURES_FILE];
  if (file !== undefined && texts.length > 0) appendFileSync(file, texts.map((text) => `${text}\n`).join(""));
}

function failuresOf(test: TestCase): readonly string[] {
  const { project, module, fullName } = test;
  const name = `${project.name} ${module.relativeModuleId} > ${fullName}`;
  // A pattern for the names of the groups and the test, which vitest joins with blanks.
  const pattern = fullName.replaceAll(" > ", " ").replaceAll(/[^\w ,;:%=<>/-]/g, ".");
  const again = `Again: npx vitest run --project ${project.name} ${module.relativeModuleId} -t '${pattern}'`;
  return (test.result().errors ?? []).map((error) => `${failure(name, error)}\n${again}`);
}

function failure(where: string, error: SerializedError): string {
  const diff = error.diff === undefined ? "" : `\n${error.diff}`;
  const lines = (error.stack ?? error.message).split("\n").filter((line) => !line.includes("/node_modules/"));
  return `FAILED ${where}\n${lines.join("\n")}${diff}`.slice(0, FAILURE_SHOWN_MAX);
}
