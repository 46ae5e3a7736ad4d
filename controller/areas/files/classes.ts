import type { Edit, SystemClass } from "../objects/index.ts";
import { pathVisible, type Principal, type RowLimit } from "../permissions/index.ts";
import { mayNameSystem } from "./spaces.ts";

/** Column with the `Stamp` of the last change, as JSON. */
export const STAMP_COLUMN = "stamp";

export const FILE_CLASS = {
  path: "/filesystem",
  columns: [
    { name: "space", type: "varchar", title: "File space", meaning: "Tree that the file is in: user or system" },
    { name: "fullname", type: "varchar", title: "Path", meaning: "Path of the file or folder in its tree" },
    { name: "name", type: "varchar", title: "Name", meaning: "Last part of the path" },
    { name: "parent", type: "varchar", title: "Folder", meaning: "Path of the folder that it lies in" },
    {
      name: "ftype",
      type: "varchar",
      title: "Type",
      meaning: "dir for a folder; else the type as given, or the extension of the name",
    },
    { name: "size", type: "bigint", title: "Bytes", meaning: "Bytes of the content; 0 for a folder" },
    { name: "owner", type: "varchar", title: "Owner", meaning: "User who wrote the content, or made the folder" },
    {
      name: "attr",
      type: "varchar",
      title: "Attributes, JSON text",
      meaning: "Attributes, the JSON text of an object; empty for none",
    },
    {
      name: "digest",
      type: "varchar",
      title: "SHA-256 of the content",
      meaning: "SHA-256 of the content, hexadecimal; empty for a folder",
    },
    {
      name: "modified",
      type: "timestamp",
      title: "Last change of the content",
      meaning: "Time of the last change of the content",
    },
    { name: "mark", type: "varchar", sealed: true },
    {
      name: "indexed",
      type: "boolean",
      title: "Searched",
      meaning: "True for a file whose content is included in the search; empty or false for all others",
    },
    { name: STAMP_COLUMN, type: "varchar", sealed: true },
  ],
  keys: ["space", "fullname"],
  indexes: ["name", "parent", "ftype", "digest"],
  guard: { reading: { permission: "files:read", isOpenToGroups: true } },
} as const satisfies SystemClass;

/** Methods of the file service that the class of files uses. */
interface FileOwner {
  retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean>;
}

/**
 * Limits the rows to the user's open paths. A file on a closed path does not exist for the user. A folder that contains
 * an open path is visible itself. Only administrators see rows of the system's space.
 */
const OPEN_PATHS: RowLimit = {
  columns: ["space", "fullname"],
  of: (principal) =>
    mayNameSystem(principal)
      ? undefined
      : ({ space, fullname }) => space !== "system" && pathVisible(principal, String(fullname)),
};

export function fileClass(files: FileOwner): SystemClass {
  return {
    ...FILE_CLASS,
    guard: {
      ...FILE_CLASS.guard,
      permission: "files:write",
      limit: OPEN_PATHS,
      update: (principal, id, edits) => files.retag(principal, id, edits),
    },
  };
}
