import { isInside } from "../../../common/paths.ts";
import { allows } from "./grants.ts";
import type {
  AccessPart,
  ClassAccess,
  ClassReading,
  DataRule,
  HiddenColumns,
  Principal,
  RowLimit,
  RowTest,
} from "./types.ts";

/** The parts of a class that rules are checked against. */
interface RuledClass {
  readonly path: string;
  /** Absent: the columns are not known here. The class then counts as having every field that a condition names. */
  readonly columns?: readonly { readonly name: string }[];
  /** See `ClassView`. */
  readonly recordColumns?: readonly { readonly name: string }[];
  /** Absent: the owner of the class hides no objects. */
  readonly guard?: { readonly limit?: RowLimit; readonly reading?: ClassReading } | undefined;
}

type Rights = Pick<Principal, "data">;
/** Rights for reading. Classes of the platform need grants in addition to rules. */
type ReadingRights = Pick<Principal, "data" | "grants" | "byToken">;

/**
 * Rights of the principal on objects of a class. If only a path is given, it must be that of a class of the tenant, or
 * of a class of the platform. In the second case the caller must have checked the permission already.
 */
export function classAccess(rights: ReadingRights, target: string | RuledClass): ClassAccess {
  if (typeof target === "string") return accessTo(rights, { path: target });
  let ofRules = accesses.get(rights.data);
  if (ofRules === undefined) accesses.set(rights.data, (ofRules = new WeakMap()));
  const known = ofRules.get(target);
  if (known?.grants === rights.grants && known.byToken === rights.byToken) return known.access;
  const access = accessTo(rights, target);
  ofRules.set(target, { grants: rights.grants, byToken: rights.byToken, access });
  return access;
}

/** The last answer of `classAccess` by rules and class: each row that is read asks for it. */
const accesses = new WeakMap<
  Principal["data"],
  WeakMap<RuledClass, Pick<ReadingRights, "grants" | "byToken"> & { readonly access: ClassAccess }>
>();

function accessTo(rights: ReadingRights, view: RuledClass): ClassAccess {
  const reading = view.guard?.reading;
  const isPermitted = reading === undefined || allows(rights, reading.permission);
  if (closingOf(rights, view) !== undefined) return NO_ACCESS;
  const withheld = isPermitted ? undefined : reading.withheld;
  const parts: AccessPart[] = [];
  for (const rules of ruleSets(rights.data)) {
    const rule = decidingRule(rules, view.path);
    const part = rule && (isPermitted || rule.group !== undefined) ? partOf(rule, view, withheld) : undefined;
    if (part && !parts.some((other) => covers(other, part))) {
      const kept = parts.filter((other) => !covers(part, other));
      parts.splice(0, parts.length, ...kept, part);
    }
  }
  return accessOf(parts);
}

/**
 * The permission that closes a class to the principal because the principal lacks it. `undefined`: only the rules
 * decide. The principal has the permission, or the class is also open to rights of groups (`isOpenToGroups`).
 */
export function closingOf(
  rights: Omit<ReadingRights, "data">,
  { guard }: Pick<RuledClass, "guard">,
): ClassReading | undefined {
  const reading = guard?.reading;
  if (reading === undefined || allows(rights, reading.permission)) return undefined;
  return reading.isOpenToGroups && rights.byToken !== "part" ? undefined : reading;
}

/**
 * Key of the grants for caches. Principals with the same key and the same list of data rules have the same access to
 * every class.
 */
export function accessKey({ grants, byToken }: Omit<ReadingRights, "data">): string {
  return `${byToken === "part" ? "part " : ""}${grants.join()}`;
}

/**
 * True if the rules let the principal read every value of the class. One part must open all of them: several parts can
 * together open all rows and all columns, and still not every cell.
 */
export function seesWhole({ parts }: Pick<ClassAccess, "parts">): boolean {
  return parts.some(({ where, hidden }) => where === undefined && hidden.size === 0);
}

/** True if `seesWhole` is true for each of these classes and no owner hides objects of them. */
export function seesAll(principal: Principal, views: readonly RuledClass[]): boolean {
  return views.every((view) => seesWhole(classAccess(principal, view)) && rowLimit(principal, view) === undefined);
}

/** The test that the owner of the class applies to objects in addition to the rules; `undefined`: none. */
export function rowLimit(principal: Principal, view: Pick<RuledClass, "guard"> | undefined): RowTest | undefined {
  return view?.guard?.limit?.of(principal);
}

/** The rules that decide for the class: at most one of each group, and at most one of the user's own rules. */
export function decidingRules({ data }: Rights, path: string): readonly DataRule[] {
  return ruleSets(data).flatMap((rules) => decidingRule(rules, path) ?? []);
}

/**
 * True if one group alone, or the user's own rules, open the class and all classes below it completely. Completely
 * means all rows and columns, for writing.
 */
export function isUnrestricted({ data }: Rights, path: string): boolean {
  return ruleSets(data).some((rules) => {
    const deciding = decidingRule(rules, path);
    const below = rules.filter((rule) => rule.class !== path && isInside(path, rule.class));
    return deciding !== undefined && [deciding, ...below].every(isWhole);
  });
}

/** True if one rule alone opens all rows and columns of the class for writing. */
export function writesAll(rights: Rights, path: string): boolean {
  return decidingRules(rights, path).some(isWhole);
}

function isWhole({ access, where, hidden = [], shown, anywhere = [] }: DataRule): boolean {
  return (
    access === "write" && where === undefined && hidden.length === 0 && shown === undefined && anywhere.length === 0
  );
}

/** Cache of the rules by group, in the order of the groups. */
const sets = new WeakMap<Principal["data"], readonly (readonly DataRule[])[]>();

function ruleSets(data: Principal["data"]): readonly (readonly DataRule[])[] {
  let known = sets.get(data);
  if (known === undefined) {
    const byGroup = new Map<string | undefined, DataRule[]>();
    for (const rule of data) byGroup.set(rule.group, [...(byGroup.get(rule.group) ?? []), rule]);
    sets.set(data, (known = [...byGroup.values()]));
  }
  return known;
}

function decidingRule(rules: readonly DataRule[], path: string): DataRule | undefined {
  let best: DataRule | undefined;
  for (const rule of rules) {
    if (isInside(rule.class, path) && rule.class.length >= (best?.class.length ?? 0)) best = rule;
  }
  return best;
}

function partOf(rule: DataRule, view: RuledClass, withheld: readonly string[] = []): AccessPart | undefined {
  if (rule.access === "none") return undefined;
  const conditions = conditionsOf(rule, view);
  if (rule.rowsOnly && conditions.length === 0) return undefined;
  return { writable: rule.access === "write", where: either(conditions), hidden: hiddenBy(rule, withheld, view) };
}

/** The conditions of the rule that apply to the class. A row must fulfil one of them; without any, all rows do. */
export function conditionsOf({ where, anywhere = [] }: DataRule, view: RuledClass): readonly string[] {
  const asked = anywhere.filter(({ fields }) => fields.every((name) => isField(view, name)));
  return [...(where === undefined ? [] : [where]), ...asked.map((one) => one.where)];
}

/** Fields that every object of every class has. */
export const FIELDS_OF_ALL: ReadonlySet<string> = new Set(["id", "class", "day", "vtime", "ctime", "mtime"]);

/** Column of records with the marks that say how the record differs from the text at its source. */
export const MARKS_FIELD = "marks";
/** Column of records with the raw bytes of a record whose text is invalid in its encoding. */
export const RAW_BYTES_FIELD = "_rawbytes";

/**
 * True if `_rawbytes` in a condition on these classes means the platform's column. That is not so if an edge type has
 * this name, in upper or lower case.
 */
export function hasRawBytes(
  views: readonly Pick<RuledClass, "recordColumns">[],
  edgeTypes: readonly { readonly name: string }[],
): boolean {
  const has = (columns: readonly { readonly name: string }[]): boolean =>
    columns.some(({ name }) => name.toLowerCase() === RAW_BYTES_FIELD);
  return views.some(({ recordColumns = [] }) => has(recordColumns)) && !has(edgeTypes);
}

/**
 * True if a condition without a path may use the name as a field of the class. Upper and lower case do not matter.
 * Columns that the platform adds to records do not count: otherwise the condition would apply to every class of
 * records.
 */
function isField({ columns }: RuledClass, name: string): boolean {
  const lower = name.toLowerCase();
  if (columns === undefined || FIELDS_OF_ALL.has(lower)) return true;
  return columns.some((column) => column.name.toLowerCase() === lower);
}

const NONE_HIDDEN: HiddenColumns = new Set<string>();

/**
 * The columns that the rule hides. The raw bytes of a record contain the values of all its columns. So if the rule or
 * the owner of the class names a hidden column, the raw bytes are hidden, too, even if the rule lists them in `shown`.
 * Otherwise a user from whom a column is hidden could give others the right to read it.
 */
function hiddenBy(
  { hidden: byRule = [], shown }: DataRule,
  withheld: readonly string[],
  view: RuledClass,
): HiddenColumns {
  const named = [...called(byRule, view), ...withheld];
  const { recordColumns = [] } = view;
  const hasRaw = named.length > 0 && recordColumns.some(({ name }) => name === RAW_BYTES_FIELD);
  const hidden = namesOf(hasRaw ? [...named, RAW_BYTES_FIELD] : named, view);
  if (shown === undefined) return hidden.size === 0 ? NONE_HIDDEN : hidden;
  const open = called(shown, view).filter((name) => !hidden.has(name));
  return new AllBut(namesOf(open, view));
}

/** The set of names. If the columns of the class are not known here, it ignores upper and lower case. */
function namesOf(names: readonly string[], { columns }: RuledClass): ReadonlySet<string> {
  return columns === undefined ? new NamesInAnyCase(names) : new Set(names);
}

class NamesInAnyCase extends Set<string> {
  constructor(names: readonly string[]) {
    super(names.map((name) => name.toLowerCase()));
  }

  override has(name: string): boolean {
    return super.has(name.toLowerCase());
  }
}

/**
 * The names, together with the columns that differ from a name only in case. Such columns are added only if no column
 * has exactly that name.
 */
function called(names: readonly string[], { columns = [], recordColumns = [] }: RuledClass): readonly string[] {
  if (names.length === 0) return names;
  const known = [...columns, ...recordColumns].map(({ name }) => name);
  return names.flatMap((name) => {
    const lower = name.toLowerCase();
    return known.includes(name) ? [name] : [name, ...known.filter((one) => one.toLowerCase() === lower)];
  });
}

class AllBut implements HiddenColumns {
  readonly size = Infinity;
  readonly #shown: ReadonlySet<string>;

  constructor(shown: ReadonlySet<string>) {
    this.#shown = shown;
  }

  has(column: string): boolean {
    return !this.#shown.has(column) && !FIELDS_OF_ALL.has(column);
  }

  /** True if this part shows every column that the other one shows. */
  showsAllOf(other: HiddenColumns): boolean {
    return other instanceof AllBut && [...other.#shown].every((name) => this.#shown.has(name));
  }
}

/** True if the other part opens nothing that this part does not open. */
function covers(part: AccessPart, other: AccessPart): boolean {
  const hasRows = part.where === undefined || part.where === other.where;
  return hasRows && (part.writable || !other.writable) && hasColumns(part.hidden, other.hidden);
}

function hasColumns(hidden: HiddenColumns, other: HiddenColumns): boolean {
  if (hidden instanceof AllBut) return hidden.showsAllOf(other);
  return [...(hidden as ReadonlySet<string>)].every((name) => other.has(name));
}

const NO_ACCESS: ClassAccess = { readable: false, writable: false, where: undefined, hidden: NONE_HIDDEN, parts: [] };

function accessOf(parts: readonly AccessPart[]): ClassAccess {
  const [first, second] = parts;
  if (first === undefined) return NO_ACCESS;
  if (second === undefined) return { ...first, readable: true, parts };
  const conditions = new Set(parts.map(({ where }) => where));
  return {
    readable: true,
    writable: parts.some(({ writable }) => writable),
    where: conditions.has(undefined) ? undefined : either([...conditions].filter((text) => text !== undefined)),
    hidden: hiddenInAll(parts),
    parts,
  };
}

function hiddenInAll(parts: readonly AccessPart[]): HiddenColumns {
  if (parts.some(({ hidden }) => hidden.size === 0)) return NONE_HIDDEN;
  return { size: Infinity, has: (column) => parts.every(({ hidden }) => hidden.has(column)) };
}

function either(conditions: readonly string[]): string | undefined {
  return conditions.length > 1 ? conditions.map((text) => `(${text})`).join(" OR ") : conditions[0];
}
