import { UTC_ZONE, zoneNamed } from "../../../../common/calendar/zones.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  type Call,
  type Field,
  NOWHERE,
  type OrderItem,
  type Select,
  type SelectItem,
} from "../../../../common/mql/index.ts";
import { type Search, type SearchField, timeQuestion } from "../../../../common/search/index.ts";
import type { ClassCatalog, ObjectRow, ReadRequest } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import type { Predicate } from "../expressions/predicate.ts";
import { OutputBinder } from "../plan/outputs.ts";
import { withArrival } from "../plan/paging.ts";
import { bindOutputs, isStoredOrder } from "../plan/bound-outputs.ts";
import { type SelectPlan, sortOf } from "../plan/plan.ts";
import type { Scope } from "../plan/names/scope.ts";
import { calendarZone } from "../plan/zone.ts";
import { filterOf } from "../run/run.ts";
import { workOf } from "../run/work.ts";
import { searchScope } from "./classes.ts";
import { type Choice, fieldNode, type Wanted, wantedOf } from "./condition.ts";
import { searchReads, type SearchReads, type Versioned } from "./reads.ts";
import { segmentOf } from "./segments.ts";
import { wordsFilter } from "./words.ts";

/** Plan of a search, as data. */
export interface SearchPlan extends SelectPlan {
  /** Branches to read one after the other. A row that an earlier branch returned is not returned again. */
  readonly branches: readonly Branch[];
  /** Reads of objects whose earlier versions are searched, too; absent: none. */
  readonly versioned: Versioned | undefined;
  /** Every condition that a row must fulfil. */
  readonly filter: Predicate<ObjectRow>;
  readonly uniq: readonly BoundField[];
  /** Cost of filtering a row, in ordinary rows. */
  readonly rowWork: number;
}

type RowTest = (row: ObjectRow) => boolean;
/** Tests of the choices, each bound once for all branches. */
type ChoiceTests = ReadonlyMap<Choice, RowTest>;

export interface Branch {
  readonly reads: readonly ReadRequest[];
  readonly filter: Predicate<ObjectRow>;
}

export interface SearchContext {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly nowMs: number;
  /** Leaves out narrowing by the row condition of the principal, which a plan must not show. */
  readonly veiled?: boolean;
}

export function planSearch(search: Search, context: SearchContext): SearchPlan {
  const { nowMs, principal, catalog } = context;
  const zone = zoneNamed(calendarZone(principal, catalog, search.class?.path) ?? "") ?? UTC_ZONE;
  const time = timeQuestion(search.segments, { nowMs, zone });
  if (time?.kind === "state" && time.field) throw fieldOfState();
  const scope = searchScope(search, context, time?.kind === "state");
  const wanted = wantedOf(search, scope, time);
  const select = selectOf(search);
  const bound = bindOutputs(select, new OutputBinder(select, scope, []), []);
  const uniq = fieldsOf(search, "uniq").map((field) => scope.bind(field));
  const choices = new Map(wanted.choices.flat().map((choice) => [choice, choiceFilter(choice, scope)]));
  const filter = fullFilter(wanted, scope, choices);
  const reads = searchReads({ search, context, scope, wanted, time });
  const stored = isOneRead(reads) && isStoredOrder(scope, bound.orderBy, bound.grouping !== undefined);
  const last = bound.limit === undefined ? undefined : bound.limit + (bound.isCut ? 1 : 0);
  const sort = sortOf(bound.orderBy.length, stored, last);
  const isStreamed = (sort === "none" || sort === "stored") && !bound.grouping && uniq.length === 0;
  const branches = branchesOf(reads, { filter, choices }, { stored, expected: isStreamed ? last : undefined });
  const source = {
    where: wanted.where,
    reads: branches.flatMap((branch) => branch.reads),
    branches,
    versioned: reads.versioned,
    filter,
    rowWork: rowWorkOf(wanted),
  };
  const orderBy = stored ? bound.orderBy : withArrival(bound, scope);
  return { kind: "select", fields: scope, scope, ...bound, orderBy, sort, uniq, ...source };
}

function fieldOfState(): AppError {
  return new AppError(
    "invalid",
    "[Valid] `at` alone asks for the state of a time: `for` goes with a span of time, such as `within`.",
  );
}

function isOneRead({ branches, versioned }: SearchReads): boolean {
  return branches.length === 1 && branches[0]?.length === 1 && !versioned;
}

interface BranchHints {
  readonly stored: boolean;
  readonly expected: number | undefined;
}

function branchesOf(
  reads: SearchReads,
  { filter, choices }: { readonly filter: Predicate<ObjectRow>; readonly choices: ChoiceTests },
  { stored, expected }: BranchHints,
): readonly Branch[] {
  const hints = { ...(stored ? { newestFirst: true } : {}), ...(expected === undefined ? {} : { expected }) };
  const tests = testsOf(reads.choices, choices);
  return reads.branches.map((own, index) => ({
    reads: own.map((read) => ({ ...read, ...hints })),
    filter: branchFilter(filter, tests, index),
  }));
}

/** The commands of a search, as a SELECT. Its WHERE is empty, because the reads of a search are planned here. */
function selectOf(search: Search): Select {
  const top = segmentOf(search, "top");
  const { path, subtree } = search.class ?? { path: "/", subtree: true };
  return {
    kind: "select",
    distinct: false,
    items: itemsOf(search),
    from: { kind: "class", path, subtree, alias: undefined, span: NOWHERE },
    joins: [],
    where: undefined,
    groupBy: fieldsOf(search, "group"),
    having: undefined,
    orderBy: ordersOf(search),
    offset: undefined,
    asOf: undefined,
    cursor: undefined,
    limit: top && { kind: "number", text: String(top.count), span: top.span },
    span: NOWHERE,
  };
}

function ordersOf(search: Search): readonly OrderItem[] {
  const items = segmentOf(search, "sort")?.items ?? [];
  const valueOf = valuesOf(segmentOf(search, "group")?.fields);
  return items.map(({ field, descending }) => ({ kind: "order", value: valueOf(field), descending, span: field.span }));
}

/** Outputs of the search. A group has its fields and `count`; PRINT chooses among them. */
function itemsOf(search: Search): readonly SelectItem[] {
  const group = segmentOf(search, "group")?.fields;
  const count: SearchField = { parts: ["count"], span: NOWHERE };
  const shown =
    segmentOf(search, "print")?.items ?? (group && [...group, count].map((field) => ({ field, alias: undefined })));
  if (!shown) return [{ kind: "star", alias: undefined, span: NOWHERE }];
  const valueOf = valuesOf(group);
  return shown.map(({ field, alias }) => {
    const value = valueOf(field);
    return { kind: "item", value, alias: alias ?? (value.kind === "call" ? "count" : undefined), span: field.span };
  });
}

/**
 * Meaning of a field name. In a grouped search `count` counts the group, unless the search groups by a field of that
 * name.
 */
function valuesOf(group: readonly SearchField[] | undefined): (field: SearchField) => Field | Call {
  const isCount = ({ parts }: SearchField): boolean => parts.length === 1 && parts[0] === "count";
  const counts = group !== undefined && !group.some(isCount);
  return (field) =>
    counts && isCount(field)
      ? { kind: "call", name: "count", distinct: false, argument: undefined, span: field.span }
      : fieldNode(field);
}

function fieldsOf(search: Search, kind: "uniq" | "group"): readonly Field[] {
  return segmentOf(search, kind)?.fields.map(fieldNode) ?? [];
}

function fullFilter(wanted: Wanted, scope: Scope, tests: ChoiceTests): Predicate<ObjectRow> {
  const columns = filterOf({ scope, where: wanted.where, values: [] });
  const words = wordsFilter(wanted.words, scope);
  const choices = wanted.choices.map((alternatives) => testsOf(alternatives, tests));
  return (row) =>
    columns(row) === true && words(row) && choices.every((alternatives) => alternatives.some((holds) => holds(row)));
}

function testsOf(choices: readonly Choice[], tests: ChoiceTests): readonly RowTest[] {
  return choices.flatMap((choice) => tests.get(choice) ?? []);
}

function rowWorkOf({ where, words, choices }: Wanted): number {
  const all = choices.flat();
  return all.reduce((work, choice) => work + workOf(choice.where) + choice.words.length, workOf(where) + words.length);
}

function choiceFilter(choice: Choice, scope: Scope): RowTest {
  const columns = filterOf({ scope, where: choice.where, values: [] });
  const words = wordsFilter(choice.words, scope);
  return (row) => words(row) && columns(row) === true;
}

/** Passes the rows of this alternative that no earlier alternative has. */
function branchFilter(filter: Predicate<ObjectRow>, tests: readonly RowTest[], index: number): Predicate<ObjectRow> {
  const own = tests[index];
  if (!own) return filter;
  return (row) => own(row) && filter(row) === true && !tests.some((holds, at) => at < index && holds(row));
}
