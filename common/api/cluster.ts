import { Type } from "typebox";
import { SCRUB_RATE_DEFAULT, SCRUB_RATE_MAX } from "../limits.ts";

export const ClusterInfoInput = Type.Object({});

export const DataNode = Type.Object({
  datacenter: Type.String({ description: "Data centre of the node" }),
  hostid: Type.String({ description: "Id of the node" }),
  isup: Type.Boolean({ description: "True: the controller is connected to the node" }),
  peer: Type.String({ description: "Address of the node" }),
  port: Type.Integer({ description: "Port of CQL; 0 for the embedded store" }),
  rack: Type.String({ description: "Rack of the node" }),
});

export const LostTenant = Type.Object({
  tenant: Type.String({ description: "Name of the tenant" }),
  keyspace: Type.String({ description: "What has to be restored" }),
});

export const ClusterInfoOutput = Type.Object({
  datastore: Type.Array(DataNode, {
    description: "Nodes of Cassandra; for the embedded store one whose hostid is `embedded`",
  }),
  lost: Type.Optional(
    Type.Array(LostTenant, { description: "Tenants whose keyspace is gone; told to the first tenant only" }),
  ),
});

export const ClusterSettingsInput = Type.Object({});

export const ClusterSettingsOutput = Type.Array(
  Type.Object({
    name: Type.String({ description: "Name of the setting" }),
    value: Type.Optional(Type.String({ description: "Its text; absent if it is not given, and for secrets" })),
    default: Type.String({ description: "The value, or the way to it, if none is given" }),
    given: Type.Boolean({ description: "True: a variable or the file gives it" }),
  }),
  { description: "Settings of the controller that answers, without secrets" },
);

const Milliseconds = Type.Integer({ description: "Milliseconds since 1970" });

export const ScrubReport = Type.Object(
  {
    id: Type.String({ description: "Id of the scrub" }),
    user: Type.String({ description: "Who began it" }),
    state: Type.String({ description: "`running`, `done`, `stopped` or `failed`" }),
    message: Type.String({ description: "Why it failed" }),
    startedMs: Milliseconds,
    endedMs: Type.Optional(Milliseconds),
    rate: Type.Integer({ description: "Comparisons with the store a second, at most" }),
    step: Type.String({ description: "`objects`, `indexes`, `sources`, `targets` or `contents`" }),
    looked: Type.Object(
      {
        objects: Type.Integer({ description: "Objects" }),
        indexes: Type.Integer({ description: "Rows of indexes" }),
        sources: Type.Integer({ description: "Edges at their sources" }),
        targets: Type.Integer({ description: "Edges at their targets" }),
        contents: Type.Integer({ description: "Contents of files and depots" }),
      },
      { description: "Objects, rows of indexes, edges at their sources and at their targets, and contents so far" },
    ),
    bytes: Type.Integer({ description: "Of contents" }),
    missing: Type.Integer({ description: "Rows of indexes and edges that were missing, and are added" }),
    superfluous: Type.Integer({ description: "Rows of indexes and edges that nothing stands behind, and are removed" }),
    damaged: Type.Integer({ description: "Contents that are not what their digest says; nothing mends them" }),
    examples: Type.Array(Type.String(), { description: "The first of what was wrong" }),
  },
  { description: "A comparison of objects with their indexes, edges and contents" },
);

export const ScrubBegin = Type.Object({
  rate: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SCRUB_RATE_MAX,
      description: `Comparisons with the store a second, at most; ${SCRUB_RATE_DEFAULT} when absent`,
    }),
  ),
});

export const ScrubStatusInput = Type.Object({});

export const RowCheckReport = Type.Object(
  {
    startedMs: Milliseconds,
    endedMs: Type.Optional(Milliseconds),
    looked: Type.Integer({ description: "Rows that were read" }),
    damaged: Type.Integer({
      description:
        "Of them, those that cannot be read, have a wrong checksum, or are missing though another row names them",
    }),
    tables: Type.Record(Type.String(), Type.Integer(), { description: "The damaged ones by table of the store" }),
    examples: Type.Array(
      Type.Object({
        table: Type.String({ description: "Table of the store" }),
        key: Type.String({ description: "Key of the row" }),
        reason: Type.String({ description: "The fault of the row" }),
      }),
      {
        description: "The first of them",
      },
    ),
  },
  { description: "A round of the row check" },
);

export const RowCheck = Type.Object(
  {
    running: Type.Optional(RowCheckReport),
    last: Type.Optional(RowCheckReport),
    late: Type.Boolean({ description: "No round came to its end for a day" }),
  },
  { description: "What reads all rows of the tenant again and again" },
);

export const ScrubStatus = Type.Object({
  running: Type.Optional(ScrubReport),
  last: Type.Optional(ScrubReport),
  due: Type.Boolean({ description: "None was done to its end for seven days" }),
  rows: RowCheck,
});

export const AheadInput = Type.Object({
  cursor: Type.Optional(Type.String({ description: "Of the page before; absent: the first page" })),
});

export const AheadOutput = Type.Object({
  objects: Type.Array(
    Type.Object({
      id: Type.String({ description: "Id of the object" }),
      class: Type.String({ description: "Path of its class" }),
      vtimeMs: Type.Integer({ description: "Time of its last write, in milliseconds since 1970" }),
    }),
    { description: "In no order; a page may be empty and have a successor" },
  ),
  cursor: Type.Optional(Type.String({ description: "Of the next page; absent: this is the last one" })),
});

export const RepairsInput = Type.Object({});

export const RepairsOutput = Type.Object({
  tables: Type.Array(
    Type.Object({
      table: Type.String({ description: "Of Cassandra" }),
      repairedMs: Type.Optional(
        Type.Integer({
          description:
            "When the oldest of the repairs began that cover all of it, in milliseconds since 1970; absent when some of it was not repaired for 30 days",
        }),
      ),
      everyMs: Type.Integer({ description: "How often it is to be repaired" }),
      due: Type.Boolean({ description: "True: the repair is due" }),
    }),
    { description: "Those that lie on several nodes: none with one copy of everything, or the embedded store" },
  ),
  due: Type.Boolean({ description: "Whether one of them is" }),
});
