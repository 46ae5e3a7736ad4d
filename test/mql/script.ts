import { readFile, writeFile } from "node:fs/promises";
import { expect } from "vitest";
import { isAppError } from "../../common/errors.ts";
import type { Row, Value } from "../../common/value.ts";
import { type Principal, ROLES } from "../../controller/areas/permissions/index.ts";
import type { Query } from "../../controller/areas/query/index.ts";
import { type Block, fencesOf, parseBlocks, splitAt } from "./blocks.ts";

/** Returns the answer to the text of a block, such as MQL or a search. */
type Ask = (who: Principal, text: string, values?: readonly Value[]) => Promise<readonly Row[]>;

/** Matches texts whose answers have an order: those that request one, and sample records. */
const ORDERED = /\border\s+by\b|^explain\b|\|\s*sort\b|\n> /i;

export const PRINCIPALS: Readonly<Record<string, Principal>> = {
  administrator: principal("administrator", "matrix", ROLES.administrator),
  viewer: principal("viewer", "matrix", ROLES.viewer),
  /** Owns some objects, and must not see two columns. */
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

/**
 * Runs a script over a query service on an empty database, and compares the answers. `UPDATE=1` writes them instead.
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

/** A line of EXPLAIN without the estimate, which differs between stores. */
function withoutEstimate(row: Row): Row {
  const { estimated, ...line } = row;
  return estimated !== undefined && "step" in row && "work" in row ? line : row;
}

/**
 * Runs the examples of a user page as one script, each kind of fence by its own function, and compares or writes the
 * answers like `runScript`. `as` applies until the end of its fence.
 */
export async function runPage(file: string, asks: Readonly<Record<string, Ask>>): Promise<void> {
  const page = await readFile(file, "utf8");
  const fences = fencesOf(page);
  expect(fences.length).toBeGreaterThan(0);
  let rest = page;
  let updated = "";
  for (const { kind, text, above } of fences) {
    if (!asks[kind]) throw new Error(`${file}:${above}: nobody runs an example of the kind "${kind}"`);
    for (const block of parseBlocks(text)) {
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

/** Rows without ORDER BY, or `sort` in a search, have no order, so they are sorted before the comparison. */
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

function principal(user: string, tenant: string, role: Pick<Principal, "grants" | "data">): Principal {
  return { tenant, ospace: `/${tenant}`, user, groups: [], grants: role.grants, data: role.data, traceparent: "" };
}
