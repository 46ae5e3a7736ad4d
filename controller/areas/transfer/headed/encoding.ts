import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { TextDecoder } from "node:util";
import { AppError } from "../../../../common/errors.ts";

const MARKS: readonly (readonly [encoding: string, bytes: readonly number[]])[] = [
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
];
const EXAMPLES = "such as windows-1252, gbk or utf-16le";

export async function firstBytes(path: string, count: number): Promise<Uint8Array> {
  await using file = await open(path);
  const { bytesRead, buffer } = await file.read(Buffer.alloc(count), 0, count, 0);
  return buffer.subarray(0, bytesRead);
}

/**
 * The encoding of a text by its standard name: the one that the request names, else UTF-8. A mark at the beginning of
 * the file that says another one is an error.
 */
export async function encodingOf(path: string, given: string | undefined): Promise<string> {
  const encoding = given === undefined ? "utf-8" : decoderOf(given).encoding;
  const bytes = await firstBytes(path, 3);
  const [marked] = MARKS.find(([, mark]) => mark.every((byte, at) => bytes[at] === byte)) ?? [];
  if (marked === undefined || marked === encoding) return encoding;
  throw new AppError(
    "invalid",
    `[Format] The file begins with the mark of ${marked}, and is read as ${encoding}: name it by encoding=${marked}.`,
  );
}

/** The text of a file without its mark. Bytes that are no text of the encoding are an error, never replaced. */
export async function* decodedFile(path: string, encoding: string): AsyncGenerator<string> {
  const decoder = decoderOf(encoding);
  let read = 0;
  const decode = (piece?: Uint8Array): string => {
    try {
      return decoder.decode(piece, { stream: piece !== undefined });
    } catch (error) {
      throw new AppError(
        "invalid",
        `[Format] The file is no ${encoding} text after its first ${read} bytes: name its encoding by encoding=, ${EXAMPLES}.`,
        { cause: error },
      );
    }
  };
  for await (const piece of createReadStream(path) as AsyncIterable<Uint8Array>) {
    yield decode(piece);
    read += piece.length;
  }
  yield decode();
}

function decoderOf(name: string): TextDecoder {
  try {
    return new TextDecoder(name, { fatal: true });
  } catch (error) {
    throw new AppError(
      "invalid",
      `[Valid] encoding=${JSON.stringify(name)}: there is none of that name, ${EXAMPLES}.`,
      {
        cause: error,
      },
    );
  }
}
