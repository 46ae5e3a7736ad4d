import { AppError } from "../../../common/errors.ts";
import type { Row } from "../../../common/value.ts";
import { TAGS_COLUMN, type Objects, type ObjectRow, type VisibleClass } from "../objects/index.ts";
import { byRulesAlone, decidingRules, isUnrestricted, type DataRule, type Principal } from "../permissions/index.ts";
import { FILE_CLASS } from "./classes.ts";
import { entryOf, refOf, type FileEntry } from "./entries.ts";
import type { Place } from "./names.ts";

/** A change of a file or folder: created if `before` is absent, removed if `after` is absent. */
export interface FileChange {
  readonly before?: FileEntry | undefined;
  /** The columns written; other columns stay unchanged. */
  readonly after?: Row | undefined;
  /** Names of the columns that the caller changes. */
  readonly columns: readonly string[];
}

/** The files that a principal may see and change by the rules on the class of files. MQL applies the same rules. */
export interface FileVisibility {
  /** The rules that decide. Absent: no rule restricts files. */
  readonly rules?: readonly DataRule[];
  /** The entry without its hidden columns. `undefined`: for the principal the file does not exist. */
  shown(entry: FileEntry): FileEntry | undefined;
  /** `AppError("denied")` if the column `digest` is hidden, because a reader of the content could compute it. */
  requireContent(entry: FileEntry): void;
  /**
   * `AppError("denied")` unless the whole entry is visible. Otherwise a hidden column could become visible at the
   * target of a copy or move.
   */
  requireAllOf(entry: FileEntry): void;
  /**
   * `AppError("denied")` unless the principal sees the entry both before and after the change, and may write these
   * columns.
   */
  requireWriting(place: Place, change: FileChange): void;
}

export const ALL_VISIBLE: FileVisibility = {
  shown: (entry) => entry,
  requireContent: () => undefined,
  requireAllOf: () => undefined,
  requireWriting: () => undefined,
};

export interface SightDependencies {
  readonly objects: Pick<Objects, "visible">;
  readonly nowMs: () => number;
}

/** The principal's view of files. If no rule concerns files, only the permission and the open paths decide. */
export async function fileVisibility(
  principal: Principal,
  { objects, nowMs }: SightDependencies,
): Promise<FileVisibility> {
  const path = principal.ospace + FILE_CLASS.path;
  const rules = decidingRules(principal, path);
  if (!rules.some((rule) => speaksOf(rule, path)) || isUnrestricted(principal, path)) return ALL_VISIBLE;
  return new RuledSight({
    principal,
    rules,
    nowMs,
    filter: await objects.visible.of(byRulesAlone(principal, "files:read"), path),
  });
}

/**
 * True if the rule concerns files: a rule on the class of files itself, or a rule that opens a whole class above it. A
 * rule on a class above is ignored if it opens nothing, or only rows that fulfil a condition.
 */
function speaksOf({ class: root, access, rowsOnly }: DataRule, path: string): boolean {
  return root === path || (access !== "none" && rowsOnly === undefined);
}

/** All columns that describe a file: its path, and everything that does not follow from the path. */
const TOLD = ["fullname", "ftype", "size", "owner", "attr", "digest", "modified", TAGS_COLUMN];

interface Sighted {
  readonly principal: Principal;
  readonly rules: readonly DataRule[];
  readonly filter: VisibleClass;
  readonly nowMs: () => number;
}

type Filtered = Omit<ObjectRow, "class">;

class RuledSight implements FileVisibility {
  readonly #with: Sighted;

  constructor(sighted: Sighted) {
    this.#with = sighted;
  }

  get rules(): readonly DataRule[] {
    return this.#with.rules;
  }

  shown(entry: FileEntry): FileEntry | undefined {
    const { filter } = this.#with;
    const object = objectOf(entry);
    if (!filter.sees(object)) return undefined;
    const hidden = filter.hiddenIn(object);
    // An entry whose name is hidden cannot be shown.
    if (hidden.has("fullname")) return undefined;
    if (hidden.size === 0) return entry;
    const values = Object.fromEntries(Object.entries(entry.values).filter(([name]) => !hidden.has(name)));
    return { ...entryOf({ ...object, values }), space: entry.space, content: entry.content, stamp: entry.stamp };
  }

  requireContent(entry: FileEntry): void {
    if (this.#with.filter.hiddenIn(objectOf(entry)).has("digest")) throw this.#denied(entry, "read the content of");
  }

  requireAllOf(entry: FileEntry): void {
    const object = objectOf(entry);
    const { filter } = this.#with;
    const hidden = filter.hiddenIn(object);
    if (!filter.sees(object) || TOLD.some((name) => hidden.has(name))) throw this.#denied(entry, "copy or move");
  }

  requireWriting(place: Place, { before, after, columns }: FileChange): void {
    const { filter, nowMs, principal } = this.#with;
    const was = before && objectOf(before);
    const id = before?.id ?? refOf(principal, place).id;
    const vtimeMs = nowMs();
    const will = after && { id, values: { ...was?.values, ...after }, vtimeMs, ctimeMs: was?.ctimeMs ?? vtimeMs };
    const change = { ...(was && { before: was }), ...(will && { after: will }) };
    if (!filter.mayWrite(columns, change)) throw this.#denied(place, "write");
  }

  #denied({ fullname }: Place, done: string): AppError {
    const { user, ospace } = this.#with.principal;
    const path = ospace + FILE_CLASS.path;
    return new AppError("denied", `${user} may not ${done} ${fullname}, by the rules for ${path}.`, {
      details: { class: path, path: fullname },
    });
  }
}

function objectOf({ id, values, versionMs, createdMs }: FileEntry): Filtered {
  return { id, values, vtimeMs: versionMs, ctimeMs: createdMs };
}
