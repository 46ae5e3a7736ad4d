import { AppError } from "../../../../common/errors.ts";
import { withNearest } from "../../../../common/text/nearest.ts";
import { GRAPH_EDGES_MAX, SEARCH_CALL_MAX_ROWS } from "../../../../common/limits.ts";
import { NOWHERE } from "../../../../common/mql/index.ts";
import type { Alternative, Call, Match, Search } from "../../../../common/search/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectEdge, ObjectRef } from "../../objects/index.ts";
import { bytesOf, freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { placed } from "../expressions/placing.ts";
import type { Output } from "../plan/outputs.ts";
import { inSlices, type Slices } from "../run/slice.ts";
import type { SearchPlan } from "./plan.ts";
import { segmentOf } from "./segments.ts";
import { treeOf } from "./tree.ts";

const CALLS: readonly string[] = ["tree", "graph"];

export type EdgesOf = (refs: readonly ObjectRef[], type: string | undefined) => AsyncIterable<readonly ObjectEdge[]>;

/**
 * The search for the current objects that a call uses. `AppError("unsupported")` for an unknown call, `invalid` if the
 * search also groups or deletes.
 */
export function searchOfCall(search: Search, call: Call): Search {
  if (!CALLS.includes(call.name)) throw placed(unknownCall(call), call.span);
  const other = search.segments.find(({ kind }) => kind === "group" || kind === "delete");
  if (other) throw placed(new AppError("invalid", `[Valid] ${other.kind} does not go with call.`), other.span);
  const types = call.name === "tree" ? textsOf(call, "ftype") : [];
  const segments = types.length > 0 ? [...search.segments, oneOf("ftype", types)] : search.segments;
  // One more than allowed, to see that there are too many.
  const most = { kind: "top" as const, count: SEARCH_CALL_MAX_ROWS + 1, span: NOWHERE };
  return { ...search, current: true, segments: segmentOf(search, "top") ? segments : [...segments, most] };
}

function unknownCall({ name }: Call): AppError {
  const details = { construct: `call ${name}`, unknown: name };
  const text = `[Exec] No search calls ${name}: there are ${CALLS.join(" and ")}.`;
  return withNearest(new AppError("unsupported", text, { details }), CALLS);
}

/** The fields that a call needs of its objects, and those that it shows. */
export function outputsOfCall(call: Call, plan: SearchPlan): readonly Output[] {
  const printed = plan.outputs.filter((output) => output.kind === "value");
  const named = call.name === "tree" ? textsOf(call, "fields") : [];
  if (call.name === "tree" && printed.length === 0 && named.length === 0)
    return [{ kind: "star" }, fieldOf("parent", plan)];
  const needed = call.name === "tree" ? ["id", "class", "parent", "fullname"] : ["id", "class", "name"];
  const known = needed.filter((name) => name === "parent" || plan.scope.has(name));
  const shown = named.map((name) => plan.scope.definedName(name) ?? name);
  return [...[...new Set([...known, ...shown])].map((name) => fieldOf(name, plan)), ...printed];
}

/** The one row of a call, from at most `SEARCH_CALL_MAX_ROWS` objects. */
export function calledRow(
  call: Call,
  pages: AsyncIterable<readonly Row[]>,
  { edgesOf, slices }: CallContext,
): AsyncIterable<readonly Row[]> {
  const memory = PROCESS_MEMORY.share(slices.tenant);
  return freeing(memory, calledHolding(call, pages, { edgesOf, slices, memory }));
}

interface CallContext {
  readonly edgesOf: EdgesOf;
  readonly slices: Slices;
}

interface Holding extends CallContext {
  readonly memory: Pick<MemoryShare, "take">;
}

async function* calledHolding(
  call: Call,
  pages: AsyncIterable<readonly Row[]>,
  holding: Holding,
): AsyncGenerator<readonly Row[]> {
  const { slices, memory } = holding;
  const rows: Row[] = [];
  for await (const page of pages) {
    for (const row of page) {
      memory.take(bytesOf(row));
      if (slices.isOver()) await slices.pause();
    }
    rows.push(...page);
    if (rows.length > SEARCH_CALL_MAX_ROWS)
      throw tooMany(`call ${call.name} is about more than ${SEARCH_CALL_MAX_ROWS} objects`, "SEARCH_CALL_MAX_ROWS");
  }
  if (call.name === "tree") yield [{ tree: await inSlices(treeOf(rows, textsOf(call, "parent")[0]), slices, memory) }];
  else yield [{ graph: { nodes: rows, edges: await edgesBetween(rows, call, holding), paths: [], pathtags: [] } }];
}

async function edgesBetween(
  nodes: readonly Row[],
  call: Call,
  { edgesOf, slices, memory }: Holding,
): Promise<readonly Row[]> {
  const known = new Set(nodes.map((row) => `${String(row.class)} ${String(row.id)}`));
  const edges: Row[] = [];
  const refs = nodes.map((row) => ({ id: String(row.id), class: String(row.class) }));
  for await (const page of edgesOf(refs, textsOf(call, "type")[0])) {
    for (const { type, source, target, targetClass } of page) {
      if (slices.isOver()) await slices.pause();
      if (!known.has(`${targetClass} ${target}`)) continue;
      const edge = { id: `${source} ${type} ${target}`, class: type, source, target };
      memory.take(bytesOf(edge));
      edges.push(edge);
    }
    if (edges.length > GRAPH_EDGES_MAX)
      throw tooMany(`call graph meets more than ${GRAPH_EDGES_MAX} edges`, "GRAPH_EDGES_MAX");
  }
  return edges;
}

function fieldOf(name: string, { scope }: SearchPlan): Output {
  return {
    kind: "value",
    name,
    value: { kind: "field", field: scope.bind({ kind: "field", parts: [name], span: NOWHERE }) },
  };
}

function oneOf(field: string, values: readonly string[]): Match {
  const alternatives = values.map((text): Alternative => {
    return {
      words: [],
      test: {
        field: { parts: [field], span: NOWHERE },
        operator: "=",
        value: { text, quoted: true, span: NOWHERE },
        span: NOWHERE,
      },
    };
  });
  return { kind: "match", alternatives, span: NOWHERE };
}

/** A member of the options that is a text or a list of texts. `AppError("invalid")` for anything else. */
function textsOf(call: Call, member: string): readonly string[] {
  const value = call.options[member];
  const texts: readonly unknown[] = value === undefined ? [] : Array.isArray(value) ? value : [value];
  const found = texts.filter((text): text is string => typeof text === "string");
  if (found.length === texts.length) return found;
  throw new AppError("invalid", `[Valid] ${member} of call ${call.name} is a text or a list of texts.`);
}

function tooMany(complaint: string, limit: string): AppError {
  return new AppError("too_large", `[Exec] ${complaint}: narrow the search or give a top.`, { details: { limit } });
}
