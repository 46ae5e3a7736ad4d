import { Type } from "typebox";
import { FILE_TRASH_PAGE_DEFAULT, FILE_TRASH_PAGE_MAX } from "../limits.ts";
import { PATH_BELOW } from "./documented.ts";

const IsSystem = Type.Optional(
  Type.Boolean({ description: "In the system's space, not in the users'. For administrators only" }),
);
const Path = { "*": Type.String({ documented: PATH_BELOW }), issys: IsSystem };

export const HistoryInput = Type.Object(Path);

export const RestoreInput = Type.Object({
  ...Path,
  key: Type.String({ description: "Key of the former file or folder, as the history or the trash answers it" }),
});

export const RestoredFiles = Type.Integer({ description: "Files that were restored" });

export const PurgeInput = Type.Object({
  ...Path,
  key: Type.Optional(
    Type.String({
      description: "As of a restore. Absent: all former contents of the file; its content at the moment stays",
    }),
  ),
});

export const PurgedFiles = Type.Integer({ description: "Contents that were purged" });

export const TrashInput = Type.Object({
  path: Type.Optional(Type.String({ description: "Folder; all of the space when absent" })),
  issys: IsSystem,
  after: Type.Optional(Type.String({ description: "The member next of the answer's meta: the page behind it" })),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: FILE_TRASH_PAGE_MAX,
      description: `Entries in a page; ${FILE_TRASH_PAGE_DEFAULT} when absent`,
    }),
  ),
});

export const FormerFileRecord = Type.Object({
  key: Type.String({ description: "Names it in a restore" }),
  path: Type.String({ description: "Path at which it was" }),
  type: Type.Union([Type.Literal("file"), Type.Literal("dir")], { description: "Kind of entry" }),
  cause: Type.Union([Type.Literal("replaced"), Type.Literal("removed")], {
    description: "What ended it: a write of other content, or a removal",
  }),
  time: Type.Integer({ description: "When it was replaced or removed, in milliseconds since 1970" }),
  user: Type.String({ description: "Who replaced or removed it; empty when a rule hides the owner" }),
  size: Type.Integer({ description: "Bytes of the content; 0 for a folder, and when a rule hides them" }),
  owner: Type.String({ description: "Who wrote the content; empty when a rule hides it" }),
  modified: Type.Integer({ description: "When the content was written, in milliseconds since 1970" }),
});
