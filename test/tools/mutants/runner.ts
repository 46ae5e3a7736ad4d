import { relative } from "node:path";
import { TestRunner, vi, type RunnerTask, type RunnerTestFile } from "vitest";
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
  #isTrying = false;
  #hasFailed = false;
  #beganMs = 0;

  override importFile(filepath: string, source: "collect" | "setup"): unknown {
    // A test file is loaded again for each change.
    if (this.#isTrying) return super.importFile(filepath, "setup");
    return source === "collect" && isDone(filepath) ? undefined : super.importFile(filepath, source);
  }

  override onCollectStart(file: RunnerTestFile): void {
    if (!this.#isTrying) reached.clear();
    super.onCollectStart(file);
  }

  onCollected([file]: RunnerTestFile[]): void {
    if (file === undefined || this.#isTrying || isDone(file.filepath)) return;
    tell({ kind: "begun", test: nameOf(file.filepath) });
    tell({ kind: "loaded", test: nameOf(file.filepath), reached: [...reached] });
    reached.clear();
    this.#beganMs = performance.now();
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

  override async onAfterRunFiles(files: RunnerTestFile[] = []): Promise<void> {
    super.onAfterRunFiles();
    const [file] = files;
    if (file === undefined || this.#isTrying || fixed !== undefined || isDone(file.filepath)) return;
    this.#isTrying = true;
    await this.#tryChanges(file);
    this.#isTrying = false;
  }

  async #tryChanges(file: RunnerTestFile): Promise<void> {
    const test = nameOf(file.filepath);
    const ms = Math.round(performance.now() - this.#beganMs);
    const why = failureIn([file]);
    if (why !== undefined) return end({ kind: "broken", test, why });
    tell({ kind: "measured", test, reached: [...reached], ms });
    const { testTimeout, hookTimeout } = this.config;
    this.config.testTimeout = this.config.hookTimeout = Math.max(TIMEOUT_MIN_MS, ms * TIMEOUT_FACTOR);
    const numbers = leftFor(test, near, eventsOf(path));
    let failures = 0;
    for (const number of numbers) {
      const found = await this.#failure(file.filepath, number);
      failures += found === undefined ? 0 : 1;
      tell(found === undefined ? { kind: "unnoticed", test, number } : { kind: "noticed", test, number, why: found });
    }
    // A change may leave something behind, by which the test fails from then on.
    const after = failures === 0 ? undefined : await this.#failure(file.filepath);
    if (after !== undefined) end({ kind: "broken", test, why: after });
    Object.assign(this.config, { testTimeout, hookTimeout });
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
