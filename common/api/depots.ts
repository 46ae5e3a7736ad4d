import { Type, type Static } from "typebox";
import { DEPLOY_DEFAULT_S, DEPOT_COMMAND_MAX_CHARS, DEPOT_REMARK_MAX_CHARS } from "../limits.ts";
import { ABSOLUTE_PATH, ENCODING, FILE_NAME, having, PATH_BELOW } from "./documented.ts";
import { Revision } from "./revision.ts";
import { HostEntry } from "./targets.ts";

const Name = Type.String({ minLength: 1, maxLength: 255, documented: FILE_NAME });
const Version = Type.String({ pattern: "^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}$", description: "three numbers: 1.0.0" });
const Tags = Type.Array(Type.String({ maxLength: 500 }), { maxItems: 1_000 });

const description = {
  name: Name,
  version: Version,
  remark: Type.Optional(Type.String({ maxLength: DEPOT_REMARK_MAX_CHARS })),
  tags: Type.Optional(Tags),
  command: Type.Optional(
    Type.String({ maxLength: DEPOT_COMMAND_MAX_CHARS, description: "run in the depot's folder once it is in place" }),
  ),
};

const archive = {
  encoding: Type.Optional(
    Type.String({
      description: "Encoding of names in an archive that does not say their own, such as gbk; UTF-8 when absent",
      documented: ENCODING,
    }),
  ),
};

export const DepotCreate = Type.Object({ ...description, ...archive });
export const DepotUpdate = Type.Object({
  ...description,
  ...archive,
  overwrite: Type.Optional(Type.Boolean({ description: "replaces the files of a version that exists" })),
});

export const DepotList = Type.Object({});
export const DepotSelect = Type.Object({
  name: Name,
  version: Type.Optional(Type.String({ maxLength: 50, description: "empty: the newest" })),
});
const Force = Type.Optional(Type.Boolean({ description: "also what policies use" }));

export const DepotRemove = Type.Object({ ...DepotSelect.properties, force: Force });
const VERSION = { pattern: "^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}$" };

/** A path without a slash at its beginning. */
const FILE_BELOW = { pattern: PATH_BELOW.pattern.replace("^/*", "^") };

export const DepotFileSelect = Type.Object({
  name: Name,
  version: Version,
  filepath: Type.String({ minLength: 1, maxLength: 1_024, documented: FILE_BELOW }),
});
export const DepotDiffSelect = Type.Object({ name: Name, version: Version, compareVersion: Version });

const CHANGED = [having("content"), having("uploadfile"), { properties: { type: { enum: ["D"] } } }];

export const DepotFileChange = Type.Object(
  {
    name: Name,
    version: Version,
    newVersion: Version,
    filepath: Type.String({ minLength: 1, maxLength: 1_024, documented: FILE_BELOW }),
    type: Type.Union([Type.Literal("M"), Type.Literal("A"), Type.Literal("D")], { description: "modify, add, delete" }),
    content: Type.Optional(Type.String()),
    remark: description.remark,
    tags: description.tags,
  },
  { documented: { anyOf: CHANGED } },
);

export const DepotSummary = Type.Object({
  id: Type.String(),
  class: Type.String(),
  name: Type.String(),
  version: Type.String(),
  versions: Type.Array(Type.String()),
  remark: Type.String(),
  tags: Type.Array(Type.String()),
  command: Type.String(),
  status: Type.String(),
  filecount: Type.Integer(),
  size: Type.Integer({ description: "bytes" }),
  created: Type.Integer({ description: "milliseconds since 1970" }),
  creator: Type.String(),
  revision: Revision,
});
export type DepotSummary = Static<typeof DepotSummary>;

export const DepotRecord = Type.Object({
  ...DepotSummary.properties,
  files: Type.Array(
    Type.Object({
      path: Type.String(),
      digest: Type.String(),
      size: Type.Integer({ description: "bytes" }),
      executable: Type.Boolean(),
    }),
  ),
});
export type DepotRecord = Static<typeof DepotRecord>;

export const DepotDifference = Type.Object({
  path: Type.String(),
  change: Type.Union([Type.Literal("added"), Type.Literal("removed"), Type.Literal("modified")]),
  binary: Type.Boolean(),
  /** Absent for binary files, and for files that are too large or differ too much. */
  diff: Type.Optional(Type.String({ description: "unified diff" })),
});
export type DepotDifference = Static<typeof DepotDifference>;

const Hosts = Type.Array(HostEntry, { minItems: 1 });

export const Deployment = Type.Object({
  hosts: Hosts,
  depots: Type.Array(Name, { minItems: 1 }),
  versions: Type.Array(Type.String({ documented: VERSION }), { minItems: 1, description: "as many as depots" }),
  command: Type.Optional(Type.String({ maxLength: DEPOT_COMMAND_MAX_CHARS })),
  remotepath: Type.Optional(Type.String({ maxLength: 1_024, documented: { pattern: `^$|${ABSOLUTE_PATH.pattern}` } })),
  timeout: Type.Optional(Type.Integer({ minimum: 1, default: DEPLOY_DEFAULT_S, description: "seconds" })),
  force: Force,
});

/** Result of deploying one depot to one host. */
export const DeploymentOutcome = Type.Object({
  host: Type.String(),
  depot: Type.String(),
  version: Type.String(),
  state: Type.Union([
    Type.Literal("ok"),
    Type.Literal("failed"),
    Type.Literal("timeout"),
    Type.Literal("unreachable"),
    Type.Literal("cancelled"),
    Type.Literal("expired"),
  ]),
  code: Type.Optional(Type.Integer()),
  message: Type.String(),
  startedMs: Type.Number({ description: "milliseconds since 1970" }),
  endedMs: Type.Number({ description: "milliseconds since 1970" }),
});
export type DeploymentOutcome = Static<typeof DeploymentOutcome>;
