import type { Principal } from "../../permissions/index.ts";
import { entryOf, refOf, type FileEntry, type HeldContent } from "../entries.ts";
import type { Place } from "../names.ts";
import { rowAt } from "../store.ts";

/** A file or folder as a version of its tree keeps it. */
export interface KeptEntry extends Pick<FileEntry, "ftype" | "size" | "owner" | "attr" | "tags" | "modifiedMs"> {
  /** Path below the root of the tree, with a slash in front; empty for the root itself. */
  readonly path: string;
  /** Absent: a folder. */
  readonly content: HeldContent | undefined;
}

export function keptOf(root: string, entry: FileEntry): KeptEntry {
  const { fullname, content, ftype, size, owner, attr, tags, modifiedMs } = entry;
  return { path: fullname.slice(root.length), content, ftype, size, owner, attr, tags, modifiedMs };
}

/** The entry as it would be stored in a tree with this root. */
export function fileEntryOf(principal: Principal, root: Place, kept: KeptEntry): FileEntry {
  const place = placeOfKept(root, kept.path);
  const { id } = refOf(principal, place);
  const unknown = {
    createdMs: kept.modifiedMs,
    versionMs: kept.modifiedMs,
    indexed: false,
    stamp: undefined,
    values: {},
  };
  const entry = { ...kept, ...place, id, ...unknown };
  const values = rowAt(place, entry, kept.content);
  return entryOf({ id, values, vtimeMs: kept.modifiedMs, ctimeMs: kept.modifiedMs });
}

export function placeOfKept({ space, fullname }: Place, path: string): Place {
  return { space, fullname: fullname + path };
}

/** True if both are files of the same content, or neither is a file. */
export function hasSameContent(one: KeptEntry | undefined, other: KeptEntry | undefined): boolean {
  return one?.content?.digest === other?.content?.digest;
}

/** True if both are equal in everything that a pull restores. */
export function isSameEntry(one: KeptEntry | undefined, other: KeptEntry | undefined): boolean {
  return one !== undefined && other !== undefined && restored(one) === restored(other);
}

function restored({ content, ftype, size, owner, attr, tags, modifiedMs }: KeptEntry): string {
  return JSON.stringify([content?.digest, ftype, size, owner, attr, [...tags].sort(), modifiedMs]);
}

/** One line of JSON, without its line feed. */
export function lineOf({ path, content, ftype, size, owner, attr, tags, modifiedMs }: KeptEntry): string {
  return JSON.stringify([path, content?.digest ?? "", content?.mark ?? "", ftype, size, owner, modifiedMs, attr, tags]);
}

export function keptOfLine(line: string): KeptEntry {
  const [path, digest, mark, ftype, size, owner, modifiedMs, attr, tags] = JSON.parse(line) as Line;
  return { path, content: digest === "" ? undefined : { digest, mark }, ftype, size, owner, attr, tags, modifiedMs };
}

type Line = readonly [
  path: string,
  digest: string,
  mark: string,
  ftype: string,
  size: number,
  owner: string,
  modifiedMs: number,
  attr: string,
  tags: readonly string[],
];
