import { AppError } from "../../../../common/errors.ts";
import { RULE_EXTENSION_MAX_BYTES, RULE_EXTENSION_ROWS_MAX } from "../../../../common/limits.ts";

/** Rows of an extension table by the value of their label `key`. Of several rows with one key, the last is used. */
export type ExtensionRows = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Control characters except for tabs and line ends. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

/**
 * Reads LTSV: each line is a row of `label:value` pairs separated by tabs. Blank lines are ignored.
 * `AppError("syntax")` that names the line, or `AppError("too_large")`.
 */
export function readExtension(text: string): ExtensionRows {
  if (Buffer.byteLength(text) > RULE_EXTENSION_MAX_BYTES)
    throw new AppError("too_large", `An extension table has at most ${RULE_EXTENSION_MAX_BYTES} bytes.`);
  if (CONTROL.test(text)) throw new AppError("syntax", "[Parser] The extension table contains a control character.");
  const rows = new Map<string, ReadonlyMap<string, string>>();
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    const row = readRow(line, at + 1);
    const key = row.get("key");
    if (key === undefined) throw new AppError("syntax", `[Parser] line ${at + 1}: the row has no label key.`);
    rows.set(key, row);
    if (rows.size > RULE_EXTENSION_ROWS_MAX)
      throw new AppError("too_large", `An extension table has at most ${RULE_EXTENSION_ROWS_MAX} rows.`);
  }
  return rows;
}

function readRow(line: string, number: number): ReadonlyMap<string, string> {
  const row = new Map<string, string>();
  for (const pair of line.split("\t")) {
    const colon = pair.indexOf(":");
    if (colon < 1)
      throw new AppError(
        "syntax",
        `[Parser] line ${number}: expected label:value but found: ${pair.slice(0, 100) || "nothing between two tabs"}`,
      );
    row.set(pair.slice(0, colon).trim(), pair.slice(colon + 1));
  }
  return row;
}
