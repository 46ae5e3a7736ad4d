import { readFile } from "node:fs/promises";

/** A line `$ call [-X <method>] "$odp<url>"<more>` of a page for users, and the line below it. */
export interface CallExample {
  readonly line: string;
  readonly method: string | undefined;
  /** Empty for a line of another form. */
  readonly url: string;
  readonly more: string;
  readonly answer: string;
}

const CALL = /^\$ (?:key=\$\()?call(?: -X (\w+))? "\$odp([^"]*)"(.*)$/;

/** The examples of a page, in their order: its lines that begin with `$ `. */
export async function callExamples(page: string): Promise<readonly CallExample[]> {
  const lines = (await readFile(page, "utf8")).split("\n");
  return lines.flatMap((line, at) => {
    if (!line.startsWith("$ ")) return [];
    const [, method, url = "", more = ""] = CALL.exec(line) ?? [];
    return [{ line, method, url, more, answer: lines[at + 1] ?? "" }];
  });
}
