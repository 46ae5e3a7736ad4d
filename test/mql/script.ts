import { readFile, writeFile } from "node:fs/promises";
import { expect } from "vitest";
import { isAppError } from "../../common/errors.ts";
import type { Row, Value } from "../../common/value.ts";
import { type Principal, ROLES } from "../../controller/areas/permissions/index.ts";
import type { Query } from "../../controller/areas/query/index.ts";

/**
 * One block of a script: the caller, the question, and what is expected; the format is in README.md beside this file.
 */
export interface Block {
  /** Everything up to and with the line of dashes, as it stands in the file. */
  readonly head: string;
  readonly principal: string;
  readonly text: string;
  /** For its `?`. */
  readonly values?: readonly Value[];
  readonly expected: string;
  readonly line: number;
}

/** Answers the text of a block, such as an MQL or a search. */
type Ask = (who: Principal, text: string, values?: readonly Value[]) => Promise<readonly Row[]>;

const DASHES = "----";
/** Those that ask for an order, and sample records, which have one. */
const ORDERED = /\border\s+by\b|^explain\b|\|\s*sort\b|\n> /i;

export const PRINCIPALS: Readonly<Record<string, Principal>> = {
  administrator: principal("administrator", "matrix", ROLES.administrator),
  viewer: principal("viewer", "matrix", ROLES.viewer),
  /** Owns some objects, and must not know of two columns. */
  bob: principal("bob", "matrix", {
    grants: ["*:read"],
    data: [
      { class: "/matrix", access: "read" },
      { class: "/matrix/ent", access: "write", where: "owner = 'bob'", hidden: ["secret", "salary"] },
      { class: "/matrix/vault", access: "none" },
    ],
  }),
  second: principal("administrator", "second", ROLES.administrator),
};

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

/**
 * Runs a script over a query service that knows an empty database, and compares; `UPDATE=1` writes what came instead.
 */
export async function runScript(file: string, query: Query): Promise<void> {
  const source = await readFile(file, "utf8");
  const actual: string[] = [];
  for (const block of parseBlocks(source)) {
    const answer = await answerOf(block, async (...asked) => (await query.rows(...asked)).map(withoutEstimate));
    if (process.env.UPDATE === "1") actual.push(`${block.head}\n${answer}`);
    else expectAnswer(block, answer, file);
  }
  if (process.env.UPDATE === "1") await writeFile(file, `${actual.join("\n\n")}\n`);
}

/** A line of EXPLAIN without what each store estimates in its own way. */
function withoutEstimate(row: Row): Row {
  const { estimated, ...line } = row;
  return estimated !== undefined && "step" in row && "work" in row ? line : row;
}

/**
 * Runs the examples of a page for users, the fences of these kinds, as one script, and compares or writes likewise. `as`
 * holds to the end of its fence.
 */
export async function runPage(file: string, asks: Readonly<Record<string, Ask>>): Promise<void> {
  const page = await readFile(file, "utf8");
  const fences = [...page.matchAll(/^```(\w+)\n(.*?)\n```$/gms)].filter(([, kind = ""]) => Object.hasOwn(asks, kind));
  expect(fences.length).toBeGreaterThan(0);
  let rest = page;
  let updated = "";
  for (const { 1: kind = "", 2: example = "", index } of fences) {
    const above = page.slice(0, index).split("\n").length;
    for (const block of parseBlocks(example)) {
      const answer = await answerOf(block, asks[kind]);
      if (process.env.UPDATE !== "1") expectAnswer({ ...block, line: above + block.line }, answer, file);
      const [before, behind = ""] = splitAt(rest, `${block.head}\n${block.expected}`.trimEnd());
      updated += `${before}${block.head}\n${answer}`;
      rest = behind;
    }
  }
  if (process.env.UPDATE === "1") await writeFile(file, updated + rest);
}

function expectAnswer(block: Block, answer: string, file: string): void {
  expect(`${block.text}\n${answer}`, `${file}:${block.line}`).toBe(`${block.text}\n${block.expected}`);
}

async function answerOf(block: Block, ask: Ask | undefined): Promise<string> {
  const who = PRINCIPALS[block.principal];
  if (!who || !ask) throw new Error(`nobody is called ${block.principal}`);
  try {
    const rows = await ask(who, block.text, block.values);
    return block.expected === "ok" ? "ok" : printRows(rows, ORDERED.test(block.text));
  } catch (error) {
    if (!isAppError(error)) throw error;
    return `error ${error.code}: ${error.message}`;
  }
}

/** Rows without ORDER BY, or `sort` in a search, have no order, so that they are compared sorted. */
function printRows(rows: readonly Row[], ordered: boolean): string {
  if (rows.length === 0) return "no rows";
  const lines = rows.flatMap((row) => (isMap(row.graph) ? graphLines(row.graph) : [JSON.stringify(row)]));
  return (ordered ? lines : lines.sort()).join("\n");
}

/** One line for each object, edge and path. */
function graphLines({ diff, nodes, edges, paths, pathtags }: Members): readonly string[] {
  const lines: string[] = [...linesOf("node", nodes), ...linesOf("edge", edges), ...linesOf("path", paths)];
  if (Array.isArray(pathtags) && pathtags.length > 0) lines.push(`tags ${JSON.stringify(pathtags)}`);
  for (const [name, change] of Object.entries(isMap(diff) ? diff : {})) {
    if (isMap(change)) lines.push(...linesOf(`${name} node`, change.nodes), ...linesOf(`${name} edge`, change.edges));
  }
  return lines.length > 0 ? lines : ["nothing"];
}

type Members = Readonly<Record<string, Value>>;

function isMap(value: Value | undefined): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function linesOf(kind: string, items: Value | undefined): readonly string[] {
  return (Array.isArray(items) ? (items as readonly Value[]) : []).map((item) => `${kind} ${JSON.stringify(item)}`);
}

function splitAt(text: string, mark: string): readonly [string, string | undefined] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + mark.length)];
}

function principal(user: string, tenant: string, role: Pick<Principal, "grants" | "data">): Principal {
  return { tenant, ospace: `/${tenant}`, user, groups: [], grants: role.grants, data: role.data, traceparent: "" };
}
