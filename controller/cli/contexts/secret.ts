import { createInterface } from "node:readline";
import { Writable, type Readable } from "node:stream";
import { AppError } from "../../../common/errors.ts";
import { CLI_SECRET_MAX_BYTES } from "../../../common/limits.ts";
import { UsageError } from "../declared/usage.ts";

export interface SecretOptions {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: { write(text: string): unknown };
  readonly signal: AbortSignal;
}

/**
 * Reads one line that is not shown: with the question on a terminal, otherwise as the next line of the standard input.
 * `UsageError` if there is none.
 */
export async function secretLine(question: string, options: SecretOptions): Promise<string> {
  const line = await (options.stdin.isTTY === true ? typedLine(question, options) : pipedLine(options));
  if (options.signal.aborted) throw ended();
  if (line === undefined || line === "") throw new UsageError("Nothing was given.");
  if (Buffer.byteLength(line) > CLI_SECRET_MAX_BYTES)
    throw new UsageError(`That is longer than ${CLI_SECRET_MAX_BYTES} bytes.`);
  return line;
}

function ended(): AppError {
  return new AppError("cancelled", "Ended by a signal.");
}

/** The next line of a terminal; `undefined` at its end. */
async function typedLine(question: string, { stdin, stderr, signal }: SecretOptions): Promise<string | undefined> {
  stderr.write(question);
  // The terminal shows typed characters only through this output.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output, terminal: true, signal });
  let isEnded = false;
  lines.on("SIGINT", () => {
    isEnded = true;
    lines.close();
  });
  try {
    const line = await new Promise<string | undefined>((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(undefined));
    });
    if (isEnded) throw ended();
    return line;
  } finally {
    lines.close();
    stderr.write("\n");
  }
}

const NEWLINE = 0x0a;

/** The next line of a pipe or file; `undefined` at its end. What follows the line stays for the next question. */
function pipedLine({ stdin, signal }: SecretOptions): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const settle = (done: () => void) => () => {
      stdin.pause();
      stdin.off("data", onData).off("end", onEnd).off("error", onError);
      signal.removeEventListener("abort", onEnd);
      done();
    };
    const onEnd = settle(() => resolve(bytes === 0 ? undefined : lineOf(pieces)));
    const onError = (error: Error): void => settle(() => reject(error))();
    const onData = (piece: string | Uint8Array): void => {
      const data = Buffer.from(piece);
      const at = data.indexOf(NEWLINE);
      pieces.push(at === -1 ? data : data.subarray(0, at));
      bytes += data.length;
      if (at === -1 && bytes <= CLI_SECRET_MAX_BYTES) return;
      onEnd();
      if (at !== -1 && at + 1 < data.length) stdin.unshift(data.subarray(at + 1));
    };
    // An ended stream ends no second time.
    if (signal.aborted || (stdin as Readable).readableEnded) return resolve(undefined);
    signal.addEventListener("abort", onEnd, { once: true });
    stdin.on("data", onData).on("end", onEnd).on("error", onError).resume();
  });
}

function lineOf(pieces: readonly Buffer[]): string {
  return Buffer.concat(pieces).toString("utf8").replace(/\r$/, "");
}
