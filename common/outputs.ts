interface OutputStream {
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A part of Node's `process`. */
export interface OutputProcess {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  on(event: "SIGHUP", listener: () => void): unknown;
}

/** `isatty` of `node:tty`, and the calls of `node:fs` that put another file in the place of a terminal. */
export interface TerminalCalls {
  isatty(descriptor: number): boolean;
  closeSync(descriptor: number): void;
  openSync(path: string, flags: string): number;
}

const STANDARD_DESCRIPTORS = [0, 1, 2];

/**
 * Keeps a program running when its output cannot be written: a file on a full disk, a pipe without a reader, a terminal
 * that was closed. Node would end it by the stream's error or by the terminal's signal. `onLost` gets each failure of
 * the standard output.
 */
export function outliveOutput(
  program: OutputProcess,
  calls: TerminalCalls,
  onLost: (error: Error) => void = () => undefined,
): void {
  const terminals = new Set(STANDARD_DESCRIPTORS.filter((descriptor) => calls.isatty(descriptor)));
  const release = (): void => releaseClosed(terminals, calls);
  program.stdout.on("error", (error) => {
    release();
    onLost(error);
  });
  program.stderr.on("error", release);
  program.on("SIGHUP", release);
}

/** Node puts terminals back into their mode when it exits, and aborts where one was closed. */
function releaseClosed(terminals: Set<number>, { isatty, closeSync, openSync }: TerminalCalls): void {
  for (const descriptor of terminals) {
    if (isatty(descriptor)) continue;
    terminals.delete(descriptor);
    closeSync(descriptor);
    // Gets the lowest free number: the one that was just closed.
    openSync("/dev/null", "r+");
  }
}
