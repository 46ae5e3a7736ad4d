import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { encodingGiven, MARK_MAX_BYTES, type Encoding } from "../../../../common/text/encodings.ts";
import { refusing, requireMarkOf, TextStream } from "../../../../common/text/text-stream.ts";

const SUBJECT = "[Format] The file";

export async function firstBytes(path: string, count: number): Promise<Uint8Array> {
  await using file = await open(path);
  const { bytesRead, buffer } = await file.read(Buffer.alloc(count), 0, count, 0);
  return buffer.subarray(0, bytesRead);
}

/** The encoding that the request names, or UTF-8. Throws if the file's byte order mark stands for another one. */
export async function encodingOf(path: string, given: string | undefined): Promise<Encoding> {
  const encoding = encodingGiven(given, "[Valid] encoding");
  requireMarkOf(await firstBytes(path, MARK_MAX_BYTES), encoding, SUBJECT);
  return encoding;
}

/** The text of a file, without its byte order mark. Invalid bytes are an error; they are not replaced. */
export async function* decodedFile(path: string, encoding: Encoding): AsyncGenerator<string> {
  const text = new TextStream(encoding, { refuse: refusing(SUBJECT) });
  for await (const piece of createReadStream(path) as AsyncIterable<Uint8Array>) yield text.take(piece);
  yield text.end();
}
