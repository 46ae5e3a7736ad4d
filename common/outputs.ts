interface OutputStream {
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A part of Node's `process`. */
export interface OutputProcess {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  on(event: "SIGHUP" | "exit", listener: () => void): unknown;
}

/** `isatty` of `node:tty`, and the calls of `node:fs` that replace a terminal by another file. */
export interface TerminalCalls {
  isatty(descriptor: number): boolean;
  closeSync(descriptor: number): void;
  openSync(path: string, flags: string): number;
}

const STANDARD_DESCRIPTORS = [0, 1, 2];

/**
 * Keeps a program running when its output cannot be written: to a file on a full disk, a pipe without a reader, or a
 * closed terminal. Otherwise the stream's error or the terminal's signal would end the program. `onLost` gets each
 * failure of the standard output.
 */
export function outliveOutput(
  program: OutputProcess,
  calls: TerminalCalls,
  onLost: (error: Error) => void = () => undefined,
): void {
  const terminals = STANDARD_DESCRIPTORS.filter((descriptor) => calls.isatty(descriptor));
  program.stdout.on("error", onLost);
  program.stderr.on("error", () => undefined);
  program.on("SIGHUP", () => undefined);
  program.on("exit", () => releaseClosed(terminals, calls));
}

/**
 * Replaces closed terminals. At its exit Node resets the mode of terminals, and aborts if one is closed. Call it only
 * at the exit: earlier, another thread could open a file between the two calls and get the descriptor.
 */
function releaseClosed(terminals: readonly number[], { isatty, closeSync, openSync }: TerminalCalls): void {
  for (const descriptor of terminals) {
    if (isatty(descriptor)) continue;
    closeSync(descriptor);
    // Gets the lowest free descriptor: the one that was just closed.
    openSync("/dev/null", "r+");
  }
}
