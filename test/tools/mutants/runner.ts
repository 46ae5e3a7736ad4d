import { relative } from "node:path";
import { TestRunner, vi, type RunnerTask, type RunnerTestFile, type RunnerTestSuite } from "vitest";
import { startTests } from "vitest/internal/browser";
import { SWITCH } from "./switched.ts";
import { eventsOf, leftFor, planOf, report, type TrialEvent } from "./trials.ts";

/** A test with a change that takes longer than this, in ms, and this many times longer than without one, fails. */
const TIMEOUT_MIN_MS = 30_000;
const TIMEOUT_FACTOR = 4;

const { near, events: path, number: fixed } = planOf(process.env);
/** Rejections and errors that nothing handled. */
const unhandled: string[] = [];
for (const event of ["unhandledRejection", "uncaughtException"])
  process.on(event, (error) => unhandled.push(`unhandled: ${String(error)}`));

/** Numbers of the changes whose code ran, since it was cleared. */
const reached = new Set<number>();
let on = fixed;
Object.assign(globalThis, {
  [SWITCH]: (number: number): boolean => {
    reached.add(number);
    return number === on;
  },
});

/**
 * Runs each test file without a change, and then with one change after the other, those whose code it runs. What is
 * found is reported as events.
 */
export default class MutantRunner extends TestRunner {
  /** Runs of a test file within its run. */
  #isTrying = false;
  #hasFailed = false;
  /** True while the test file runs once more without a change, because a change was noticed. */
  #isControl = false;

  override importFile(filepath: string, source: "collect" | "setup"): unknown {
    // A test file is loaded again for each change.
    if (this.#isTrying) return super.importFile(filepath, "setup");
    return source === "collect" && isDone(filepath) ? undefined : super.importFile(filepath, source);
  }

  override onCollectStart(file: RunnerTestFile): void {
    if (!this.#isTrying) reached.clear();
    super.onCollectStart(file);
  }

  async onBeforeRunFiles([file]: RunnerTestFile[]): Promise<void> {
    if (file === undefined || this.#isTrying || fixed !== undefined) return;
    this.#isControl = false;
    if (isDone(file.filepath)) return;
    tell({ kind: "loaded", test: nameOf(file.filepath), reached: [...reached] });
    this.#isTrying = true;
    this.#isControl = await this.#tryChanges(file.filepath);
    this.#isTrying = false;
  }

  override async onBeforeRunSuite(suite: RunnerTestSuite): Promise<void> {
    if (fixed === undefined && !this.#isTrying && !this.#isControl) suite.mode = "skip";
    await super.onBeforeRunSuite(suite);
  }

  override async onAfterRunSuite(suite: RunnerTestSuite): Promise<void> {
    await super.onAfterRunSuite(suite);
    // A change may leave something behind, by which the test fails from then on.
    if (this.#isTrying || !this.#isControl || suite.result?.state !== "fail") return;
    if ("filepath" in suite) end({ kind: "broken", test: nameOf(suite.file.filepath), why: failureIn([suite]) ?? "" });
  }

  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    if (this.#hasFailed) test.mode = "skip";
    await super.onBeforeRunTask(test);
  }

  override onAfterRunTask(test: RunnerTask): void {
    // One failure is enough.
    this.#hasFailed ||= this.#isTrying && test.result?.state === "fail";
    super.onAfterRunTask(test);
  }

  /** Returns true if a change was noticed. */
  async #tryChanges(filepath: string): Promise<boolean> {
    const test = nameOf(filepath);
    reached.clear();
    const began = performance.now();
    const why = await this.#failure(filepath);
    if (why !== undefined) end({ kind: "broken", test, why });
    const ms = Math.round(performance.now() - began);
    tell({ kind: "measured", test, reached: [...reached], ms });
    const { testTimeout, hookTimeout } = this.config;
    this.config.testTimeout = this.config.hookTimeout = Math.max(TIMEOUT_MIN_MS, ms * TIMEOUT_FACTOR);
    let isNoticed = false;
    for (const number of leftFor(test, near, eventsOf(path))) {
      const found = await this.#failure(filepath, number);
      isNoticed ||= found !== undefined;
      tell(found === undefined ? { kind: "unnoticed", test, number } : { kind: "noticed", test, number, why: found });
    }
    Object.assign(this.config, { testTimeout, hookTimeout });
    return isNoticed;
  }

  /** Runs the test with this change, and returns the reason of its failure; absent when it passes. */
  async #failure(filepath: string, number?: number): Promise<string | undefined> {
    tell({ kind: "begun", test: nameOf(filepath), ...(number !== undefined && { number }) });
    unhandled.length = 0;
    this.#hasFailed = false;
    on = number;
    try {
      const files = await startTests([{ filepath, testLocations: undefined }], this);
      // Unhandled rejections are reported after the tasks that wait.
      await new Promise((done) => setTimeout(done, 10));
      return failureIn(files) ?? unhandled[0];
    } finally {
      on = undefined;
      this.#hasFailed = false;
      vi.restoreAllMocks();
    }
  }
}

function nameOf(filepath: string): string {
  return relative(process.cwd(), filepath);
}

function isDone(filepath: string): boolean {
  return fixed === undefined && leftFor(nameOf(filepath), near, eventsOf(path)).length === 0;
}

function tell(event: TrialEvent): void {
  report(path, event);
}

/** The next process begins with sources in which nothing has happened. */
function end(event: TrialEvent): void {
  tell(event);
  process.kill(process.pid, "SIGKILL");
}

function failureIn(tasks: readonly RunnerTask[]): string | undefined {
  for (const task of tasks) {
    const inside = "tasks" in task ? failureIn(task.tasks) : undefined;
    if (inside !== undefined) return inside;
    if (task.result?.state === "fail") return `${task.name}: ${task.result.errors?.[0]?.message ?? ""}`.slice(0, 300);
  }
  return undefined;
}
