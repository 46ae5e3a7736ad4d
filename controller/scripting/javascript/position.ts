import { MODULE_HEAD, PRELUDE_NAME } from "./prelude.ts";

export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const FRAME = /^\s+at (?:.*\()?([^()]+):(\d+):(\d+)\)?$/;

/** The script that was called. */
interface Main {
  readonly name: string;
  readonly source: string;
}

/** The compiled texts of required files by their names, each with `MODULE_HEAD`. */
export type RequiredTexts = ReadonlyMap<string, string>;

/**
 * The innermost position in a script that a stack names. All scripts but the main one were loaded by `require`, so
 * their first line begins with `MODULE_HEAD`. A column counts UTF-16 units. Without the text of a required file it
 * counts bytes of UTF-8, as the machine does.
 */
export function positionIn(stack: string, main: Main, required: RequiredTexts): Position | undefined {
  for (const frame of stack.split("\n")) {
    const [, file, line, column] = FRAME.exec(frame) ?? [];
    if (file === undefined || file.startsWith(PRELUDE_NAME)) continue;
    const found = { file, line: Number(line), column: Number(column) };
    if (file === main.name) return { ...found, column: unitColumn(main.source, found) };
    const text = required.get(file);
    const units = text === undefined ? found.column : unitColumn(text, found);
    const head = found.line === 1 ? MODULE_HEAD.length : 0;
    return { ...found, column: Math.max(1, units - head) };
  }
  return undefined;
}

/** The column in UTF-16 units of a place whose column counts bytes of UTF-8. */
function unitColumn(source: string, { line, column }: Pick<Position, "line" | "column">): number {
  let start = 0;
  for (let left = line; left > 1; left--) {
    const end = source.indexOf("\n", start);
    // A script can make up a stack.
    if (end === -1) return column;
    start = end + 1;
  }
  // No more units than bytes come before the column.
  const bytes = Buffer.from(source.slice(start, start + column - 1));
  return bytes.subarray(0, column - 1).toString().length + 1;
}
