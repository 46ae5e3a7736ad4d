import { AppError } from "../../../common/errors.ts";
import type { Row } from "../../../common/value.ts";
import { TAGS_COLUMN, type Objects, type ObjectRow } from "../objects/index.ts";
import { byRulesAlone, decidingRules, isUnrestricted, type DataRule, type Principal } from "../permissions/index.ts";
import { rowFilter, type RowFilter } from "../query/index.ts";
import { FILE_CLASS } from "./classes.ts";
import { entryOf, refOf, type FileEntry } from "./entries.ts";
import type { Place } from "./names.ts";

/** What becomes of a file or folder: made where `before` is absent, removed where `after` is. */
export interface FileChange {
  readonly before?: FileEntry | undefined;
  /** What is written; columns that it lacks stay as they were. */
  readonly after?: Row | undefined;
  /** Columns that the caller changes, by name. */
  readonly columns: readonly string[];
}

/** What a principal may see and change of files where rules speak of their class: what MQL shows, and lets be written. */
export interface FileSight {
  /** Those rules; absent: nothing is closed. */
  readonly rules?: readonly DataRule[];
  /** Without what is hidden, as if it were not set; `undefined`: there is no such file for the principal. */
  shown(entry: FileEntry): FileEntry | undefined;
  /** `AppError("denied")` where the digest is hidden: who reads the content knows it. */
  requireContent(entry: FileEntry): void;
  /** `AppError("denied")` unless all of it is seen: what was hidden could be shown where it goes. */
  requireAllOf(entry: FileEntry): void;
  /** `AppError("denied")` where the principal does not see it before and after, or may not write these columns of it. */
  requireWriting(place: Place, change: FileChange): void;
}

export const WHOLE_SIGHT: FileSight = {
  shown: (entry) => entry,
  requireContent: () => undefined,
  requireAllOf: () => undefined,
  requireWriting: () => undefined,
};

export interface SightDependencies {
  readonly objects: Pick<Objects, "catalog">;
  readonly nowMs: () => number;
}

/** Where no rule speaks of files, the permission and the paths alone decide. */
export async function fileSight(principal: Principal, { objects, nowMs }: SightDependencies): Promise<FileSight> {
  const path = principal.ospace + FILE_CLASS.path;
  const rules = decidingRules(principal, path);
  if (!rules.some((rule) => speaksOf(rule, path)) || isUnrestricted(principal, path)) return WHOLE_SIGHT;
  return new RuledSight({
    principal,
    rules,
    nowMs,
    filter: rowFilter(byRulesAlone(principal, "files:read"), await objects.catalog(principal), path),
  });
}

/**
 * Those of the class itself, and those that open a class above it. What opens nothing there, or single rows of whatever
 * has their fields, was not written about files.
 */
function speaksOf({ class: root, access, rowsOnly }: DataRule, path: string): boolean {
  return root === path || (access !== "none" && rowsOnly === undefined);
}

/** All that is told of a file besides its place, and what names it. */
const TOLD = ["fullname", "ftype", "size", "owner", "attr", "digest", "modified", TAGS_COLUMN];

interface Sighted {
  readonly principal: Principal;
  readonly rules: readonly DataRule[];
  readonly filter: RowFilter;
  readonly nowMs: () => number;
}

type Filtered = Omit<ObjectRow, "class">;

class RuledSight implements FileSight {
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
    // What has no name for somebody cannot be told of.
    if (hidden.has("fullname")) return undefined;
    if (hidden.size === 0) return entry;
    const values = Object.fromEntries(Object.entries(entry.values).filter(([name]) => !hidden.has(name)));
    return { ...entryOf({ ...object, values }), space: entry.space, content: entry.content };
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
