import type { Edit, SystemClass } from "../objects/index.ts";
import { pathVisible, type Principal, type RowLimit } from "../permissions/index.ts";
import { mayNameSystem } from "./spaces.ts";

export const FILE_CLASS = {
  path: "/filesystem",
  columns: [
    { name: "space", type: "varchar", title: "File space" },
    { name: "fullname", type: "varchar", title: "Path" },
    { name: "name", type: "varchar", title: "Name" },
    { name: "parent", type: "varchar", title: "Folder" },
    { name: "ftype", type: "varchar", title: "Type" },
    { name: "size", type: "bigint", title: "Bytes" },
    { name: "owner", type: "varchar", title: "Owner" },
    { name: "attr", type: "varchar", title: "Attributes, JSON text" },
    { name: "digest", type: "varchar", title: "SHA-256 of the content" },
    { name: "modified", type: "timestamp", title: "Last change of the content" },
    { name: "mark", type: "varchar", sealed: true },
  ],
  keys: ["space", "fullname"],
  indexes: ["name", "parent", "ftype"],
  guard: { reading: { permission: "files:read", isOpenToGroups: true } },
} as const satisfies SystemClass;

/** Methods of the file service that the class of files uses. */
interface FileOwner {
  retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean>;
}

/**
 * Limits the rows to the user's open paths. A file on a closed path does not exist for the user; a folder above an open
 * path is visible itself. Only administrators see rows of the system's space.
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
