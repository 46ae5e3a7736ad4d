import { zoneNamed } from "../../../../common/calendar/zones.ts";
import { AppError } from "../../../../common/errors.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import {
  CATALOG_LEASE_MS,
  CLASSES_PER_TENANT_MAX,
  COLUMNS_PER_CLASS_MAX,
  EDGE_TYPES_MAX,
  VERSION_TTL_MIN_SECONDS,
} from "../../../../common/limits.ts";
import { requireWellFormed } from "../../../turns/well-formed.ts";
import { storedColumns, type SystemClass } from "./system-class.ts";
import type { ClassChange, ClassOptions, ClassSpec, ColumnSpec, EdgeType } from "../types.ts";
import {
  FOR_EVER,
  PSEUDO_COLUMNS,
  ROOT_CID,
  TAGS,
  TAGS_COLUMN,
  TAGS_INDEX_NUMBER,
  canBeIndexed,
  parentPath,
  type ClassDefinition,
  type ColumnDefinition,
  type FormerVersionTtl,
  type OptionsDefinition,
} from "./definition.ts";
import type { Draft } from "./draft.ts";
import {
  addIndex,
  definedName,
  dropIndex,
  newIndexes,
  requireColumn,
  requireOwn,
  retireIndex,
  retireWords,
  withoutIndex,
  wordsOf,
} from "./indexchanges.ts";
import { checkClassPath, checkColumnName, checkEdgeTypeName } from "./naming.ts";
import { subscribeTriggers } from "./triggers.ts";

const NO_OPTIONS: OptionsDefinition = { hints: {} };

/** Creates the root class of a tenant, before all other classes. */
export function ensureRoot(draft: Draft, ospace: string): void {
  const known = draft.class(ospace);
  if (known !== undefined) return ensureBranches(draft, known);
  checkClassPath(ospace, ospace);
  const cid = draft.takeCid();
  if (cid !== ROOT_CID)
    throw new AppError("conflict", `[Valid] The tenant's classes have another root than ${ospace}.`);
  draft.putClass({
    ...plainClass(cid, ospace, draft),
    columns: [TAGS],
    indexes: [{ column: TAGS_COLUMN, state: "ready", number: TAGS_INDEX_NUMBER }],
  });
}

/** Fills an index of tags again if it has no branches. */
function ensureBranches(draft: Draft, root: ClassDefinition): void {
  if (root.indexes.every(({ column, number }) => column !== TAGS_COLUMN || number === TAGS_INDEX_NUMBER)) return;
  const indexes = root.indexes.map((index) =>
    index.column === TAGS_COLUMN ? { ...index, state: "write-only" as const, number: TAGS_INDEX_NUMBER } : index,
  );
  draft.putClass({ ...root, indexes });
}

export function createClass(draft: Draft, spec: ClassSpec, ospace: string): void {
  if (draft.class(spec.path) !== undefined)
    throw new AppError("conflict", `[Valid] class ${spec.path} exists already.`);
  checkClassPath(spec.path, ospace);
  const owner = draft.lineage(spec.path).find((definition) => definition.system);
  if (owner !== undefined)
    throw new AppError("denied", `[Valid] class ${owner.path} belongs to the platform and takes no subclasses.`);
  if (spec.columns.some((column) => column.sealed))
    throw new AppError("invalid", "[Valid] Only the platform's own classes have sealed columns.");
  addClass(draft, spec, { ospace, system: false });
}

/** Creates the class of an owner, or adds to an existing class what it lacks. `path` is the whole path. */
export function ensureSystemClass(
  draft: Draft,
  definition: SystemClass,
  where: { readonly path: string; readonly ospace: string },
): void {
  const known = draft.class(where.path);
  const wanted = storedColumns(definition);
  if (known === undefined)
    return addClass(
      draft,
      { ...definition, path: where.path, columns: wanted },
      { ospace: where.ospace, system: true },
    );
  const columns = newColumns(draft, known.path, wanted);
  const fresh = new Set(columns.map((column) => column.name));
  const indexes = newIndexes(
    draft,
    { ...known, columns: [...known.columns, ...columns] },
    definition.indexes ?? [],
    fresh,
  );
  if (columns.length === 0 && indexes.length === 0 && known.system) return;
  draft.putClass({
    ...known,
    system: true,
    columns: [...known.columns, ...columns],
    indexes: [...known.indexes, ...indexes],
  });
}

/** Steps before a change: queries stop using the index or words to be dropped. */
export type Retirement = { readonly kind: "retire index"; readonly name: string } | { readonly kind: "retire words" };

export function alterClass(draft: Draft, path: string, change: ClassChange | Retirement): void {
  const definition = draft.requireClass(path);
  if (definition.system)
    throw new AppError("denied", `[Valid] class ${path} belongs to the platform and cannot be altered.`);
  switch (change.kind) {
    case "add column":
      return addColumn(draft, definition, change.column);
    case "retire words":
      return retireWords(draft, definition);
    case "set options":
      return setOptions(draft, definition, change.options);
    default:
      return COLUMN_CHANGES[change.kind](draft, definition, definedName(draft, definition, change.name));
  }
}

type ColumnChange = Exclude<(ClassChange | Retirement)["kind"], "add column" | "retire words" | "set options">;

const COLUMN_CHANGES: Readonly<
  Record<ColumnChange, (draft: Draft, definition: ClassDefinition, name: string) => void>
> = {
  "drop column": dropColumn,
  "add index": addIndex,
  "drop index": dropIndex,
  "retire index": retireIndex,
  "add key": addKey,
  "drop key": dropKey,
};

/** The caller checks that the class has no objects. */
export function dropClass(draft: Draft, path: string): void {
  checkDrop(draft, path);
  draft.deleteClass(path);
  subscribeTriggers(draft);
}

export function checkDrop(draft: Draft, path: string): void {
  const definition = draft.requireClass(path);
  if (definition.cid === ROOT_CID)
    throw new AppError("denied", `[Valid] class ${path} is the root of the tenant and cannot be dropped.`);
  if (definition.system)
    throw new AppError("denied", `[Valid] class ${path} belongs to the platform and cannot be dropped.`);
  if (draft.below(path).length > 0)
    throw new AppError("conflict", `[Valid]: Class ${path} Has Subclasses, Can't Drop.`);
}

export function createEdgeType(draft: Draft, type: EdgeType): void {
  checkEdgeTypeName(type.name);
  requireWellFormed(`[Valid] remedy of edge type ${type.name}`, type.remedy);
  if (draft.edgeType(type.name) !== undefined)
    throw new AppError("conflict", `[Valid] edge type ${type.name} exists already.`);
  if (draft.edgeTypeCount >= EDGE_TYPES_MAX)
    throw new AppError("too_large", `[Valid] A tenant has at most ${EDGE_TYPES_MAX} edge types.`);
  draft.putEdgeType({ name: type.name, remedy: type.remedy });
}

export function dropEdgeType(draft: Draft, name: string): void {
  if (draft.edgeType(name) === undefined)
    throw unknownName(`[NotExist] edge type ${name} does not exist.`, { name, among: draft.edgeTypeNames() });
  draft.deleteEdgeType(name);
}

function addClass(draft: Draft, spec: ClassSpec, of: { readonly ospace: string; readonly system: boolean }): void {
  addParents(draft, spec.path, of.ospace);
  checkClassCount(draft);
  const columns = newColumns(draft, spec.path, spec.columns);
  const plain = plainClass(draft.takeCid(), spec.path, draft);
  const named = { ...plain, kind: spec.kind ?? "entity", columns, system: of.system };
  const keys = newKeys(draft, named, spec.keys ?? []);
  // In a class without objects every index is complete.
  const indexes = newIndexes(draft, named, spec.indexes ?? [], "all");
  const options = firstOptions(draft, named, spec.options ?? {});
  const definition: ClassDefinition = { ...named, keys, indexes, options };
  checkKeyMode(draft, definition);
  draft.putClass(definition);
}

function addParents(draft: Draft, path: string, ospace: string): void {
  const parent = parentPath(path);
  if (parent === undefined || path === ospace || draft.class(parent) !== undefined) return;
  addParents(draft, parent, ospace);
  checkClassCount(draft);
  draft.putClass(plainClass(draft.takeCid(), parent, draft));
}

function plainClass(cid: number, path: string, draft: Draft): ClassDefinition {
  return {
    cid,
    path,
    kind: "entity",
    columns: [],
    keys: [],
    indexes: [],
    options: NO_OPTIONS,
    modifiedAtMs: draft.nowMs,
    system: false,
  };
}

function checkClassCount(draft: Draft): void {
  if (draft.classCount < CLASSES_PER_TENANT_MAX) return;
  throw new AppError("too_large", `[Valid] A tenant has at most ${CLASSES_PER_TENANT_MAX} classes.`, {
    details: { limit: "CLASSES_PER_TENANT_MAX" },
  });
}

/** The columns that are not inherited. An inherited column may be listed again with the same type. */
function newColumns(draft: Draft, path: string, specs: readonly ColumnSpec[]): ColumnDefinition[] {
  const known = draft.columns(path);
  const columns = new Map<string, ColumnDefinition>();
  for (const spec of specs) {
    if (PSEUDO_COLUMNS.has(spec.name)) continue;
    checkColumnName(spec.name);
    requireWellFormed(`[Valid] The title of column ${spec.name}`, spec.title ?? "");
    if (columns.has(spec.name)) throw new AppError("invalid", `[Valid] column ${spec.name} is named twice.`);
    const inherited = known.get(spec.name);
    if (inherited !== undefined) checkSameType(inherited, spec);
    else columns.set(spec.name, draft.numbered(spec));
  }
  if (known.size + columns.size > COLUMNS_PER_CLASS_MAX) {
    throw new AppError("too_large", `[Valid] A class has at most ${COLUMNS_PER_CLASS_MAX} columns.`, {
      details: { limit: "COLUMNS_PER_CLASS_MAX" },
    });
  }
  return [...columns.values()];
}

function checkSameType(inherited: ColumnDefinition, spec: ColumnSpec): void {
  if (inherited.name === TAGS_COLUMN) return;
  const same =
    inherited.type === spec.type &&
    (spec.elements === undefined || String(inherited.elements) === String(spec.elements));
  if (!same)
    throw new AppError("conflict", `[Valid] column ${spec.name} exists already with the type ${inherited.type}.`);
}

function newKeys(draft: Draft, definition: ClassDefinition, names: readonly string[]): string[] {
  if (names.length > 0 && definition.kind === "record") {
    throw new AppError("invalid", "[Valid] A record class has no keys: its ids are made of time.");
  }
  const inherited = new Set(draft.lineage(definition.path).flatMap((above) => above.keys));
  const keys = names.map((name) => requireColumn(draft, definition, definedName(draft, definition, name)).name);
  return [...new Set(keys)].filter((name) => !inherited.has(name));
}

function addColumn(draft: Draft, definition: ClassDefinition, spec: ColumnSpec): void {
  const taken = draft.columns(definition.path).has(spec.name) || PSEUDO_COLUMNS.has(spec.name);
  if (taken) throw new AppError("conflict", `[Valid] column ${spec.name} exists already.`);
  if (spec.sealed) throw new AppError("invalid", "[Valid] Only the platform's own classes have sealed columns.");
  const below = draft.below(definition.path).find((of) => of.columns.some((column) => column.name === spec.name));
  if (below !== undefined)
    throw new AppError("conflict", `[Valid] column ${spec.name} exists already in the subclass ${below.path}.`);
  draft.putClass({ ...definition, columns: [...definition.columns, ...newColumns(draft, definition.path, [spec])] });
}

function dropColumn(draft: Draft, definition: ClassDefinition, name: string): void {
  requireColumn(draft, definition, name);
  requireOwn(
    definition.columns.some((column) => column.name === name),
    `column ${name}`,
    definition,
  );
  // The classes below come first: their indexes are found by the column.
  const affected = [...draft.below(definition.path), definition];
  const keyed = affected.find((of) => of.keys.includes(name));
  if (keyed !== undefined) throw new AppError("conflict", `[Valid] column ${name} is a key of ${keyed.path}.`);
  for (const of of affected) {
    const kept = withoutIndex(draft, of, name);
    if (of === definition) draft.putClass({ ...kept, columns: of.columns.filter((column) => column.name !== name) });
    else if (kept !== of) draft.putClass(kept);
  }
}

function addKey(draft: Draft, definition: ClassDefinition, name: string): void {
  const added = newKeys(draft, definition, [name]);
  if (added.length === 0) throw new AppError("conflict", `[Valid] column ${name} is a key already.`);
  // The ids of existing objects do not contain this column, so only an index finds objects by it.
  const indexes = canBeIndexed(requireColumn(draft, definition, name).type)
    ? newIndexes(draft, definition, [name], new Set())
    : [];
  draft.putClass({ ...definition, keys: [...definition.keys, ...added], indexes: [...definition.indexes, ...indexes] });
}

function dropKey(draft: Draft, definition: ClassDefinition, name: string): void {
  requireOwn(definition.keys.includes(name), `key ${name}`, definition);
  const altered = { ...definition, keys: definition.keys.filter((key) => key !== name) };
  checkKeyMode(draft, altered);
  draft.putClass(altered);
}

function setOptions(draft: Draft, definition: ClassDefinition, options: Partial<ClassOptions>): void {
  const merged = mergeOptions(draft, definition, options);
  const versionTtlFormer = formerVersionTtl(draft, definition, merged.versionTtlSeconds);
  const altered = { ...definition, options: { ...merged, ...(versionTtlFormer && { versionTtlFormer }) } };
  checkKeyMode(draft, altered);
  draft.putClass(altered);
}

function checkKeyMode(draft: Draft, definition: ClassDefinition): void {
  if (definition.options.keyMode !== "md5") return;
  const inherited = draft
    .lineage(definition.path)
    .some((above) => above.path !== definition.path && above.keys.length > 0);
  if (definition.keys.length === 0 && !inherited)
    throw new AppError("invalid", `[Valid] class ${definition.path}: key=md5 needs keys.`);
}

/** Options of a class without objects, whose indexes are complete. */
function firstOptions(draft: Draft, definition: ClassDefinition, options: Partial<ClassOptions>): OptionsDefinition {
  const merged = mergeOptions(draft, definition, options);
  return {
    ...merged,
    ...(merged.words === undefined ? {} : { words: { ...merged.words, state: "ready" as const } }),
  };
}

/** A member that is present and `undefined` removes the option. */
function mergeOptions(draft: Draft, definition: ClassDefinition, change: Partial<ClassOptions>): OptionsDefinition {
  const before = definition.options;
  const ttlSeconds = "ttlSeconds" in change ? (change.ttlSeconds ?? FOR_EVER) : before.ttlSeconds;
  checkSeconds("ttl", ttlSeconds, 0);
  const versionTtlSeconds =
    "versionTtlSeconds" in change ? (change.versionTtlSeconds ?? FOR_EVER) : before.versionTtlSeconds;
  checkSeconds("versionttl", versionTtlSeconds, VERSION_TTL_MIN_SECONDS);
  const texts = { alias: text("alias"), nickname: text("nickname"), remedy: text("remedy") };
  const timeZone = "timeZone" in change ? knownZone(change.timeZone) : before.timeZone;
  const keyMode = "keyMode" in change ? change.keyMode : before.keyMode;
  const version = change.version ?? before.version;
  const autosearch = change.autosearch ?? before.autosearch;
  return {
    ...(keyMode === undefined ? {} : { keyMode }),
    ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
    ...texts,
    ...(version === undefined ? {} : { version }),
    ...(versionTtlSeconds === undefined ? {} : { versionTtlSeconds }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(autosearch === undefined ? {} : { autosearch }),
    ...wordsOf(draft, definition, autosearch),
    hints: { ...before.hints, ...change.hints },
  };

  function text(name: "alias" | "nickname" | "remedy"): string | undefined {
    if (!(name in change)) return before[name];
    requireWellFormed(`[Valid] ${name}`, change[name] ?? "");
    return change[name];
  }
}

function knownZone(name: string | undefined): string | undefined {
  if (name === undefined || zoneNamed(name)) return name;
  throw new AppError("invalid", `[Valid] time_zone: there is no time zone ${JSON.stringify(name)}.`);
}

function checkSeconds(option: string, seconds: number | undefined, least: number): void {
  if (seconds === undefined || seconds === FOR_EVER) return;
  if (Number.isFinite(seconds) && seconds > 0 && seconds >= least) return;
  const range = least === 0 ? "above zero" : `from ${least}`;
  throw new AppError("invalid", `[Valid] ${option} is a number of seconds ${range}.`);
}

/**
 * A version expires by the ttl that was set when it was superseded. So after a change to a longer ttl, versions that
 * were superseded until `untilMs` may have expired by the former ttl. After `CATALOG_LEASE_MS` every controller has
 * the new definition or lost its lease.
 */
function formerVersionTtl(
  draft: Draft,
  definition: ClassDefinition,
  own: number | undefined,
): FormerVersionTtl | undefined {
  const { versionTtlFormer: known, versionTtlSeconds } = definition.options;
  const above = definition.system ? [] : draft.lineage(definition.path).filter(({ path }) => path !== definition.path);
  const inherited = above.find(({ options }) => options.versionTtlSeconds !== undefined);
  const secondsOf = (seconds = inherited?.options.versionTtlSeconds ?? FOR_EVER): number =>
    seconds === FOR_EVER ? Infinity : seconds;
  const before = secondsOf(versionTtlSeconds);
  if (before === Infinity || secondsOf(own) <= before) return known;
  const untilMs = draft.nowMs + CATALOG_LEASE_MS;
  return { seconds: Math.min(before, known?.seconds ?? Infinity), untilMs };
}
