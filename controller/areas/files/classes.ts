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

/** What the class of files needs of their service. */
interface FileOwner {
  retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean>;
}

/**
 * A path that is closed to a user has no file for that user; a folder above open ones shows itself. The system's space shows
 * itself to administrators only.
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
