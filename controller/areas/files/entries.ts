import type { Stamp } from "../../../common/revisions.ts";
import type { Row } from "../../../common/value.ts";
import { TAGS_COLUMN, type ObjectRef, type ObjectRow } from "../objects/index.ts";
import { byRulesAlone, type Principal } from "../permissions/index.ts";
import { FILE_CLASS, STAMP_COLUMN } from "./classes.ts";
import { nameOf, parentOf, type Place, type Space } from "./names.ts";

/** The content of a file as its row refers to it. */
export interface HeldContent {
  readonly digest: string;
  /**
   * Name of the reference that keeps the content in the blob store. Every write uses a new one, so a replacement never
   * releases the content of another writer.
   */
  readonly mark: string;
}

/** A stored file or folder. */
export interface FileEntry extends Place {
  readonly id: string;
  /** Absent: a folder. */
  readonly content: HeldContent | undefined;
  readonly ftype: string;
  readonly size: number;
  readonly owner: string;
  /** JSON text of an object, or empty. */
  readonly attr: string;
  readonly tags: readonly string[];
  /** True if its content is included in the search. */
  readonly indexed: boolean;
  readonly modifiedMs: number;
  readonly createdMs: number;
  readonly versionMs: number;
  /** Stamp of the last change; absent if an older version made it. */
  readonly stamp: Stamp | undefined;
  /** All columns of its object. */
  readonly values: Row;
}

export function entryOf({ id, values, vtimeMs, ctimeMs }: Omit<ObjectRow, "class">): FileEntry {
  const { space, fullname, digest, mark, ftype, size, owner, attr, modified, indexed } = values;
  const tags = values[TAGS_COLUMN];
  const place = { space: String(space) as Space, fullname: String(fullname) };
  return {
    id,
    ...place,
    content:
      typeof digest === "string" ? { digest, mark: typeof mark === "string" ? mark : formerMark(place) } : undefined,
    ftype: String(ftype ?? ""),
    size: Number(size ?? 0),
    owner: String(owner ?? ""),
    attr: String(attr ?? ""),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    indexed: indexed === true,
    modifiedMs: Number(modified ?? vtimeMs),
    createdMs: ctimeMs,
    versionMs: vtimeMs,
    stamp: stampIn(values[STAMP_COLUMN]),
    values,
  };
}

function stampIn(value: unknown): Stamp | undefined {
  return typeof value === "string" && value !== "" ? (JSON.parse(value) as Stamp) : undefined;
}

/** The mark of files that an older version wrote, which did not use a new mark for each write. */
function formerMark({ space, fullname }: Place): string {
  return `file/${space}${fullname}`;
}

/** The columns that are derived from the place. */
export function placeColumns({ space, fullname }: Place): Row {
  return { space, fullname, name: nameOf(fullname), parent: parentOf(fullname) };
}

export function refOf({ ospace }: Principal, { space, fullname }: Place): ObjectRef & { readonly class: string } {
  const key = `${space}:${fullname.replace(/[\\:]/g, "\\$&")}`;
  return { id: `filesystem:${key}`, class: `${ospace}${FILE_CLASS.path}` };
}

/** One list for all principals: what is derived from rules is kept by their list. */
const ALL_DATA: Principal["data"] = [{ class: "/", access: "write" }];

/** Each call accesses several rows with the same principal. */
const platforms = new WeakMap<Principal, Principal>();

/** The service has already checked the permissions on files, so rows are accessed with the platform's rights. */
export function platform(principal: Principal): Principal {
  let known = platforms.get(principal);
  if (known === undefined) {
    known = { ...byRulesAlone(principal, "files:read"), data: ALL_DATA };
    platforms.set(principal, known);
  }
  return known;
}
