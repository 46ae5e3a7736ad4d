import { createInterface } from "node:readline";
import { Writable } from "node:stream";
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
export async function secretLine(question: string, { stdin, stderr, signal }: SecretOptions): Promise<string> {
  const isTerminal = stdin.isTTY === true;
  if (isTerminal) stderr.write(question);
  // The terminal shows typed characters only through this output.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output, terminal: isTerminal, signal });
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
    if (isEnded || signal.aborted) throw new AppError("cancelled", "Ended by a signal.");
    if (line === undefined || line === "") throw new UsageError("Nothing was given.");
    if (Buffer.byteLength(line) > CLI_SECRET_MAX_BYTES)
      throw new UsageError(`That is longer than ${CLI_SECRET_MAX_BYTES} bytes.`);
    return line;
  } finally {
    lines.close();
    if (isTerminal) stderr.write("\n");
  }
}
