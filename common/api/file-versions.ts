import { Type } from "typebox";
import { FILE_VERSIONS_PAGE_DEFAULT, FILE_VERSIONS_PAGE_MAX } from "../limits.ts";
import { PATH_BELOW } from "./documented.ts";

const Path = {
  "*": Type.String({ documented: PATH_BELOW }),
  issys: Type.Optional(
    Type.Boolean({ description: "In the system's space, not in the users'. For administrators only" }),
  ),
};
const Version = Type.String({ description: "Name of the version: no slash, at most 128 bytes" });
const Keyspace = Type.String({ description: "The tenant's name space without the slash in front" });

/** Input of a push, a pull, or the deletion of a version. */
export const VersionInput = Type.Object({ ...Path, version: Version });
export const SnapshotInput = Type.Object(Path);
export const LocalPath = Type.Object({ keyspace: Keyspace, "*": Path["*"] });
export const LocalRemoval = Type.Object({ keyspace: Keyspace, ...Path });

export const ChangedFiles = Type.Integer({
  description: "Files whose content differed; those on one side only are among them",
});

export const VersionList = Type.Object({
  ...Path,
  after: Type.Optional(Type.String({ description: "The member next of the answer's meta: the page behind it" })),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: FILE_VERSIONS_PAGE_MAX,
      description: `Versions in a page; ${FILE_VERSIONS_PAGE_DEFAULT} when absent`,
    }),
  ),
});

export const VersionRecord = Type.Object({
  name: Type.String({ description: "Name of the version" }),
  user: Type.String({ description: "Who kept it" }),
  time: Type.Integer({ description: "When it was kept, in milliseconds since 1970" }),
  entries: Type.Optional(
    Type.Integer({
      description: "Files and folders, the root included; absent when rules hide some files or columns from the caller",
    }),
  ),
  bytes: Type.Optional(Type.Integer({ description: "Bytes of all contents; absent like entries" })),
});
