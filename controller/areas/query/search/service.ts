import { AppError } from "../../../../common/errors.ts";
import { parseSearch, type Search } from "../../../../common/search/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Audit } from "../../audit/index.ts";
import type { ClassCatalog, Objects } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { audited } from "../audited.ts";
import { plainMeta, selectMeta } from "../meta.ts";
import { shaped } from "../pipeline.ts";
import { Slices } from "../slice.ts";
import type { QueryResult } from "../types.ts";
import { removeFound, requireSomeWritable } from "../write.ts";
import { describeSearch } from "./describe.ts";
import { planSearch, type SearchPlan } from "./plan.ts";
import { foundRows, type RowsContext } from "./rows.ts";
import { segmentOf } from "./segments.ts";

export interface SearchDependencies {
  readonly objects: Objects;
  readonly runtime: Pick<Runtime, "clock">;
  /** Told of every search that deletes. */
  readonly audit?: Pick<Audit, "ready" | "write">;
}

/** The search language for everybody: row conditions and hidden columns of the principal are part of every search. */
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

  constructor({ objects, runtime, audit }: SearchDependencies) {
    this.#objects = objects;
    this.#clock = runtime.clock;
    this.#audit = audit;
  }

  async search(principal: Principal, text: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<QueryResult> {
    const search = parseSearch(text);
    refuseUnsupported(search);
    const caller: Caller = { principal, catalog: await this.#objects.catalog(principal), signal };
    if (!segmentOf(search, "delete")) return this.#read(search, caller);
    const action = `search delete ${search.class?.path ?? "of every class"}`;
    return audited({ audit: this.#audit, principal, action }, () => this.#remove(search, caller));
  }

  async #read(search: Search, caller: Caller): Promise<QueryResult> {
    const plan = this.#plan(search, caller);
    const context = this.#context(caller);
    const rows = shaped(plan, { source: foundRows(plan, context), slices: context.slices });
    return { meta: await this.#told(search, selectMeta(plan, () => undefined), caller), rows };
  }

  async #remove(search: Search, caller: Caller): Promise<QueryResult> {
    refuseBesideDelete(search);
    const plan = this.#plan(search, caller);
    const { scope } = plan;
    requireSomeWritable(scope);
    const context = this.#context(caller);
    const meta = plainMeta("delete", scope.root, [{ name: "count", title: "count", type: "bigint" }]);
    const told = await this.#told(search, meta, caller);
    const limit = segmentOf(search, "top") ? plan.limit : undefined;
    const count = await removeFound(foundRows(plan, context), { scope, limit, withVersions: false, context: { objects: this.#objects } });
    return { meta: told, rows: one([{ count }]) };
  }

  #plan(search: Search, { principal, catalog }: Caller, veiled = false): SearchPlan {
    return planSearch(search, { principal, catalog, nowMs: this.#clock.nowMs(), veiled });
  }

  #context({ principal, signal }: Caller): RowsContext {
    const objects = this.#objects;
    return {
      clock: this.#clock,
      signal,
      slices: new Slices(this.#clock, signal),
      read: (request) => objects.read(principal, request),
      history: (row, range) => objects.history(principal, { id: row.id, class: row.class.path }, { ...range, ...(signal ? { signal } : {}) }),
    };
  }

  async #told(search: Search, meta: QueryResult["meta"], caller: Caller): Promise<QueryResult["meta"]> {
    if (!search.debug) return meta;
    const plan = await describeSearch(search, this.#plan(search, caller, true), (read) => this.#objects.plan(caller.principal, read));
    return { ...meta, plan };
  }
}

function refuseUnsupported(search: Search): void {
  const segment = search.segments.find(({ kind }) => kind === "lua" || kind === "call");
  if (!segment) return;
  const construct = segment.kind === "call" ? `call ${segment.name}` : "lua";
  throw new AppError("unsupported", `[Exec] ${construct} in a search is not offered yet.`, { details: { construct } });
}

/** What would only change how the hits look. */
function refuseBesideDelete(search: Search): void {
  const other = search.segments.find(({ kind }) => ["sort", "print", "uniq", "group"].includes(kind));
  if (other) throw new AppError("invalid", `[Valid] ${other.kind} does not go with delete.`);
  const isPast = search.segments.some((segment) => segment.kind === "time" && segment.when.kind === "at" && !segment.when.within);
  const isSpan = search.segments.some((segment) => segment.kind === "time" && segment.when.kind === "within");
  if (isPast && !isSpan) throw new AppError("invalid", "[Valid] What was there at another time cannot be deleted: `at` needs `within` beside delete.");
}

async function* one(rows: readonly Row[]): AsyncIterable<readonly Row[]> {
  yield await Promise.resolve(rows);
}
