import type { Value } from "../../common/value.ts";

/**
 * One block of a script: the caller, the statement and the expected answer. README.md in this folder has the format.
 */
export interface Block {
  /** Text of the block up to and including the line of dashes, unchanged. */
  readonly head: string;
  readonly principal: string;
  readonly text: string;
  /** Values for each `?` of the text. */
  readonly values?: readonly Value[];
  readonly expected: string;
  readonly line: number;
}

const DASHES = "----";

export function parseBlocks(source: string): readonly Block[] {
  const blocks: Block[] = [];
  let who = "administrator";
  let line = 1;
  for (const part of source.split(/\n{2,}(?=\S)/)) {
    const [head = "", expected] = splitAt(part, `\n${DASHES}`);
    const lines = head.split("\n").filter((one) => !/^%(?!\{)/.test(one));
    const named = /^as (\w+)$/.exec(lines[0] ?? "");
    if (named?.[1]) who = named[1];
    if (named) lines.shift();
    const given = /^values (\[.*\])$/.exec(lines[0] ?? "")?.[1];
    if (given) lines.shift();
    const text = lines.join("\n");
    const values = given === undefined ? {} : { values: JSON.parse(given) as readonly Value[] };
    if (expected !== undefined)
      blocks.push({ head: `${head}\n${DASHES}`, principal: who, text, ...values, expected: expected.trim(), line });
    else if (text.trim() !== "") throw new Error(`line ${line}: a statement without an expectation`);
    line += part.split("\n").length + 1;
  }
  return blocks;
}

/** Shell commands are for readers with a controller; all other fences of a page are examples that are run. */
const NOT_RUN: ReadonlySet<string> = new Set(["sh"]);

interface Fence {
  readonly kind: string;
  readonly text: string;
  /** Number of lines above its first line. */
  readonly above: number;
}

/** The fences of a page that are run. */
export function fencesOf(page: string): readonly Fence[] {
  return [...page.matchAll(/^```(\w*)\n(.*?)\n```$/gms)]
    .map(({ 1: kind = "", 2: text = "", index }) => {
      return { kind, text, above: page.slice(0, index).split("\n").length };
    })
    .filter(({ kind }) => !NOT_RUN.has(kind));
}

export function splitAt(text: string, mark: string): readonly [string, string | undefined] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + mark.length)];
}
