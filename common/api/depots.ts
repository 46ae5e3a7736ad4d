import { Type, type Static } from "typebox";
import { DEPLOY_DEFAULT_S, DEPOT_COMMAND_MAX_CHARS, DEPOT_REMARK_MAX_CHARS } from "../limits.ts";
import { ABSOLUTE_PATH, ENCODING, FILE_NAME, having, PATH_BELOW } from "./documented.ts";
import { Revision } from "./revision.ts";
import { HostEntry } from "./targets.ts";

const Name = Type.String({ minLength: 1, maxLength: 255, documented: FILE_NAME, description: "Name of the depot" });
const Version = Type.String({ pattern: "^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}$", description: "three numbers: 1.0.0" });
const Tags = Type.Array(Type.String({ maxLength: 500 }), { maxItems: 1_000, description: "Tags of the depot" });

const description = {
  name: Name,
  version: Version,
  remark: Type.Optional(
    Type.String({ maxLength: DEPOT_REMARK_MAX_CHARS, description: "Remark for people; stored and shown as it is" }),
  ),
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
  filepath: Type.String({
    minLength: 1,
    maxLength: 1_024,
    documented: FILE_BELOW,
    description: "Path of the file below the folder of the depot",
  }),
});
export const DepotDiffSelect = Type.Object({ name: Name, version: Version, compareVersion: Version });

const CHANGED = [having("content"), having("uploadfile"), { properties: { type: { enum: ["D"] } } }];

export const DepotFileChange = Type.Object(
  {
    name: Name,
    version: Version,
    newVersion: Version,
    filepath: Type.String({
      minLength: 1,
      maxLength: 1_024,
      documented: FILE_BELOW,
      description: "Path of the file below the folder of the depot",
    }),
    type: Type.Union([Type.Literal("M"), Type.Literal("A"), Type.Literal("D")], { description: "modify, add, delete" }),
    content: Type.Optional(
      Type.String({ description: "Text of the file, stored in UTF-8; a file part of this call keeps its bytes" }),
    ),
    remark: description.remark,
    tags: description.tags,
  },
  { documented: { anyOf: CHANGED } },
);

export const DepotSummary = Type.Object({
  id: Type.String({ description: "Id of the depot as an object" }),
  class: Type.String({ description: "Class of the depot as an object" }),
  name: Type.String({ description: "Name of the depot" }),
  version: Type.String({
    description: "Version that the call names, otherwise the newest",
  }),
  versions: Type.Array(Type.String(), { description: "All versions, the newest last" }),
  remark: Type.String({ description: "Remark of the version" }),
  tags: Type.Array(Type.String(), { description: "Tags of the version" }),
  command: Type.String({
    description: "Command line that runs in the depot's folder once it is in place; empty: none",
  }),
  status: Type.String({ description: "Always ok" }),
  filecount: Type.Integer({ description: "Number of files of the version" }),
  size: Type.Integer({ description: "bytes" }),
  created: Type.Integer({ description: "milliseconds since 1970" }),
  creator: Type.String({ description: "User who stored the files of the version" }),
  revision: Revision,
});
export type DepotSummary = Static<typeof DepotSummary>;

export const DepotRecord = Type.Object({
  ...DepotSummary.properties,
  files: Type.Array(
    Type.Object({
      path: Type.String({ description: "Path below the folder of the depot" }),
      digest: Type.String({ description: "SHA-256 of the content in hexadecimal digits" }),
      size: Type.Integer({ description: "bytes" }),
      executable: Type.Boolean({ description: "True: hosts may run the file" }),
    }),
    { description: "Files of the version" },
  ),
});
export type DepotRecord = Static<typeof DepotRecord>;

export const DepotDifference = Type.Object({
  path: Type.String({ description: "Path below the folder of the depot" }),
  change: Type.Union([Type.Literal("added"), Type.Literal("removed"), Type.Literal("modified")], {
    description: "What the second version did with the file",
  }),
  binary: Type.Boolean({ description: "True: the contents are no text, so there is no diff" }),
  /** Absent for binary files, and for files that are too large or differ too much. */
  diff: Type.Optional(Type.String({ description: "unified diff" })),
});
export type DepotDifference = Static<typeof DepotDifference>;

const Hosts = Type.Array(HostEntry, { minItems: 1 });

export const Deployment = Type.Object({
  hosts: Hosts,
  depots: Type.Array(Name, { minItems: 1, description: "Names of the depots" }),
  versions: Type.Array(Type.String({ documented: VERSION }), { minItems: 1, description: "as many as depots" }),
  command: Type.Optional(
    Type.String({
      maxLength: DEPOT_COMMAND_MAX_CHARS,
      description:
        "Command line in place of the depot's own. A deployment runs it once the files are in place, an undeployment before it removes them",
    }),
  ),
  remotepath: Type.Optional(
    Type.String({
      maxLength: 1_024,
      documented: { pattern: `^$|${ABSOLUTE_PATH.pattern}` },
      description: "Absolute path of the folder on the hosts that gets the files; empty: a folder of the agent",
    }),
  ),
  timeout: Type.Optional(Type.Integer({ minimum: 1, default: DEPLOY_DEFAULT_S, description: "seconds" })),
  force: Force,
});

/** Result of deploying one depot to one host. */
export const DeploymentOutcome = Type.Object({
  host: Type.String({ description: "Name of the host" }),
  depot: Type.String({ description: "Name of the depot" }),
  version: Type.String({ description: "Version of the depot" }),
  state: Type.Union(
    [
      Type.Literal("ok"),
      Type.Literal("failed"),
      Type.Literal("timeout"),
      Type.Literal("unreachable"),
      Type.Literal("cancelled"),
      Type.Literal("expired"),
    ],
    {
      description: "How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline",
    },
  ),
  code: Type.Optional(Type.Integer({ description: "Exit code of the command; absent if none ran to its end" })),
  message: Type.String({ description: "Reason or output of the command; empty: nothing to report" }),
  startedMs: Type.Number({ description: "milliseconds since 1970" }),
  endedMs: Type.Number({ description: "milliseconds since 1970" }),
});
export type DeploymentOutcome = Static<typeof DeploymentOutcome>;

/** A deployment by HTTP. */
export const DeploymentCall = Type.Object({
  ...Deployment.properties,
  wait: Type.Optional(
    Type.String({
      maxLength: 20,
      documented: { pattern: "^(\\d{1,9}[smhd]?)?$" },
      description:
        "Time such as 30m, 2h or 1d, at most 7d, for which hosts that are away are waited for. The answer is then the id of the deployment, at once; empty: no waiting",
    }),
  ),
});

const WaitingMembers = {
  id: Type.String({ description: "Id of the deployment" }),
  action: Type.Union([Type.Literal("deploy"), Type.Literal("undeploy")], {
    description: "What is done with the depots",
  }),
  depots: Type.Array(
    Type.Object({
      depot: Type.String({ description: "Name of the depot" }),
      version: Type.String({ description: "Version of the depot" }),
    }),
    { description: "Depots, in the order in which a host gets them" },
  ),
  username: Type.String({ description: "User who asked for it, with whose present rights it acts" }),
  createdMs: Type.Number({ description: "Time of the call, in milliseconds since 1970" }),
  untilMs: Type.Number({ description: "End of the wait, in milliseconds since 1970" }),
  cancelledBy: Type.Optional(Type.String({ description: "User who cancelled it; absent: it is not cancelled" })),
};

export const WaitingBegun = Type.Object(WaitingMembers);
export type WaitingBegun = Static<typeof WaitingBegun>;

export const WaitingListed = Type.Object({
  ...WaitingMembers,
  state: Type.Union([Type.Literal("open"), Type.Literal("ended")], {
    description: "open: a host has no final state yet. ended: all hosts have one",
  }),
});
export type WaitingListed = Static<typeof WaitingListed>;

export const WaitingHost = Type.Object({
  host: Type.String({ description: "Name of the host" }),
  state: Type.Union(
    [
      Type.Literal("waiting"),
      Type.Literal("running"),
      Type.Literal("ok"),
      Type.Literal("failed"),
      Type.Literal("expired"),
      Type.Literal("cancelled"),
    ],
    {
      description:
        "waiting: the host is away, or an earlier deployment is before it. expired: the wait ended before the host came back. failed: a depot did not end as ok, or the user may no longer do it",
    },
  ),
  message: Type.String({ description: "Reason of a state other than ok; empty: none" }),
  sinceMs: Type.Number({ description: "Time since which the host has this state, in milliseconds since 1970" }),
  outcomes: Type.Array(DeploymentOutcome, { description: "Results of the depots that have one" }),
});

export const WaitingDetails = Type.Object({
  ...WaitingMembers,
  hosts: Type.Array(WaitingHost, { description: "States of the hosts" }),
});
export type WaitingDetails = Static<typeof WaitingDetails>;

export const WaitingSelect = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 100, description: "Id of the deployment" }),
});
export const WaitingList = Type.Object({});
