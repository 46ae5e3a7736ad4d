import { AppError } from "../../common/errors.ts";

const LINE = /^odp-key-1:([0-9A-Za-z+/]{43}=)$/;

/**
 * Keys as a text: one `odp-key-1:<base64 of 32 bytes>` per line, the first seals, older ones below it still open. Empty
 * lines and lines that begin with `#` do not count. `source` begins the sentence of the error, which never tells the
 * text.
 */
export function parseKeys(text: string, source: string): readonly Uint8Array[] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const keys = lines.map((line) => LINE.exec(line)?.[1]);
  if (keys.length === 0 || keys.includes(undefined))
    throw new AppError("invalid", `${source} must have lines of the form odp-key-1:<base64 of 32 bytes>.`);
  return keys.map((key) => Buffer.from(key ?? "", "base64"));
}
