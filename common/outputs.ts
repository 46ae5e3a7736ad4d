interface OutputStream {
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A part of Node's `process`. */
export interface OutputProcess {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  on(event: "SIGHUP", listener: () => void): unknown;
}

/**
 * Keeps a program running when its output cannot be written: a file on a full disk, a pipe without a reader, a terminal
 * that was closed. Node would end it by the stream's error or by the terminal's signal. `onLost` gets each failure of
 * the standard output.
 */
export function outliveOutput(program: OutputProcess, onLost: (error: Error) => void = () => undefined): void {
  program.stdout.on("error", onLost);
  program.stderr.on("error", () => undefined);
  program.on("SIGHUP", () => undefined);
}
