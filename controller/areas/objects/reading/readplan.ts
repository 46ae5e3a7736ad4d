import { AppError } from "../../../../common/errors.ts";
import { RANGE_SLOTS } from "../../../../common/limits.ts";
import type { FindRequest } from "../../../store/objects.ts";
import { ROOT_CID, takesSlot } from "../definitions/definition.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { belowTerm, ownTerm, type LoadedClass } from "../definitions/views.ts";
import type { Pushdown, ReadExplanation, ReadRequest } from "../types.ts";
import { MORE_WORDS_TERM } from "../values/terms.ts";
import { cellsOf, columnsRead } from "./columns.ts";
import { placesOf, type Place } from "./locate.ts";
import { narrow, shortText, type Narrowing } from "./narrowing.ts";

/** The steps of a read, in their order. */
export interface ReadPlan {
  readonly byId: readonly Place[] | undefined;
  /** Names of the columns that are read by id; absent: all. */
  readonly columns: ReadonlySet<string> | undefined;
  readonly provided: readonly LoadedClass[];
  readonly branches: readonly Branch[];
  readonly timelines: readonly Timeline[];
  /** Made only for EXPLAIN. */
  readonly explanation: () => ReadExplanation;
}

/** A read of entities, for classes whose indexes narrow the condition in the same way. */
export interface Branch {
  readonly views: readonly LoadedClass[];
  readonly narrowing: Narrowing;
  /** Names of the columns that are read; absent: all. */
  readonly columns: ReadonlySet<string> | undefined;
  readonly finds: readonly Find[];
}

export interface Find {
  readonly request: FindRequest;
  /** Numbers of the classes that are searched. A store may return objects of other classes, too. */
  readonly cids: ReadonlySet<number>;
  /** True if only objects of these classes have the terms of the find. */
  readonly isWholeScope: boolean;
  /**
   * Index of the union's term that this find uses. An object that also has an earlier term is returned by the find of
   * that term.
   */
  readonly unionAt: number | undefined;
  /** True for the find of objects that have more words than the index keeps. */
  readonly moreWords: boolean;
}

export interface Timeline {
  readonly view: LoadedClass;
  readonly fromMs: number;
  readonly toMs: number;
  readonly terms: readonly string[];
  readonly narrowing: Narrowing;
  /** Index of the union's term that this read uses. */
  readonly unionAt: number | undefined;
}

const SINGLE_CLASSES_MAX = 64;

export function planRead(snapshot: Snapshot, request: ReadRequest, readable: (view: LoadedClass) => boolean): ReadPlan {
  const views = scopeOf(snapshot, request).filter(readable);
  if (views.length === 0) throw new AppError("denied", `Reading the class ${request.class} is not allowed.`);
  const provided = views.filter((view) => view.provide !== undefined);
  const stored = views.filter((view) => view.provide === undefined);
  const { ids } = request;
  if (ids !== undefined) return planByIds(snapshot, { ...request, ids }, { stored, provided });
  const where = request.where ?? [];
  const groups = grouped(
    stored.filter((view) => view.kind === "entity"),
    where,
  );
  const branches = groups.map((group) => branchOf(snapshot, request, group));
  const timelines = stored.filter((view) => view.kind === "record").flatMap((view) => timelinesOf(view, where));
  const explanation = (): ReadExplanation => explained(request, { provided, groups, timelines });
  return { byId: undefined, columns: undefined, provided, branches, timelines, explanation };
}

function explained(
  request: ReadRequest,
  { provided, groups, timelines }: Pick<ReadPlan, "provided" | "timelines"> & { readonly groups: readonly Group[] },
): ReadExplanation {
  const { where = [] } = request;
  const steps = [
    ...provided.map((view) => `rows of ${view.path} from its owner`),
    ...groups.map((group) => step(request, group)),
    ...timelines.map((timeline) => timelineStep(timeline, where)),
  ];
  const used = new Set([
    ...groups.flatMap((group) => group.narrowing.used),
    ...timelines.flatMap((timeline) => timeline.narrowing.used),
  ]);
  return { steps, used: where.filter((pushdown) => used.has(pushdown)) };
}

/** The named class, or it and all classes below it. */
export function scopeOf(snapshot: Snapshot, request: ReadRequest): readonly LoadedClass[] {
  const root = snapshot.get(request.class);
  if (root === undefined && request.class !== "/")
    throw new AppError("not_found", `[NotExist] class : ${request.class} not find !`);
  return request.subtree || root === undefined ? snapshot.tree(request.class) : [root];
}

function planByIds(
  snapshot: Snapshot,
  request: ReadRequest & { readonly ids: readonly string[] },
  of: { readonly stored: readonly LoadedClass[]; readonly provided: readonly LoadedClass[] },
): ReadPlan {
  const views = new Set(of.stored);
  const { ids } = request;
  const byId = [...new Set(ids)].flatMap((id) => placesOf(snapshot, { id }, (view) => views.has(view)));
  const explanation = (): ReadExplanation => ({
    steps: [`ids (${ids.length})`, ...of.provided.map((view) => `rows of ${view.path} from its owner`)],
    used: [],
  });
  const columns = columnsRead(request);
  return { byId, columns, provided: of.provided, branches: [], timelines: [], explanation };
}

interface Group {
  readonly views: readonly LoadedClass[];
  readonly narrowing: Narrowing;
}

function grouped(views: readonly LoadedClass[], where: readonly Pushdown[]): Group[] {
  const [only] = views;
  if (only !== undefined && views.length === 1) {
    const narrowing = narrow(only, where);
    return narrowing === undefined ? [] : [{ views, narrowing }];
  }
  const groups = new Map<string, { views: LoadedClass[]; narrowing: Narrowing }>();
  for (const view of views) {
    const narrowing = narrow(view, where);
    if (narrowing === undefined) continue;
    const signature = JSON.stringify([narrowing.terms, narrowing.union?.terms, narrowing.words, narrowing.ranges]);
    const group = groups.get(signature);
    if (group === undefined) groups.set(signature, { views: [view], narrowing });
    else group.views.push(view);
  }
  return [...groups.values()];
}

function branchOf(snapshot: Snapshot, request: ReadRequest, group: Group): Branch {
  const { narrowing } = group;
  const { ranges } = narrowing;
  const columns = columnsRead(request, narrowing);
  const cells = columns && cellsOf(group.views, columns);
  const chosen = cells === undefined ? {} : { cells };
  const finds: Find[] = [];
  for (const { terms: scopeTerms, cids, isWhole } of scopesOf(snapshot, request, group)) {
    for (const [unionAt, unionTerm] of narrowing.union === undefined
      ? [[undefined, undefined] as const]
      : narrowing.union.terms.entries()) {
      const terms = [...narrowing.terms, ...(unionTerm === undefined ? [] : [unionTerm])];
      finds.push({
        request: { terms: [...terms, ...narrowing.words, ...scopeTerms], ranges, ...chosen },
        cids,
        isWholeScope: isWhole,
        unionAt,
        moreWords: false,
      });
      if (narrowing.words.length === 0) continue;
      finds.push({
        request: { terms: [...terms, MORE_WORDS_TERM, ...scopeTerms], ranges },
        cids,
        isWholeScope: isWhole,
        unionAt,
        moreWords: true,
      });
    }
  }
  return { views: group.views, narrowing, columns, finds };
}

/**
 * Part of a group's classes, and a term that all their objects have. Without a term, the other terms of the read are
 * enough.
 */
interface ClassScope {
  readonly terms: readonly string[];
  /** True if only objects of these classes have the term. */
  readonly isWhole: boolean;
  readonly cids: ReadonlySet<number>;
}

/** Splits the classes of the group into scopes, each class in one. */
function scopesOf(snapshot: Snapshot, request: ReadRequest, group: Group): readonly ClassScope[] {
  const cids = group.views.map((view) => view.cid);
  if (indexIsOfGroup(snapshot, group)) return [{ terms: [], isWhole: true, cids: new Set(cids) }];
  const root = request.class === "/" ? snapshot.byCid(ROOT_CID) : snapshot.get(request.class);
  const whole = root !== undefined && request.subtree && group.views.length > 1;
  const entities = whole
    ? snapshot.tree(root.path).filter((view) => view.kind === "entity" && view.provide === undefined)
    : [];
  if (whole && (entities.length === group.views.length || group.views.length > SINGLE_CLASSES_MAX)) {
    const own = cids.includes(root.cid)
      ? [{ terms: [ownTerm(root.cid)], isWhole: true, cids: new Set([root.cid]) }]
      : [];
    return [
      ...own,
      {
        terms: [belowTerm(root.cid)],
        isWhole: entities.length === group.views.length,
        cids: new Set(cids.filter((cid) => cid !== root.cid)),
      },
    ];
  }
  return cids.map((cid) => ({ terms: [ownTerm(cid)], isWhole: true, cids: new Set([cid]) }));
}

/** True if only objects of the group's classes can have the terms of an indexed column. */
function indexIsOfGroup(snapshot: Snapshot, group: Group): boolean {
  const views = new Set(group.views);
  return group.narrowing.columns.some((column) =>
    snapshot
      .tree(column.definedBy)
      .every((view) => views.has(view) || view.kind === "record" || view.column(column.name)?.indexed !== true),
  );
}

function timelinesOf(view: LoadedClass, where: readonly Pushdown[]): Timeline[] {
  const narrowing = narrow(view, where);
  if (narrowing === undefined) return [];
  const { fromMs, toMs } = narrowing.time;
  const unions =
    narrowing.union === undefined ? [undefined] : narrowing.union.terms.map((term, unionAt) => ({ term, unionAt }));
  const words = narrowing.words.length === 0 ? [[]] : [narrowing.words, [MORE_WORDS_TERM]];
  return unions.flatMap((union) =>
    words.map((terms) => ({
      view,
      fromMs,
      toMs,
      terms: [...narrowing.terms, ...(union === undefined ? [] : [union.term]), ...terms],
      narrowing,
      unionAt: union?.unionAt,
    })),
  );
}

function step(request: ReadRequest, group: Group): string {
  const [first] = group.views;
  const classes =
    group.views.length === 1 ? `class ${first?.path ?? ""}` : `${group.views.length} classes of ${request.class}`;
  const narrowed = group.narrowing.used.map(pushdownText);
  const read = narrowed.length === 0 ? `scan of ${classes}` : `${narrowed.join(" and ")} in ${classes}`;
  return `${read}${unslotted(group, request.where ?? [])}${unlisted(request.where ?? [])}`;
}

function timelineStep(timeline: Timeline, where: readonly Pushdown[]): string {
  const narrowed = where.filter((pushdown) => timeline.narrowing.used.includes(pushdown)).map(pushdownText);
  return `${[`timeline of ${timeline.view.path}, newest first`, ...narrowed].join(", ")}${unlisted(where)}`;
}

/** Describes ranges that narrow nothing, because the index of their column got no slot. */
function unslotted({ views }: Group, where: readonly Pushdown[]): string {
  const ranges = where.filter(
    (one) =>
      one.kind === "range" &&
      views.some((view) => {
        const column = view.column(one.column);
        return column?.indexReady === true && takesSlot(column.type) && column.slot === undefined;
      }),
  );
  return ranges.length === 0
    ? ""
    : ` (each is asked for ${ranges.map(pushdownText).join(" and ")}: the ${RANGE_SLOTS} range slots are taken)`;
}

/** Describes word patterns that narrow nothing. */
function unlisted(where: readonly Pushdown[]): string {
  const patterns = where.flatMap((one) => (one.kind === "pattern" && one.words === undefined ? [one.pattern] : []));
  return patterns.length === 0 ? "" : ` (each is asked for ${patterns.join(" ")}: the words that fit are not listed)`;
}

function pushdownText(pushdown: Pushdown): string {
  switch (pushdown.kind) {
    case "equals":
      return `index ${pushdown.column} = ${shortText(pushdown.values)}`;
    case "range":
      return `range ${pushdown.column} ${pushdown.from ?? ""}..${pushdown.to ?? ""}`;
    case "words":
      return `words ${pushdown.words.join(" ")}`;
    case "pattern":
      return `words ${pushdown.pattern}`;
  }
}
