import type { Statement } from "../../../../common/mql/index.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Row } from "../../../../common/value.ts";
import type { ClassCatalog, InCommit, ObjectRow, Objects, ReadRequest } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Measures } from "./analyzed.ts";
import type { Repeatable } from "../batch/repeatable.ts";
import type { Arguments } from "../expressions/literal.ts";
import type { MemoryShare } from "../expressions/aggregates/memory.ts";
import type { Present } from "../expressions/settled.ts";
import { calendarZone } from "../plan/zone.ts";
import { isSchemaClass, SCHEMA_CLASS_PATH, schemaRows } from "../plan/names/schema-class.ts";
import type { PlanStep, RunContext } from "../run/run.ts";
import type { Slices } from "../run/slice.ts";
import type { QueryMeta } from "../types.ts";
import type { WrittenRelation } from "../write/missing-ends.ts";
import type { WriteContext } from "../write/write.ts";

/** A statement whose names, values and rights are checked. Nothing has been read or written yet. */
export interface Prepared {
  readonly meta: QueryMeta;
  readonly isRead: boolean;
  /** The change in a repeatable form, for a batch. Absent if only the owner of a system class can make it. */
  readonly repeatable?: Repeatable | undefined;
  /** Relations that the statement writes; absent: none. */
  readonly relations?: Iterable<WrittenRelation>;
  /** Warnings for the caller. Call it after the run. */
  readonly warnings?: () => readonly string[];
  /** Makes a change at once. A read is made while its rows are taken. */
  run(): AsyncIterable<readonly Row[]> | Promise<AsyncIterable<readonly Row[]>>;
  /** The steps of a run, one line each. Changes nothing. */
  explain(): Promise<readonly PlanStep[]>;
}

export interface PreparedStatement {
  readonly statement: Statement;
  readonly prepared: Prepared;
}

export interface PrepareContext {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly objects: Objects;
  readonly clock: Clock;
  /** Value of `now()`. It stays the same when another controller continues the batch. */
  readonly nowMs: number;
  readonly signal: AbortSignal | undefined;
  readonly executions: readonly Arguments[];
  readonly sortFolder: string | undefined;
  /** Time slices of all work before the rows are taken. */
  readonly slices: Slices;
  /** Counts the memory of the statement until its run. Absent if no caller waits for the statement. */
  readonly memory: Pick<MemoryShare, "take"> | undefined;
  /** Absent: reads are not measured. */
  readonly measures?: Measures;
  /** The audit entry for the commit of the only write of the only statement. */
  readonly inCommit?: InCommit | undefined;
}

export function presentOf({ principal, catalog, nowMs }: PrepareContext, values: Arguments): Present {
  return { nowMs, values, zoneOf: (path) => calendarZone(principal, catalog, path) };
}

export function runContext(context: PrepareContext): RunContext {
  const { principal, objects, catalog, clock, signal, sortFolder, measures, slices } = context;
  const { tenant, zones } = slices;
  return {
    tenant,
    zones,
    clock,
    signal,
    sortFolder,
    objects,
    steps: measures,
    read(request) {
      if (readsSchema(request, context)) return one<ObjectRow>(schemaRows(principal, catalog));
      const pages = objects.unrestricted.read(principal, request);
      return measures ? measures.read(request, pages) : pages;
    },
    async inOrder(request) {
      if (readsSchema(request, context)) return undefined;
      const found = await objects.unrestricted.inOrder(principal, request);
      return found && measures ? { ...found, pages: measures.read(request, found.pages) } : found;
    },
    async count(request) {
      if (readsSchema(request, context)) return undefined;
      const counts = await objects.unrestricted.count(principal, request);
      return counts && measures ? measures.count(request, counts) : counts;
    },
  };
}

export function writeContext(context: PrepareContext, values: Arguments): WriteContext {
  return { ...runContext(context), objects: context.objects, values };
}

export function readsSchema(request: Pick<ReadRequest, "class">, { catalog }: PrepareContext): boolean {
  const view = request.class === SCHEMA_CLASS_PATH ? catalog.get(request.class) : undefined;
  return view !== undefined && isSchemaClass(view);
}

export async function* one<T>(rows: readonly T[]): AsyncIterable<readonly T[]> {
  if (rows.length > 0) yield await Promise.resolve(rows);
}
