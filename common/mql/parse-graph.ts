import { MQL_GRAPH_NAMES_MAX } from "../limits.ts";
import type { Chain, GraphNode, GraphStep, Match, PathMode } from "./ast.ts";
import { parseAsOf, parseWhere } from "./parse-select.ts";
import { parseCount, parseValue } from "./parse-value.ts";
import { type ListBound, listOf, type TokenReader } from "./reader.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Tail = Mutable<Pick<Match, "where" | "pathMode" | "pathTags" | "returns" | "until" | "diff" | "asOf">>;

const PATH_MODES: ReadonlyMap<string, PathMode> = new Map([
  ["SHORT", "short"],
  ["LONG", "long"],
  ["ALL", "all"],
  ["DETAIL", "detail"],
  ["BACK", "back"],
  ["PATH", "any"],
]);
const NAMES: ListBound = { most: MQL_GRAPH_NAMES_MAX, of: "names in one list", limit: "MQL_GRAPH_NAMES_MAX" };
const EDGE_BEGINS = ["-", "->", "<-", "<--", "<"];

/** `MATCH (…) -[…]-> (…) … [UNION (…) …]` and its clauses in any order. Path options may also follow MATCH directly. */
export function parseMatch(reader: TokenReader): Match {
  const start = reader.token.start;
  reader.expect("MATCH");
  const tail: Tail = {
    where: undefined,
    pathMode: undefined,
    pathTags: [],
    returns: [],
    until: undefined,
    diff: undefined,
    asOf: undefined,
  };
  readPath(reader, tail);
  const chains = [chain(reader)];
  while (reader.accept("UNION")) {
    reader.accept("MATCH");
    chains.push(chain(reader));
  }
  while (readTail(reader, tail));
  return { kind: "match", chains, ...tail, span: reader.spanFrom(start) };
}

function readTail(reader: TokenReader, tail: Tail): boolean {
  if (readPath(reader, tail)) return true;
  if (reader.isKeyword("WHERE")) tail.where = parseWhere(reader);
  else if (reader.accept("RETURN")) tail.returns = names(reader);
  else if (reader.accept("UNTIL")) tail.until = reader.expectText();
  else if (reader.accept("DIFF")) tail.diff = parseValue(reader);
  else if (reader.isKeyword("AS")) {
    tail.asOf = parseAsOf(reader);
    return tail.asOf !== undefined;
  } else return false;
  return true;
}

/** `[short|long|all|detail|back] path [m, p]`. */
function readPath(reader: TokenReader, tail: Tail): boolean {
  const mode = PATH_MODES.get(reader.token.keyword);
  if (mode === undefined) return false;
  reader.advance();
  if (mode !== "any") reader.expect("PATH");
  tail.pathMode = mode;
  if (reader.isName() && !PATH_MODES.has(reader.token.keyword) && !isTailWord(reader)) tail.pathTags = names(reader);
  return true;
}

function isTailWord(reader: TokenReader): boolean {
  return ["RETURN", "UNTIL", "DIFF"].includes(reader.token.keyword);
}

function names(reader: TokenReader): readonly string[] {
  return listOf(reader, () => reader.expectName("a name"), NAMES);
}

function chain(reader: TokenReader): Chain {
  const start = reader.token.start;
  const first = node(reader);
  const steps: GraphStep[] = [];
  while (EDGE_BEGINS.some((sign) => reader.isSign(sign))) steps.push(step(reader));
  return { kind: "chain", start: first, steps, span: reader.spanFrom(start) };
}

/** `-[…]->`, `<-[…]-`, `-[…]-`; without brackets `->`, `<-`, `<--`, `-`. */
function step(reader: TokenReader): GraphStep {
  const start = reader.token.start;
  const backward = acceptBackward(reader);
  if (!backward && reader.acceptSign("->")) return toNode(reader, { direction: "out", start });
  if (!backward) reader.expectSign("-");
  if (!reader.acceptSign("[")) return toNode(reader, { direction: backward ? "in" : "both", start });
  const type = reader.acceptSign(":") ? edgeType(reader) : undefined;
  const depth = reader.acceptSign("*") ? stepCount(reader) : 1;
  reader.expectSign("]");
  const forward = !backward && reader.acceptSign("->");
  if (!forward) reader.expectSign("-");
  return toNode(reader, { direction: backward ? "in" : forward ? "out" : "both", type, depth, start });
}

/** With a blank before the bracket, the lexer reads `<-` as two tokens. */
function acceptBackward(reader: TokenReader): boolean {
  if (reader.acceptSign("<-") || reader.acceptSign("<--")) return true;
  if (!reader.acceptSign("<")) return false;
  reader.expectSign("-");
  return true;
}

interface Arrow {
  readonly direction: GraphStep["direction"];
  readonly type?: string | undefined;
  readonly depth?: GraphStep["depth"];
  readonly start: number;
}

function toNode(reader: TokenReader, { direction, type, depth = 1, start }: Arrow): GraphStep {
  const target = node(reader);
  return { kind: "step", direction, type, depth, node: target, span: reader.spanFrom(start) };
}

function edgeType(reader: TokenReader): string {
  let name = reader.expectName("an edge type");
  while (reader.acceptSign(".")) name += `.${reader.expectName("an edge type")}`;
  return name;
}

function stepCount(reader: TokenReader): number | "any" {
  if (reader.token.kind !== "number") return "any";
  const { start, text } = reader.token;
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw reader.complain(start, "expected a whole number of steps from 1");
  reader.advance();
  return count;
}

/** `()`, `("id", …)`, `(:class where …)`, `(name:"id")`, `(name:/class)`. */
function node(reader: TokenReader): GraphNode {
  const start = reader.token.start;
  reader.expectSign("(");
  const name = reader.isName() ? reader.advance().text : undefined;
  const colon = reader.acceptSign(":");
  const ids: string[] = [];
  for (let id = reader.acceptText(); id !== undefined; id = reader.acceptSign(",") ? reader.expectText() : undefined)
    ids.push(id);
  const label = colon && ids.length === 0 ? classLabel(reader) : undefined;
  const where = parseWhere(reader);
  const limit = reader.accept("LIMIT") ? parseCount(reader) : undefined;
  reader.expectSign(")");
  return { kind: "node", name, ids, class: label, where, limit, span: reader.spanFrom(start) };
}

function classLabel(reader: TokenReader): string {
  return reader.token.kind === "path" ? reader.advance().text : reader.expectName("a class");
}
