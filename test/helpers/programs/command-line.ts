import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { runCommandLine } from "../../../controller/cli/command-line.ts";
import { ContextFile, contextsPath } from "../../../controller/cli/contexts/file.ts";
import { Transport } from "../../../controller/cli/transport/transport.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock } from "../time/clock.ts";

export interface Ran {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Columns of a terminal; absent: the output is a pipe. */
  readonly columns?: number;
  /** Lines of the terminal; default: 24. */
  readonly rows?: number;
  readonly pager?: (command: string, text: string) => Promise<boolean>;
  /** Time zone of the machine. */
  readonly zoneName?: string;
  readonly clock?: Clock;
  /** Sends SIGINT once this is true of the output and of the errors so far. */
  readonly interruptAt?: (out: string, err: string) => boolean;
}

/** The command line in this process, with a file of contexts of its own. */
export class TestCommandLine implements AsyncDisposable {
  readonly folder: string;
  readonly #transport = new Transport(realClock);

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<TestCommandLine> {
    return new TestCommandLine(await mkdtemp(join(tmpdir(), "odp-command-line-")));
  }

  get contexts(): ContextFile {
    return new ContextFile(contextsPath({ ODP_CONFIG_DIR: this.folder }, ""), process.platform);
  }

  async run(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const {
      environment = {},
      stdin = "",
      columns,
      rows = 24,
      pager,
      zoneName = "UTC",
      clock = realClock,
      interruptAt = () => false,
    } = options;
    let [out, err] = ["", ""];
    const onInterrupt = new Set<() => void>();
    const told = (): void => {
      if (interruptAt(out, err)) for (const listener of [...onInterrupt]) listener();
    };
    const terminal = columns === undefined ? {} : { isTTY: true, columns, rows };
    const code = await runCommandLine(words, {
      ...{ version: "1.2.3", environment, contexts: this.contexts, platform: process.platform },
      output: {
        write(data) {
          out += Buffer.from(data).toString();
          told();
          return Promise.resolve(true);
        },
      },
      stdin: Readable.from(stdin === "" ? [] : [stdin]),
      stdout: { ...terminal, write: (data) => ((out += Buffer.from(data).toString()), told()) },
      stderr: { write: (data) => ((err += Buffer.from(data).toString()), told()) },
      isReaderGone: () => Promise.resolve(false),
      on: (signal, listener) => signal === "SIGINT" && onInterrupt.add(listener),
      off: (_signal, listener) => onInterrupt.delete(listener),
      clock,
      random: { next: () => 0.5 },
      pager,
      zoneName: () => zoneName,
      fetch: this.#transport.fetch,
    });
    return { out, err, code };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
