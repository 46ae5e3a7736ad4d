import { MODULE_HEAD, PRELUDE_NAME } from "./prelude.ts";

export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const FRAME = /^\s+at (?:.*\()?([^()]+):(\d+):(\d+)\)?$/;

/**
 * The innermost position in a script that a stack names. `main`: name of the called script. All other scripts were
 * loaded by `require`, so their first line begins with `MODULE_HEAD`.
 */
export function positionIn(stack: string, main: string): Position | undefined {
  for (const frame of stack.split("\n")) {
    const [, file, line, column] = FRAME.exec(frame) ?? [];
    if (file === undefined || file.startsWith(PRELUDE_NAME)) continue;
    const found = { file, line: Number(line), column: Number(column) };
    const head = file !== main && found.line === 1 ? MODULE_HEAD.length : 0;
    return { ...found, column: Math.max(1, found.column - head) };
  }
  return undefined;
}
