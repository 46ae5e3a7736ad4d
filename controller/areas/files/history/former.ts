import { createHash } from "node:crypto";
import type { Row } from "../../../../common/value.ts";
import { TAGS_COLUMN, type ObjectRef, type ObjectRow } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { entryOf, refOf, type FileEntry } from "../entries.ts";
import type { Place, Space } from "../names.ts";
import { HISTORY_CLASS } from "./classes.ts";

/** How files lost their contents. */
export interface Change {
  readonly cause: "replaced" | "removed";
  /** Milliseconds since 1970. The same in every attempt. */
  readonly atMs: number;
  /** Key of the removal; absent for a replacement. */
  readonly removal?: string;
  /** The path that the removal named. Absent: every entry of it was named. */
  readonly top?: string;
}

/** A file or folder as it was before it was replaced or removed. */
export interface FormerFile {
  readonly key: string;
  readonly entry: FileEntry;
  readonly cause: Change["cause"];
  readonly removal: string;
  readonly isTop: boolean;
  readonly atMs: number;
  /** User who replaced or removed it. */
  readonly user: string;
}

/**
 * The key of what an entry was. A mark belongs to one write of one file, so a repetition gives the same key. A folder
 * has no mark, and is kept once for each removal.
 */
export function keyOf(entry: Pick<FileEntry, "content" | "space" | "fullname">, removal = ""): string {
  const { content, space, fullname } = entry;
  const text = content ? `${content.digest} ${content.mark}` : `${removal} ${space}:${fullname}`;
  return createHash("sha256").update(text).digest("base64url");
}

export function historyRef({ ospace }: Principal, key: string): ObjectRef & { readonly class: string } {
  return { id: `filehistory:${key}`, class: ospace + HISTORY_CLASS.path };
}

export function rowOf({ user }: Principal, entry: FileEntry, { cause, atMs, removal = "", top }: Change): Row {
  const { space, fullname, content, ftype, size, owner, attr, tags, modifiedMs, indexed } = entry;
  const isTop = cause === "removed" && (top === undefined || top === fullname);
  return {
    ...{ held: keyOf(entry, removal), space, fullname, cause, removal, top: isTop ? "yes" : "no", at: atMs },
    ...{ changer: user, ftype, size, owner, attr, modified: modifiedMs, labels: JSON.stringify(tags), ...content },
    ...(indexed && { searched: "yes" }),
  };
}

export function formerOf(principal: Principal, { values }: Pick<ObjectRow, "values">): FormerFile {
  const place: Place = { space: String(values["space"]) as Space, fullname: String(values["fullname"]) };
  const { held, cause, removal, top, at, changer, ftype, size, owner, attr, modified, digest, mark, labels } = values;
  const indexed = values["searched"] === "yes";
  const [vtimeMs, tags] = [Number(at), JSON.parse(String(labels)) as string[]];
  const content = typeof digest === "string" ? { digest, mark: mark ?? "" } : {};
  const row = { ...place, ftype, size, owner, attr: attr ?? "", modified, indexed, [TAGS_COLUMN]: tags, ...content };
  return {
    key: String(held),
    entry: entryOf({ id: refOf(principal, place).id, values: row as Row, vtimeMs, ctimeMs: vtimeMs }),
    cause: cause === "removed" ? "removed" : "replaced",
    removal: String(removal ?? ""),
    isTop: top === "yes",
    atMs: Number(at),
    user: String(changer ?? ""),
  };
}
