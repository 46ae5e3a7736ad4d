import { Type, type Static } from "typebox";
import { NEW_CLASS_PATH, NOT_EMPTY, oneOfMembers } from "./documented.ts";

/** Schemas of `/mxobject/schema/*`, `/mxobject/system/schema/:table` and `/mxobject/actiontoclass`. */

const Flag = Type.Integer({ minimum: 0, maximum: 1 });
const Texts = Type.Array(Type.String());
const AnyMembers = Type.Record(Type.String(), Type.Unknown());

/** A class by its number or its path. Absent or -1: the root. */
export const ClassChoice = Type.Object({ id: Type.Optional(Type.String()) });
/** A class by its number or its path. */
export const ClassId = Type.Object({ id: Type.String({ minLength: 1 }) });
export const ClassPath = Type.Object({ class: Type.String({ minLength: 1 }) });
export const ClassNumber = Type.Object({ cid: Type.String({ minLength: 1 }) });

/** Progress of an index that was added to a class with objects. */
const Indexing = Type.Object({
  state: Type.String(),
  /** `backfill` only: the number of objects already indexed, and their total. */
  done: Type.Optional(Type.Integer()),
  total: Type.Optional(Type.Integer()),
  /** Reason why it will not become ready. */
  problem: Type.Optional(Type.String()),
});
export type Indexing = Static<typeof Indexing>;

export const ClassRecord = Type.Object({
  /** 1 for the root. */
  cid: Type.Integer(),
  /** The number of the nearest superclass that the reader may see; -1 if there is none. */
  pid: Type.Integer(),
  /** The full path. */
  name: Type.String(),
  alias: Type.String(),
  nickname: Type.String(),
  remedy: Type.String(),
  /** Paths of the direct subclasses. */
  child: Texts,
  subclass: Texts,
  /** Names of all fields, including inherited ones. */
  fields: Texts,
  keys: Texts,
  keymode: Type.Union([Type.Literal("manu"), Type.Literal("uuid"), Type.Literal("md5")]),
  /** 1: uuid; 2: digest of the keys; 0: given by the client. */
  keymethod: Type.Integer(),
  kind: Type.Union([Type.Literal("entity"), Type.Literal("record")]),
  autosearch: Flag,
  version: Flag,
  versionttl: Type.Integer({ description: "Retention of versions that a later one superseded, as ttl" }),
  /** Zone in which statements about the class count days, weeks, months and years; empty: UTC. */
  time_zone: Type.String(),
  /** Store hints as the client gave them. */
  loption: AnyMembers,
  mtime: Type.Integer({ description: "milliseconds since 1970" }),
  revision: Type.String({ description: "Revision of the class's own definition, without what it inherits" }),
  tags: Texts,
  ttl: Type.Integer({ description: "Seconds; -1: for ever" }),
  /** The column that gives objects their version time; empty: the time of the write. */
  vtimebase: Type.String(),
});
export type ClassRecord = Static<typeof ClassRecord>;

export const FieldRecord = Type.Object({
  name: Type.String(),
  colname: Type.String(),
  title: Type.String(),
  dispname: Type.String(),
  /** Same as `ftype`; clients read either. */
  type: Type.String(),
  ftype: Type.String(),
  /** How values are indexed, such as `{"type":"string"}`. */
  loption: AnyMembers,
  /** Element types of map, set and list; labels of enum; options of bucket; otherwise an empty list. */
  fparam: Type.Unknown(),
  isindex: Type.Boolean(),
  iskey: Type.Boolean(),
  isrel: Type.Boolean(),
  note: Type.String(),
  remedy: Type.String(),
  /** The type in which values are stored. */
  btype: Type.String(),
  mtime: Type.Integer({
    description: "Last change of the class that defines the field, in milliseconds since 1970",
  }),
  /** The class that defines the field. */
  class: Type.String(),
  /** Present for indexed fields only. */
  indexing: Type.Optional(Indexing),
});
export type FieldRecord = Static<typeof FieldRecord>;

/** A class record with full fields. `indexing`: progress of the words for `autosearch`. */
export const ClassDetails = Type.Object({
  ...ClassRecord.properties,
  fields: Type.Array(FieldRecord),
  indexing: Type.Optional(Indexing),
});
export type ClassDetails = Static<typeof ClassDetails>;

export const SchemaTable = Type.Object({ table: Type.String() });

const FieldInfo = Type.Object(
  {
    name: Type.Optional(Type.String({ documented: NOT_EMPTY })),
    colname: Type.Optional(Type.String({ documented: NOT_EMPTY })),
    /** As in MQL: `varchar`, `set<varchar>`, … */
    type: Type.Optional(Type.String()),
    ftype: Type.Optional(Type.String()),
    title: Type.Optional(Type.String()),
    dispname: Type.Optional(Type.String()),
    isindex: Type.Optional(Type.Boolean()),
    iskey: Type.Optional(Type.Boolean()),
    /** As in field records. */
    fparam: Type.Optional(Type.Union([AnyMembers, Texts])),
  },
  { documented: oneOfMembers(["name"], ["colname"]) },
);
export type FieldInfo = Static<typeof FieldInfo>;

/** A class to create, or the changes of an existing class. Absent members stay unchanged. */
export const ClassInfo = Type.Object(
  {
    /** The path; `name` has the same meaning. */
    class: Type.Optional(Type.String({ documented: NEW_CLASS_PATH })),
    name: Type.Optional(Type.String({ documented: NEW_CLASS_PATH })),
    /** A bare name refers to an existing field. */
    fields: Type.Optional(Type.Array(Type.Union([FieldInfo, Type.String({ documented: NOT_EMPTY })]))),
    keys: Type.Optional(Texts),
    indexes: Type.Optional(Texts),
    alias: Type.Optional(Type.String()),
    nickname: Type.Optional(Type.String()),
    remedy: Type.Optional(Type.String()),
    keymode: Type.Optional(Type.Union([Type.Literal("manu"), Type.Literal("uuid"), Type.Literal("md5")])),
    /** For a new class only. */
    kind: Type.Optional(Type.Union([Type.Literal("entity"), Type.Literal("record")])),
    autosearch: Type.Optional(Type.Boolean()),
    version: Type.Optional(Type.Boolean()),
    /** Retention of versions that a later one superseded, as `ttl`. */
    versionttl: Type.Optional(Type.String()),
    /**
     * Zone in which statements about the class count days and weeks, e.g. Europe/Berlin; empty: the superclass's zone.
     */
    time_zone: Type.Optional(Type.String()),
    /** Seconds, or a number and a unit as in `30 day`; -1: forever. */
    ttl: Type.Optional(Type.String()),
    loption: Type.Optional(AnyMembers),
  },
  { documented: oneOfMembers(["class"], ["name"]) },
);
export type ClassInfo = Static<typeof ClassInfo>;

/** The class itself, or its JSON text as the member `data` (or any other) of a form. */
export const ClassInput = Type.Object(
  { ...ClassInfo.properties, data: Type.Optional(ClassInfo) },
  { documented: oneOfMembers(["class"], ["name"], ["data"]) },
);
export type ClassInput = Static<typeof ClassInput>;

const NAMED = (member: string) => ({ properties: { [member]: { type: "string", minLength: 1 } }, required: [member] });

export const ActionInput = Type.Object({
  /** An object or a list of objects. Each has the member `class`; an update with a full `id` may omit it. */
  data: Type.Array(
    Type.Record(Type.String(), Type.Unknown(), { documented: { anyOf: [NAMED("class"), NAMED("id")] } }),
    {
      minItems: 1,
    },
  ),
  ctype: Type.Optional(Type.Union([Type.Literal("insert"), Type.Literal("update")])),
});

export const ActionAnswer = Type.Object({
  count: Type.Integer(),
  /** Ids of the inserted objects, in the order of `data`. */
  ids: Type.Optional(Texts),
});
export type ActionAnswer = Static<typeof ActionAnswer>;
