import { Type, type Static } from "typebox";
import { FILE_NAME, having, HOST_FOLDER, NOT_EMPTY, RULE_KEY } from "./documented.ts";
import { RUN_MEMBERS } from "./policy-runs.ts";
import { Revision } from "./revision.ts";
import { HostEntry, HostEntryOrEmpty } from "./targets.ts";

/** The two kinds of policy as stored and as sent to agents. The HTTP schemas of the area extend them. */

const Text = (maxLength: number) => Type.String({ maxLength });

export const IntervalUnit = Type.Union(
  [
    Type.Literal("year"),
    Type.Literal("month"),
    Type.Literal("day"),
    Type.Literal("hour"),
    Type.Literal("minute"),
    Type.Literal("second"),
  ],
  { description: "Unit of interval; without effect with isdaemon" },
);

/** Name of the policy attribute, and of the member of a host's `config`, with the zone for times without a zone. */
export const TIME_ZONE = "time_zone";

const Common = {
  name: Type.String({ minLength: 1, maxLength: 200, documented: FILE_NAME, description: "Name of the policy" }),
  rule: Type.String({
    minLength: 1,
    maxLength: 500,
    documented: RULE_KEY,
    description: "Configuration key of the rule that parses the records, such as /matrix/rules/access",
  }),
  delimiter: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description:
        "Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record",
    }),
  ),
  delimitereol: Type.Optional(
    Type.Boolean({ description: "True: the delimiter ends a record, instead of beginning one" }),
  ),
  tags: Type.Optional(Type.Array(Text(500), { description: "Tags of the policy" })),
  hosts: Type.Optional(Type.Array(HostEntryOrEmpty)),
  attrs: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        "time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs",
    }),
  ),
};

export const CommandPolicySpec = Type.Object({
  ...Common,
  kind: Type.Literal("command"),
  command: Type.String({ minLength: 1, maxLength: 8_000, description: "Command line" }),
  ctype: Type.Integer({
    minimum: 0,
    maximum: 1,
    description: "0: the command runs in the folder of the depot; 1: a plain command",
  }),
  depotname: Type.Optional(
    Type.String({
      maxLength: 200,
      documented: NOT_EMPTY,
      description: "Depot with the command; required for ctype 0, without effect for 1",
    }),
  ),
  depotversion: Type.Optional(
    Type.String({
      maxLength: 50,
      documented: NOT_EMPTY,
      description: "Version of the depot; required for ctype 0, without effect for 1",
    }),
  ),
  depotcommand: Type.Optional(
    Type.String({
      maxLength: 8_000,
      description:
        "Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1",
    }),
  ),
  interval: Type.Integer({ minimum: 1, maximum: 1_000_000, description: "in the unit; without effect with isdaemon" }),
  unit: IntervalUnit,
  split: Type.Optional(
    Type.Boolean({
      description:
        "True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon",
    }),
  ),
  isdaemon: Type.Optional(
    Type.Boolean({
      description: "True: the command runs for ever and is restarted when it ends; its output is cut as it arrives",
    }),
  ),
  ...RUN_MEMBERS,
});
export type CommandPolicySpec = Static<typeof CommandPolicySpec>;

export const LogPolicySpec = Type.Object({
  ...Common,
  kind: Type.Literal("log"),
  dir: Type.String({
    minLength: 1,
    maxLength: 4_000,
    documented: HOST_FOLDER,
    description: "Folder of the log files on the host",
  }),
  match: Type.String({
    minLength: 1,
    maxLength: 1_000,
    description: "Regular expression for the file's path below dir. Named groups are stored with the records",
  }),
  matchregexp: Type.Optional(
    Type.String({ maxLength: 1_000, description: "Regular expression of the records that are sent; empty: all" }),
  ),
  priority: Type.Optional(
    Type.Array(Text(100), { description: "Groups of match that order the files of one log, most significant first" }),
  ),
  translation: Type.Optional(
    Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer()), {
      description: "Group of priority: numbers by captured text, for that order, ascending",
    }),
  ),
  differentiator: Type.Optional(
    Type.String({ maxLength: 100, description: "Group of match that tells one log from another; empty: none" }),
  ),
});
export type LogPolicySpec = Static<typeof LogPolicySpec>;

export type PolicySpec = CommandPolicySpec | LogPolicySpec;

/** A command in the folder of a depot names the depot. */
const IN_DEPOT = having("depotname", "depotversion");
const PLAIN_COMMAND = { properties: { ctype: { enum: [1] } } };

export const CommandPolicyInput = Type.Object(Type.Omit(CommandPolicySpec, ["kind"]).properties, {
  documented: { anyOf: [PLAIN_COMMAND, IN_DEPOT] },
});
export type CommandPolicyInput = Static<typeof CommandPolicyInput>;

export const LogPolicyInput = Type.Omit(LogPolicySpec, ["kind"]);
export type LogPolicyInput = Static<typeof LogPolicyInput>;

/** Members of a policy to change; absent members stay unchanged. Its kind says which of them it has. */
export const PolicyChange = Type.Object({
  ...Type.Partial(Type.Object({ ...CommandPolicyInput.properties, ...LogPolicyInput.properties })).properties,
  name: Common.name,
});
export type PolicyChange = Static<typeof PolicyChange>;

export const PolicySelect = Type.Object({ name: Common.name });
export const PolicyRemove = Type.Object({
  ...PolicySelect.properties,
  force: Type.Optional(Type.Boolean({ description: "also a policy that is deployed" })),
});
export const PolicyDeploy = Type.Object({
  ...PolicySelect.properties,
  hosts: Type.Optional(Type.Array(HostEntryOrEmpty, { description: "added to the policy's hosts" })),
});

const ConfHosts = Type.Array(HostEntry, { minItems: 1 });

export const ConfPlace = Type.Object(
  {
    ...PolicySelect.properties,
    hosts: ConfHosts,
    conf: Type.Optional(
      Type.String({ description: "written in UTF-8; a file part of this name keeps its bytes; may be empty" }),
    ),
  },
  { documented: { anyOf: [having("conf"), having("uploadfile")] } },
);
export const ConfRemove = Type.Object({ ...PolicySelect.properties, hosts: ConfHosts });

/** The conf of a policy on one host. */
export const PolicyConf = Type.Object({
  host: Type.String({ description: "Name of the host" }),
  state: Type.Union([Type.Literal("ok"), Type.Literal("waiting"), Type.Literal("unassigned"), Type.Literal("failed")], {
    description:
      "ok: the host has what is wanted. waiting: its agent has not confirmed it. unassigned: the policy is not deployed to the host, which gets the conf with the policy. failed: nothing was changed",
  }),
  message: Type.String({ description: "why it is not ok" }),
  digest: Type.String({ description: "SHA-256 of the wanted bytes; empty: the host is to have no conf" }),
  bytes: Type.Integer({ description: "Size of the wanted conf; 0 without one" }),
});
export type PolicyConf = Static<typeof PolicyConf>;

export const PolicyList = Type.Object({});

/** A policy as clients read it: the members of its kind and its metadata. */
export const PolicyRecord = Type.Object({
  ...Type.Partial(Type.Object({ ...CommandPolicyInput.properties, ...LogPolicyInput.properties })).properties,
  id: Type.String({ description: "Id of the policy as an object" }),
  class: Type.String({ description: "Class of the policy as an object" }),
  name: Type.String({ description: "Name of the policy" }),
  kind: Type.Union([Type.Literal("command"), Type.Literal("log")], {
    description: "command: output of a command; log: lines of files",
  }),
  rule: Type.String({ description: "Configuration key of the rule that parses the records" }),
  hosts: Type.Array(Type.String(), { description: "as they were sent: names, and expressions" }),
  matched: Type.Optional(
    Type.Array(Type.String(), {
      description: "hosts that the entries of hosts mean now; only if one is an expression",
    }),
  ),
  tags: Type.Array(Type.String(), { description: "Tags of the policy" }),
  status: Type.Union([Type.Literal("deployed"), Type.Literal("undeployed")], {
    description: "deployed: its hosts are to run it; policystate shows whether they do",
  }),
  created: Type.Integer({ description: "milliseconds since 1970" }),
  changed: Type.Integer({ description: "milliseconds since 1970" }),
  creator: Type.String({ description: "User who made the policy" }),
  revision: Revision,
});
export type PolicyRecord = Static<typeof PolicyRecord>;

/** Hosts that no entry of a policy matches any more, and that keep the policy until the change is confirmed. */
export const HeldTargets = Type.Object({
  id: Type.String({ description: "for POST /monitoring/targets/confirm; another one if hosts are added" }),
  policy: Type.String({ description: "Name of the policy" }),
  since: Type.Integer({ description: "milliseconds since 1970" }),
  username: Type.String({ description: "who saved the hosts of the policy" }),
  matched: Type.Integer({ description: "hosts that have the policy, with those of the change" }),
  hosts: Type.Array(Type.String(), { description: "hosts that lose the policy" }),
});
export type HeldTargets = Static<typeof HeldTargets>;

export const HeldTargetsList = Type.Object({});
export const HeldTargetsConfirm = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 100, description: "Id of the held change, as the list has it" }),
});
