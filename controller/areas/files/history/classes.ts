import type { SystemClass } from "../../objects/index.ts";
import { CONTENT_CLASS } from "../search/classes.ts";

/**
 * Files and folders as they were before they were replaced or removed. Objects of files are found by rules on their own
 * class, which do not apply here, so only administrators without such rules see these objects by MQL. Other users ask
 * `FileHistory`.
 */
export const HISTORY_CLASS = {
  path: "/system/filehistory",
  columns: [
    { name: "held", type: "varchar", title: "Key", meaning: "Key of the former file, as the history names it" },
    { name: "space", type: "varchar", title: "File space", meaning: "Tree that the file was in: user or system" },
    { name: "fullname", type: "varchar", title: "Path", meaning: "Path of the former file or folder in its tree" },
    { name: "cause", type: "varchar", title: "Cause", meaning: "replaced or removed: how the file lost its content" },
    {
      name: "removal",
      type: "varchar",
      title: "Removal",
      meaning: "Key of the removal, the same for a folder and all below it; empty for a replaced file",
    },
    {
      name: "top",
      type: "varchar",
      title: "Top",
      meaning: "yes for what a removal named; no for what was below it, and for a replaced file",
    },
    { name: "at", type: "timestamp", title: "Time", meaning: "Time at which it was replaced or removed" },
    { name: "changer", type: "varchar", title: "Changed by", meaning: "User who replaced or removed it" },
    { name: "ftype", type: "varchar", title: "Type", meaning: "Type of the file; dir for a folder" },
    { name: "size", type: "bigint", title: "Bytes", meaning: "Bytes of the former content; 0 for a folder" },
    { name: "owner", type: "varchar", title: "Owner", meaning: "User who wrote the former content" },
    { name: "attr", type: "varchar", title: "Attributes, JSON text", meaning: "Attributes that the file had" },
    {
      name: "digest",
      type: "varchar",
      title: "SHA-256 of the content",
      meaning: "SHA-256 of the former content, hexadecimal; empty for a folder",
    },
    {
      name: "modified",
      type: "timestamp",
      title: "Last change of the content",
      meaning: "Time of the last change of the former content",
    },
    { name: "labels", type: "varchar", sealed: true },
    // yes for a file whose content was searched. A version before this column stored none.
    { name: "searched", type: "varchar", sealed: true },
    { name: "mark", type: "varchar", sealed: true },
  ],
  keys: ["held"],
  indexes: ["fullname", "removal", "top", "at"],
  guard: CONTENT_CLASS.guard,
} as const satisfies SystemClass;
