import { readFile, stat } from "node:fs/promises";
import { AppError } from "../../common/errors.ts";
import { CLI_INPUT_MAX_BYTES } from "../../common/limits.ts";

/** Content of a file, or of the standard input for `-`. `AppError("too_large")` if it has more than `CLI_INPUT_MAX_BYTES`. */
export async function inputOf(path: string, stdin: NodeJS.ReadableStream): Promise<Buffer> {
  if (path !== "-") {
    const { size } = await stat(path);
    if (size > CLI_INPUT_MAX_BYTES) throw tooLarge(path);
    return readFile(path);
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stdin) {
    const data = Buffer.from(piece);
    if ((bytes += data.length) > CLI_INPUT_MAX_BYTES) throw tooLarge("The standard input");
    pieces.push(data);
  }
  return Buffer.concat(pieces);
}

function tooLarge(what: string): AppError {
  return new AppError("too_large", `${what} has more than ${CLI_INPUT_MAX_BYTES} bytes.`);
}
