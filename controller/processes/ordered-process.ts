import { AppError } from "../../common/errors.ts";
import { killProcess } from "./kill.ts";
import type { OnOutput, Order, ProcessEnd, Report, StartedProcess } from "./types.ts";

export interface OrderedProcessOptions {
  readonly id: number;
  readonly isGroup: boolean;
  readonly onOutput: OnOutput;
  readonly order: (order: Order) => void;
}

/** The controller's view of one process that the spawner starts. */
export class OrderedProcess implements StartedProcess {
  readonly ended: Promise<ProcessEnd>;
  readonly drained: Promise<ProcessEnd>;
  readonly #options: OrderedProcessOptions;
  readonly #resolvers = { end: (_: ProcessEnd): void => undefined, drain: (): void => undefined };
  #fail = (_: AppError): void => undefined;
  #pid: number | undefined;
  #isOver = false;
  #isLost = false;

  constructor(options: OrderedProcessOptions) {
    this.#options = options;
    this.ended = new Promise((resolve, reject) => {
      this.#resolvers.end = resolve;
      this.#fail = reject;
    });
    const closed = new Promise<void>((resolve) => (this.#resolvers.drain = resolve));
    this.drained = this.ended.then(async (end) => {
      await closed;
      return end;
    });
    // A caller may wait for only one of the two promises.
    for (const promise of [this.ended, this.drained]) promise.catch(() => undefined);
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#isOver) return;
    if (!this.#isLost) this.#options.order({ kind: "kill", id: this.#options.id, signal });
    else if (this.#pid !== undefined) killProcess(this.#pid, signal, this.#options.isGroup);
  }

  hear(report: Report): void {
    switch (report.kind) {
      case "started":
        this.#pid = report.pid;
        return;
      case "failed":
        this.#isOver = true;
        return this.#fail(new AppError("unavailable", `The process could not be started: ${report.message}.`));
      case "output":
        return void this.#take(report);
      case "ended":
        this.#isOver = !this.#options.isGroup;
        return this.#resolvers.end(report.end);
      case "closed":
        this.#isOver = true;
        return this.#resolvers.drain();
    }
  }

  /**
   * Call it when the spawner has ended. Sends SIGTERM to a process that still runs, because its end is not reported.
   */
  lose(error: AppError): void {
    this.#isLost = true;
    this.kill("SIGTERM");
    this.#fail(error);
    this.#resolvers.drain();
  }

  /** If `onOutput` fails, the piece is dropped, and the process continues. */
  async #take({ bytes, pipe, id }: Report & { readonly kind: "output" }): Promise<void> {
    try {
      await this.#options.onOutput(bytes);
    } catch {
      // The reader must handle its own errors.
    }
    this.#options.order({ kind: "taken", id, pipe });
  }
}
