import type { SystemClass } from "../../objects/index.ts";
import { isUnrestricted, type RowLimit } from "../../permissions/index.ts";
import { FILE_CLASS } from "../classes.ts";
import { mayNameSystem } from "../spaces.ts";

/**
 * Only administrators without rules on files see these objects by MQL. They belong to contents and not to paths, so no
 * rule on files can be applied to them. Other users search by `FileSearchService.search`.
 */
const ADMINISTRATORS: RowLimit = {
  columns: [],
  of: (principal) =>
    mayNameSystem(principal) && isUnrestricted(principal, principal.ospace + FILE_CLASS.path) ? undefined : () => false,
};

const GUARD = { reading: { permission: "files:read", isOpenToGroups: true }, limit: ADMINISTRATORS } as const;

/** Contents that were indexed, or could not be. A content has one object, for all files with it. */
export const CONTENT_CLASS = {
  path: "/system/filecontent",
  columns: [
    { name: "digest", type: "varchar", title: "SHA-256 of the content", meaning: "SHA-256 of the content" },
    {
      name: "state",
      type: "varchar",
      title: "State",
      meaning: "indexing, indexed or unindexed: the text is being stored, can be found, or could not be read",
    },
    {
      name: "reason",
      type: "varchar",
      title: "Reason",
      meaning: "Why the content, or a part of it, is not found; empty if all of it is",
    },
    { name: "passages", type: "int", title: "Passages", meaning: "Number of passages of its text" },
    { name: "extractor", type: "int", title: "Extractor", meaning: "Version of the extraction that made the passages" },
  ],
  keys: ["digest"],
  indexes: ["state"],
  guard: GUARD,
} as const satisfies SystemClass;

/** Parts of the texts of contents, which the index of words finds. */
export const PASSAGE_CLASS = {
  path: "/system/filepassage",
  columns: [
    { name: "digest", type: "varchar", title: "SHA-256 of the content", meaning: "SHA-256 of the content" },
    { name: "number", type: "int", title: "Number", meaning: "Number of the passage in its content, from 0" },
    {
      name: "position",
      type: "int",
      title: "Position",
      meaning: "Number of its first line, or of its page, from 1",
    },
    { name: "unit", type: "varchar", title: "Unit", meaning: "What the position counts: line or page" },
    { name: "text", type: "text", title: "Text", meaning: "Text of the passage" },
  ],
  keys: ["digest", "number"],
  options: { autosearch: true },
  guard: GUARD,
} as const satisfies SystemClass;
