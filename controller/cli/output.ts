import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";
import { outliveOutput, type OutputProcess } from "../../common/outputs.ts";

/** `EX_IOERR` of sysexits.h: the work was done, and its answer could not be written. */
const NOT_WRITTEN = 74;

interface Program extends OutputProcess {
  readonly stdout: NodeJS.WritableStream;
  exitCode?: number | string | null | undefined;
  on(event: "SIGHUP" | "exit", listener: () => void): unknown;
}

/**
 * The standard output of the command line. A command goes on when it cannot be written, and then says so and ends with
 * 74, unless it failed for another reason. A reader that closed its pipe, as `head` does, has what it wanted.
 */
export class Output {
  readonly #program: Program;
  #lost: Error | undefined;

  constructor(program: Program, note: (text: string) => void) {
    this.#program = program;
    outliveOutput(program, { isatty, closeSync, openSync }, (error) => (this.#lost ??= error));
    program.on("exit", () => {
      if (this.#lost === undefined || isReaderGone(this.#lost)) return;
      note(`odp: the output could not be written: ${this.#lost.message}`);
      program.exitCode ||= NOT_WRITTEN;
    });
  }

  /**
   * Waits for a slow reader. After a failure it writes nothing and waits for nothing. Returns false after a failure, so
   * that the caller need not produce the rest.
   */
  async write(text: string | Uint8Array): Promise<boolean> {
    const { stdout } = this.#program;
    if (this.#lost !== undefined) return false;
    // A failure counts already by the listener of the constructor.
    if (!stdout.write(text)) await once(stdout, "drain").catch(() => undefined);
    return this.#lost === undefined;
  }
}

function isReaderGone(error: Error): boolean {
  return "code" in error && error.code === "EPIPE";
}
