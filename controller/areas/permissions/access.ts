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

/** A class as far as rules ask of it. */
interface RuledClass {
  readonly path: string;
  /** Absent: which fields it has is not known here, and it is taken to have those that a condition asks for. */
  readonly columns?: readonly { readonly name: string }[];
  /** As of `ClassView`. */
  readonly recordColumns?: readonly { readonly name: string }[];
  /** Absent: nobody closes objects beside the rules. */
  readonly guard?: { readonly limit?: RowLimit; readonly reading?: ClassReading } | undefined;
}

type Rights = Pick<Principal, "data">;
/** Classes of the platform ask for grants as well. */
type ReadingRights = Pick<Principal, "data" | "grants" | "byToken">;

/**
 * What the principal may do with objects of a class. A path alone stands for a class of the tenant, or for one of the
 * platform whose permission the caller has asked for.
 */
export function classAccess(rights: ReadingRights, target: string | RuledClass): ClassAccess {
  const view = typeof target === "string" ? { path: target } : target;
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

/** Finds the missing permission that closes a class to the principal. `undefined`: rules alone decide. */
export function closingOf(
  rights: Omit<ReadingRights, "data">,
  { guard }: Pick<RuledClass, "guard">,
): ClassReading | undefined {
  const reading = guard?.reading;
  if (reading === undefined || allows(rights, reading.permission)) return undefined;
  return reading.isOpenToGroups && rights.byToken !== "part" ? undefined : reading;
}

/** Principals of the same data rules (the same list) and the same key have the same access to every class. */
export function accessKey({ grants, byToken }: Omit<ReadingRights, "data">): string {
  return `${byToken === "part" ? "part " : ""}${grants.join()}`;
}

/**
 * Whether the rules open every value of the class for reading. One part alone has to open them all: several may have
 * all rows between them, and all columns, and still leave out cells.
 */
export function seesWhole({ parts }: Pick<ClassAccess, "parts">): boolean {
  return parts.some(({ where, hidden }) => where === undefined && hidden.size === 0);
}

/** `seesWhole` of each of these classes, of which their owners close nothing. */
export function seesAll(principal: Principal, views: readonly RuledClass[]): boolean {
  return views.every((view) => seesWhole(classAccess(principal, view)) && rowLimit(principal, view) === undefined);
}

/** What the owner of the class leaves of it to the principal, beside the rules; `undefined`: all. */
export function rowLimit(principal: Principal, view: Pick<RuledClass, "guard"> | undefined): RowTest | undefined {
  return view?.guard?.limit?.of(principal);
}

/** Of each group, and of the user's own rules, the one that decides for the class, if there is one. */
export function decidingRules({ data }: Rights, path: string): readonly DataRule[] {
  return ruleSets(data).flatMap((rules) => decidingRule(rules, path) ?? []);
}

/** Whether one group alone opens all rows and columns of the class and of those below it for writing. */
export function isUnrestricted({ data }: Rights, path: string): boolean {
  return ruleSets(data).some((rules) => {
    const deciding = decidingRule(rules, path);
    const below = rules.filter((rule) => rule.class !== path && isInside(path, rule.class));
    return deciding !== undefined && [deciding, ...below].every(isWhole);
  });
}

/** True when one rule alone opens all rows and columns of the class for writing. */
export function writesAll(rights: Rights, path: string): boolean {
  return decidingRules(rights, path).some(isWhole);
}

function isWhole({ access, where, hidden = [], shown, anywhere = [] }: DataRule): boolean {
  return (
    access === "write" && where === undefined && hidden.length === 0 && shown === undefined && anywhere.length === 0
  );
}

/** By group, in the order in which the groups come. */
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
  const asked = (rule.anywhere ?? []).filter(({ fields }) => fields.every((name) => isField(view, name)));
  const conditions = [...(rule.where === undefined ? [] : [rule.where]), ...asked.map(({ where }) => where)];
  if (rule.rowsOnly && conditions.length === 0) return undefined;
  return { writable: rule.access === "write", where: either(conditions), hidden: hiddenBy(rule, withheld, view) };
}

/** Fields that every object has, whatever its class. */
export const FIELDS_OF_ALL: ReadonlySet<string> = new Set(["id", "class", "day", "vtime", "ctime", "mtime"]);

/** Column of records: how the record differs from what was written at its source. */
export const MARKS_FIELD = "marks";
/** Column of records: the bytes of a record that are no text. */
export const RAW_BYTES_FIELD = "_rawbytes";

/** As names in conditions are found: in any case. */
function isField({ columns, recordColumns = [] }: RuledClass, name: string): boolean {
  const lower = name.toLowerCase();
  if (columns === undefined || FIELDS_OF_ALL.has(lower)) return true;
  return [...columns, ...recordColumns].some((column) => column.name.toLowerCase() === lower);
}

const NONE_HIDDEN: HiddenColumns = new Set<string>();

/** The raw bytes of a record say what any of its columns says, so they are hidden where one of these is. */
function hiddenBy(
  { hidden: byRule = [], shown }: DataRule,
  withheld: readonly string[],
  { recordColumns = [] }: RuledClass,
): HiddenColumns {
  const hidden = [...byRule, ...withheld];
  if (shown !== undefined) return new AllBut(shown, hidden);
  if (hidden.length === 0) return NONE_HIDDEN;
  return new Set([...hidden, ...recordColumns.map(({ name }) => name).filter((name) => name === RAW_BYTES_FIELD)]);
}

class AllBut implements HiddenColumns {
  readonly size = Infinity;
  readonly #shown: ReadonlySet<string>;

  constructor(shown: readonly string[], hidden: readonly string[]) {
    this.#shown = new Set(shown.filter((name) => !hidden.includes(name)));
  }

  has(column: string): boolean {
    return !this.#shown.has(column) && !FIELDS_OF_ALL.has(column);
  }

  /** Whether every column that the other one shows is shown by this, too. */
  showsAllOf(other: HiddenColumns): boolean {
    return other instanceof AllBut && [...other.#shown].every((name) => this.#shown.has(name));
  }
}

/** Whether the other part opens nothing that this one does not. */
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
