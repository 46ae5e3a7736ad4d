import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { AppError } from "../../common/errors.ts";
import { SPAWNER_HEAP_MAX_BYTES } from "../../common/limits.ts";
import { MIB } from "../../common/limits/units.ts";
import { OrderedProcess } from "./ordered-process.ts";
import type { OnOutput, Order, Processes, ProcessSpec, Report, StartedProcess } from "./types.ts";

/**
 * A small process that starts every other process of the controller. The library of the stores opens files that a new
 * process would inherit, and Node cannot prevent that. The spawner has none of these files, because it is started
 * before a store is opened. Start it first.
 */
export class Spawner implements Processes {
  /** Resolves when the spawner has ended without `close`. Then no process can be started any more. */
  readonly lost: Promise<void>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #processes = new Map<number, OrderedProcess>();
  #started = 0;
  #isClosed = false;

  /** `file` is the spawner's main file. */
  constructor(file: URL | string) {
    this.#child = fork(typeof file === "string" ? file : fileURLToPath(file), [], {
      // Environment variables may contain secrets; the spawner needs none.
      env: {},
      execArgv: [`--max-old-space-size=${SPAWNER_HEAP_MAX_BYTES / MIB}`, "--max-semi-space-size=1", "--v8-pool-size=1"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#child.on("message", (report: Report) => this.#hear(report));
    this.#exited = new Promise<void>((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.once("error", () => resolve());
    }).then(() => this.#forgetAll());
    this.lost = new Promise((resolve) => {
      void this.#exited.then(() => this.#isClosed || resolve());
    });
    // The spawner must not keep the controller's process alive.
    this.#child.unref();
    this.#child.channel?.unref();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  start(spec: ProcessSpec, onOutput: OnOutput): StartedProcess {
    const id = ++this.#started;
    const started = new OrderedProcess({ id, isGroup: spec.isGroup, onOutput, order: (order) => this.#order(order) });
    if (!this.#child.connected) {
      started.lose(spawnerEnded());
      return started;
    }
    this.#processes.set(id, started);
    this.#order({ kind: "start", id, spec });
    return started;
  }

  /** Ends the spawner, which ends the processes that still run. Resolves when the spawner has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }

  #order(order: Order): boolean {
    return this.#child.connected && this.#child.send(order, () => undefined);
  }

  #hear(report: Report): void {
    this.#processes.get(report.id)?.hear(report);
    if (report.kind === "failed" || report.kind === "closed") this.#processes.delete(report.id);
  }

  #forgetAll(): void {
    for (const one of this.#processes.values()) one.lose(spawnerEnded());
    this.#processes.clear();
  }
}

function spawnerEnded(): AppError {
  return new AppError("unavailable", "The process that starts all others has ended; the controller must start again.");
}
