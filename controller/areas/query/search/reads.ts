import type { Search, TimeQuestion } from "../../../../common/search/index.ts";
import type { ClassCatalog, ClassView, Pushdown, ReadRequest } from "../../objects/index.ts";
import { readsOf } from "../plan/plan.ts";
import { wordPushdowns } from "../plan/pushdown.ts";
import type { Scope } from "../plan/names/scope.ts";
import { coverOf, keepsVersions } from "./classes.ts";
import { allOf, type Choice, type Wanted } from "./condition.ts";
import { segmentOf } from "./segments.ts";

/** Reads that together return every row that may pass. */
export interface SearchReads {
  /**
   * Reads of objects as they are, or as they were at the time asked for. They leave out objects that `versioned`
   * covers.
   */
  readonly branches: readonly (readonly ReadRequest[])[];
  /** The condition of each branch besides the common ones; empty when there is only one branch. */
  readonly choices: readonly Choice[];
  readonly versioned: Versioned | undefined;
}

/**
 * Objects whose earlier versions are searched, too: those versions that were written from `fromMs` to `toMs`, both
 * included.
 */
export interface Versioned {
  /** Reads of the objects that exist now. */
  readonly reads: readonly ReadRequest[];
  /** Paths of the classes whose removed objects are searched. */
  readonly classes: readonly string[];
  /** Whole ids to search; absent: all. */
  readonly ids: ReadonlySet<string> | undefined;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface SearchQuestion {
  readonly search: Search;
  readonly context: { readonly catalog: ClassCatalog; readonly veiled?: boolean };
  readonly scope: Scope;
  readonly wanted: Wanted;
  readonly time: TimeQuestion | undefined;
}

/** One branch for each alternative if an index can answer all of them; otherwise a single branch. */
export function searchReads(question: SearchQuestion): SearchReads {
  const { scope, wanted } = question;
  const past = new Set(asksForPast(question) ? scope.classes.filter(keepsVersions) : []);
  const present = scope.classes.filter((view) => !past.has(view));
  const choices = wanted.choices.find((alternatives) => alternatives.every(isIndexed)) ?? [];
  const all: readonly (Choice | undefined)[] = choices.length > 0 ? choices : [undefined];
  const branches = all.map((choice) => presentReads(question, present, choice));
  return { branches, choices, versioned: past.size > 0 ? versionedReads(question, [...past]) : undefined };
}

function asksForPast({ search, time }: SearchQuestion): boolean {
  return !search.current && time?.kind !== "state" && !segmentOf(search, "delete");
}

function isIndexed({ words, where }: Choice): boolean {
  return words.some(({ indexed }) => indexed.length > 0) || (where?.kind === "compare" && where.operator === "=");
}

function presentReads(
  question: SearchQuestion,
  views: readonly ClassView[],
  choice: Choice | undefined,
): readonly ReadRequest[] {
  const { wanted, time } = question;
  const { targets, request } = narrowed(question, views, choice);
  const where = [...(request.where ?? []), ...wordPushdowns([...wanted.words, ...(choice?.words ?? [])])];
  const state = time?.kind === "state" ? { asOfMs: time.atMs } : {};
  return targets.map((target) => ({ ...request, ...target, ...state, ...(where.length > 0 ? { where } : {}) }));
}

/**
 * The current values of an object do not narrow the search of its earlier versions. Only its id and the time of its
 * last write do.
 */
function versionedReads(question: SearchQuestion, views: readonly ClassView[]): Versioned {
  const { time } = question;
  const { targets, views: named, request } = narrowed(question, views, undefined);
  const isOfWrites = time?.kind === "range" && (!time.field || ["vtime", "mtime"].includes(time.field.parts.join(".")));
  const { fromMs, toMs } = isOfWrites ? time : { fromMs: -Infinity, toMs: Infinity };
  const where: readonly Pushdown[] = isOfWrites ? [{ kind: "range", column: "vtime", from: fromMs }] : [];
  const ids = request.ids ? { ids: request.ids } : {};
  const reads = targets.map((target) => ({ ...target, ...ids, where }));
  return { reads, classes: named.map((view) => view.path), ids: request.ids && new Set(request.ids), fromMs, toMs };
}

interface Narrowed {
  readonly views: readonly ClassView[];
  readonly targets: readonly Pick<ReadRequest, "class" | "subtree">[];
  readonly request: Partial<ReadRequest>;
}

/** Reads of these classes, narrowed by the conditions on columns. */
function narrowed(
  { scope, wanted, context }: SearchQuestion,
  views: readonly ClassView[],
  choice: Choice | undefined,
): Narrowed {
  const reads = readsOf(scope, allOf([wanted.where, choice?.where]), { values: [], veiled: context.veiled ?? false });
  const [first] = reads;
  if (!first) return { views: [], targets: [], request: {} };
  const isAll = reads.length === 1 && first.class === scope.root && first.subtree === scope.subtree;
  const named = new Set(reads.map((read) => read.class));
  const asked = isAll ? views : views.filter((view) => named.has(view.path));
  return { views: asked, targets: coverOf(asked, context.catalog), request: first };
}
