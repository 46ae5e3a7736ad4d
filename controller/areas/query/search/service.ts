import { UTC_ZONE } from "../../../../common/calendar/zones.ts";
import { AppError } from "../../../../common/errors.ts";
import { type Call, type Lua, parseSearch, type Search, timeQuestion } from "../../../../common/search/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Audit } from "../../audit/index.ts";
import type { ScriptEngine } from "../../../scripting/index.ts";
import type { ClassCatalog, Objects } from "../../objects/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { audited } from "../audited.ts";
import { located } from "../expressions/placing.ts";
import { changedMeta, plainMeta, selectMeta } from "../run/meta.ts";
import { shaped } from "../run/pipeline.ts";
import { Slices } from "../run/slice.ts";
import type { QueryResult } from "../types.ts";
import { removeFound } from "../write/deletes.ts";
import { requireSomeWritable } from "../write/write.ts";
import { calledRow, type EdgesOf, outputsOfCall, searchOfCall } from "./calls.ts";
import { computedMeta, computedOf, computedRows } from "./computed.ts";
import { describeSearch } from "./describe.ts";
import { planSearch, type SearchPlan } from "./plan.ts";
import { foundRows, type RowsContext } from "./rows.ts";
import { segmentOf } from "./segments.ts";

export interface SearchDependencies {
  readonly objects: Objects;
  readonly runtime: Pick<Runtime, "clock">;
  /** Receives an entry for every search that deletes. */
  readonly audit?: Pick<Audit, "ready" | "record">;
  /** Folder for sorts that exceed memory. Absent: they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string;
  /** Engine that runs `lua`. If it is absent or returns nothing, `lua` is refused. */
  readonly engine?: () => Pick<ScriptEngine, "runEach"> | undefined;
}

/** The search language. Every search applies the principal's row conditions and hidden columns. */
export interface Searches {
  search(principal: Principal, text: string, options?: { readonly signal?: AbortSignal }): Promise<QueryResult>;
}

interface Caller {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly signal: AbortSignal | undefined;
}

export class SearchService implements Searches {
  readonly #objects: Objects;
  readonly #clock: Runtime["clock"];
  readonly #audit: SearchDependencies["audit"];
  readonly #sortFolder: string | undefined;
  readonly #engine: NonNullable<SearchDependencies["engine"]>;

  constructor({ objects, runtime, audit, sortFolder, engine = () => undefined }: SearchDependencies) {
    this.#engine = engine;
    this.#sortFolder = sortFolder;
    this.#objects = objects;
    this.#clock = runtime.clock;
    this.#audit = audit;
  }

  async search(
    principal: Principal,
    text: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<QueryResult> {
    requirePermission(principal, "objects:read");
    const search = parseSearch(text);
    try {
      return await this.#run(search, { principal, catalog: await this.#objects.catalog(principal), signal });
    } catch (error) {
      throw located(error, text, search.segments.length);
    }
  }

  async #run(search: Search, caller: Caller): Promise<QueryResult> {
    const computed = computedOf(search);
    const call = segmentOf(search, "call");
    if (call) return this.#call(call, searchOfCall(search, call), caller);
    if (!segmentOf(search, "delete")) return this.#computed(await this.#read(search, caller), computed, caller);
    const object = search.class?.path ?? "";
    const action = `search delete ${object || "of every class"}`;
    return audited({ audit: this.#audit, principal: caller.principal, action, object }, () =>
      this.#remove(search, caller),
    );
  }

  async #read(search: Search, caller: Caller): Promise<QueryResult> {
    const plan = this.#plan(search, caller);
    const context = this.#context(caller);
    const leftOut = { more: false };
    const rows = this.#shaped(plan, context, () => {
      leftOut.more = true;
    });
    return { meta: await this.#explained(search, selectMeta(plan, { leftOut }), caller), rows };
  }

  #computed({ meta, rows }: QueryResult, computed: Lua | undefined, { principal, signal }: Caller): QueryResult {
    if (computed === undefined) return { meta, rows };
    const engine = this.#engine();
    if (engine === undefined)
      throw new AppError("unsupported", "[Exec] lua in a search is not offered here.", {
        details: { construct: "lua" },
      });
    return {
      meta: computedMeta(meta, computed),
      rows: computedRows(rows, computed, { engine, principal, signal }),
    };
  }

  async #call(call: Call, search: Search, caller: Caller): Promise<QueryResult> {
    const hits = this.#plan(search, caller);
    const plan = { ...hits, outputs: outputsOfCall(call, hits) };
    const { principal, signal } = caller;
    const asOfMs = plan.reads[0]?.asOfMs;
    const context = this.#context(caller);
    const rows = this.#shaped(plan, context);
    const edgesOf: EdgesOf = (refs, type) => {
      const options = {
        ...(type === undefined ? {} : { type }),
        ...(asOfMs === undefined ? {} : { asOfMs }),
        ...(signal ? { signal } : {}),
      };
      return this.#objects.unrestricted.edges(principal, refs, { direction: "out", ...options });
    };
    const meta = plainMeta(call.name === "graph" ? "graph" : "select", plan.scope.root, [
      { name: call.name, title: call.name, type: "map" },
    ]);
    return {
      meta: await this.#explained(search, meta, caller),
      rows: calledRow(call, rows, { edgesOf, slices: context.slices }),
    };
  }

  async #remove(search: Search, caller: Caller): Promise<QueryResult> {
    refuseBesideDelete(search);
    const plan = this.#plan(search, caller);
    const { scope } = plan;
    requireSomeWritable(scope);
    const context = this.#context(caller);
    const meta = plainMeta("delete", scope.root, [{ name: "count", title: "count", type: "bigint" }]);
    const shown = await this.#explained(search, meta, caller);
    const limit = segmentOf(search, "top") ? plan.limit : undefined;
    const count = await removeFound(foundRows(plan, context), {
      scope,
      limit,
      withVersions: false,
      context: { objects: this.#objects },
    });
    return { meta: shown, rows: one([{ count }]) };
  }

  #shaped(plan: SearchPlan, context: RowsContext, onMore?: () => void): AsyncIterable<readonly Row[]> {
    return shaped(plan, {
      source: foundRows(plan, context),
      slices: context.slices,
      onMore,
      sortFolder: this.#sortFolder,
    });
  }

  #plan(search: Search, { principal, catalog }: Caller, veiled = false): SearchPlan {
    return planSearch(search, { principal, catalog, nowMs: this.#clock.nowMs(), veiled });
  }

  #context({ principal, signal }: Caller): RowsContext {
    const objects = this.#objects;
    const until = signal ? { signal } : {};
    const share = { tenant: principal.tenant, clock: this.#clock, signal };
    return {
      ...share,
      slices: new Slices(share),
      objects,
      read: (request) => objects.unrestricted.read(principal, request),
      history: (ref, range) => objects.unrestricted.history(principal, ref, { ...range, ...until }),
      removed: (path, range) => objects.unrestricted.removed(principal, path, { ...range, ...until }),
    };
  }

  async #explained(search: Search, meta: QueryResult["meta"], caller: Caller): Promise<QueryResult["meta"]> {
    if (!search.debug) return meta;
    const plan = await describeSearch(search, this.#plan(search, caller, true), (read) =>
      this.#objects.unrestricted.explain(caller.principal, read),
    );
    return changedMeta(meta, { plan });
  }
}

/** Refuses segments that only change how the hits look, and searches for an earlier time. */
function refuseBesideDelete(search: Search): void {
  const other = search.segments.find(({ kind }) => ["sort", "print", "uniq", "group"].includes(kind));
  if (other) throw new AppError("invalid", `[Valid] ${other.kind} does not go with delete.`);
  if (timeQuestion(search.segments, { nowMs: 0, zone: UTC_ZONE })?.kind !== "state") return;
  throw new AppError(
    "invalid",
    "[Valid] What was there at another time cannot be deleted: `at` needs `within` beside delete.",
  );
}

async function* one(rows: readonly Row[]): AsyncIterable<readonly Row[]> {
  yield await Promise.resolve(rows);
}
