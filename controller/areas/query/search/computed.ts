import { AppError } from "../../../../common/errors.ts";
import {
  RULE_RESULT_MAX_CHARACTERS,
  RULE_SERIES_DEADLINE_MS,
  RULE_SERIES_MAX_CHARACTERS,
  RULE_SERIES_MAX_RECORDS,
  RULE_STEPS_MAX,
} from "../../../../common/limits.ts";
import type { Lua, Search } from "../../../../common/search/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { ScriptEngine, ScriptHost } from "../../../scripting/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { bytesOf } from "../expressions/aggregates/memory.ts";
import { changedMeta } from "../run/meta.ts";
import type { QueryMeta } from "../types.ts";
import { segmentOf } from "./segments.ts";

interface Computing {
  readonly engine: Pick<ScriptEngine, "runEach">;
  readonly principal: Principal;
  readonly signal: AbortSignal | undefined;
}

/**
 * The computed field of a search; undefined without one. `AppError("invalid")` if the search also groups, deletes or
 * calls.
 */
export function computedOf(search: Search): Lua | undefined {
  const computed = segmentOf(search, "lua");
  const other = search.segments.find(({ kind }) => ["group", "delete", "call"].includes(kind));
  if (computed && other) throw new AppError("invalid", `[Valid] lua does not go with ${other.kind}.`);
  return computed;
}

/**
 * The rows with the value that the text returns for each, under the name of the field. If it returns nothing, the row
 * lacks the field. The text has the row as `OBJECT` and cannot call the host. An error of the text is the error of the
 * search.
 */
export async function* computedRows(
  pages: AsyncIterable<readonly Row[]>,
  computed: Lua,
  computing: Computing,
): AsyncGenerator<readonly Row[]> {
  for await (const page of pages) {
    for (const piece of pieces(page)) yield await computedPiece(piece, computed, computing);
  }
}

export function computedMeta(meta: QueryMeta, { field }: Lua): QueryMeta {
  const own = { name: field, title: field, type: "text" };
  const columns = (): QueryMeta["columns"] =>
    Object.fromEntries(Object.entries(meta.columns).map(([path, known]) => [path, [...known, own]]));
  return changedMeta(meta, { columns });
}

async function computedPiece(
  rows: readonly Row[],
  { field, source }: Lua,
  { engine, principal, signal }: Computing,
): Promise<readonly Row[]> {
  const outcomes = await engine.runEach(
    {
      tenant: principal.tenant,
      kind: "serverjs",
      user: principal.user,
      language: "lua",
      name: `search field ${field}`,
      source: `RESULT = (function() ${source}\nend)()`,
      results: ["RESULT"],
      each: rows.map((row) => ({ OBJECT: row })),
      timeoutMs: RULE_SERIES_DEADLINE_MS,
      stepsMax: RULE_STEPS_MAX.lua,
      outputMaxCharacters: RULE_RESULT_MAX_CHARACTERS,
      depth: principal.scriptDepth ?? 0,
      owner: principal.user,
      ...(signal && { signal }),
    },
    NO_HOST,
  );
  return rows.map((row, at) => {
    const outcome = outcomes[at];
    if (outcome instanceof AppError) throw outcome;
    const value = outcome?.results["RESULT"];
    return value === undefined ? row : { ...row, [field]: value };
  });
}

const NO_HOST: ScriptHost = {
  call: ({ name }) => Promise.reject(new AppError("unsupported", `A field of a search does not call ${name}.`)),
};

function* pieces(page: readonly Row[]): Generator<readonly Row[]> {
  let piece: Row[] = [];
  let bytes = 0;
  for (const row of page) {
    const more = bytesOf(row);
    if (piece.length > 0 && (piece.length >= RULE_SERIES_MAX_RECORDS || bytes + more > RULE_SERIES_MAX_CHARACTERS)) {
      yield piece;
      piece = [];
      bytes = 0;
    }
    piece.push(row);
    bytes += more;
  }
  if (piece.length > 0) yield piece;
}
