import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { freePorts, pauseDaemon, resumeDaemon } from "../../../deploy/local/process.ts";

/**
 * Real processes for end-to-end tests: started from the built bundles, ended by SIGKILL. Their output is kept for
 * failure messages.
 */

const START_DEADLINE_MS = 240_000;
const EXIT_DEADLINE_MS = 20_000;
const POLL_MS = 50;
const OUTPUT_KEPT_CHARACTERS = 200_000;

export interface ProgramOptions {
  /** Another user than the one who runs the tests, who must be the superuser then. */
  readonly uid?: number;
  readonly gid?: number;
  readonly cwd?: string;
  /** Program of another version of Node. */
  readonly node?: string;
  readonly flags?: readonly string[];
  /** Absent: pipes that `output` collects. */
  readonly stdio?: readonly ["ignore", number, number];
}

export class Program {
  readonly name: string;
  readonly #file: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #output = "";

  constructor(
    name: string,
    file: string,
    environment: Readonly<Record<string, string>>,
    { node = process.execPath, flags = [], ...options }: ProgramOptions = {},
  ) {
    this.name = name;
    this.#file = file;
    const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...environment };
    this.#child = spawn(node, [...flags, file], {
      env,
      ...options,
      stdio: options.stdio ? [...options.stdio] : ["ignore", "pipe", "pipe"],
    });
    this.#exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on(
        "data",
        (chunk: Buffer) => (this.#output = (this.#output + chunk.toString()).slice(-OUTPUT_KEPT_CHARACTERS)),
      );
    }
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** From now on its pipes have no reader. */
  stopReading(): void {
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
  }

  /** Waits until the output matches; fails with the output if the process ends first. */
  async printed(expected: RegExp, deadlineMs = START_DEADLINE_MS): Promise<RegExpExecArray> {
    return eventually(`${this.name} prints ${expected}`, deadlineMs, () => {
      const match = expected.exec(this.#output);
      if (!match && !this.running)
        throw new Error(`${this.name} ended before it printed ${expected}:\n${this.#output}`);
      return match ?? undefined;
    });
  }

  /** Does the work while all threads of the process are stopped. */
  async standing<T>(work: () => Promise<T>): Promise<T> {
    const daemon = { name: this.name, pid: this.pid, mark: this.#file, logFile: "" };
    await pauseDaemon(daemon);
    try {
      return await work();
    } finally {
      await resumeDaemon(daemon);
    }
  }

  /** Sends a signal and waits until it has ended. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.running) this.#child.kill(signal);
    const late = pause(EXIT_DEADLINE_MS, "late", { ref: false });
    if ((await Promise.race([this.#exited, late])) === "late")
      throw new Error(`${this.name} does not end:\n${this.#output}`);
  }
}

/** Repeats the call until it returns a value. For events in other processes that cannot be awaited. */
export async function eventually<T>(
  what: string,
  deadlineMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined) return answer;
    if (performance.now() > end) throw new Error(`Not within ${deadlineMs} ms: ${what}`);
    await pause(POLL_MS);
  }
}

/** A port without a listener, reserved as long as this process runs. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
