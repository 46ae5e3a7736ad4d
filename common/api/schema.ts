import { Type, type Static } from "typebox";
import { NEW_CLASS_PATH, NOT_EMPTY, oneOfMembers } from "./documented.ts";

/** Schemas of `/mxobject/schema/*`, `/mxobject/system/schema/:table` and `/mxobject/actiontoclass`. */

const Texts = Type.Array(Type.String());
const AnyMembers = Type.Record(Type.String(), Type.Unknown());

/** A class by its number or its path. Absent or -1: the root. */
export const ClassChoice = Type.Object({
  id: Type.Optional(Type.String({ description: "Number or path of the class. Absent or -1: the root" })),
});
/** A class by its number or its path. */
export const ClassId = Type.Object({ id: Type.String({ minLength: 1, description: "Number or path of the class" }) });
export const ClassPath = Type.Object({ class: Type.String({ minLength: 1, description: "Path of the class" }) });
export const ClassNumber = Type.Object({ cid: Type.String({ minLength: 1, description: "Number of the class" }) });

const Indexing = Type.Object(
  {
    state: Type.String({
      description:
        "ready: queries use the index. write-only, backfill: it is being added. retiring: it is being removed",
    }),
    done: Type.Optional(Type.Integer({ description: "Objects that are indexed already, during a backfill" })),
    total: Type.Optional(Type.Integer({ description: "Objects to index, during a backfill" })),
    problem: Type.Optional(Type.String({ description: "Reason why the index will not become ready" })),
  },
  { description: "Progress of an index that was added to a class with objects" },
);
export type Indexing = Static<typeof Indexing>;

export const ClassRecord = Type.Object({
  cid: Type.Integer({ description: "Number of the class; 1 for the root" }),
  pid: Type.Integer({ description: "Number of the nearest superclass that the reader may see; -1 if there is none" }),
  name: Type.String({ description: "Path of the class" }),
  alias: Type.String({ description: "Another name for people; empty: none" }),
  nickname: Type.String({ description: "A short name for people; empty: none" }),
  remedy: Type.String({ description: "Remark for people; empty: none" }),
  child: Type.Array(Type.String(), { description: "Paths of the direct subclasses" }),
  subclass: Type.Array(Type.String(), { description: "The same as child" }),
  fields: Type.Array(Type.String(), { description: "Names of all fields, including inherited ones" }),
  keys: Type.Array(Type.String(), { description: "Names of the fields that make the id" }),
  keymode: Type.Union([Type.Literal("manu"), Type.Literal("uuid"), Type.Literal("md5")], {
    description: "How ids are made. md5: digest of the keys; uuid: random; manu: given by the client",
  }),
  keymethod: Type.Integer({ description: "The same as a number. 2: md5; 1: uuid; 0: manu" }),
  kind: Type.Union([Type.Literal("entity"), Type.Literal("record")], {
    description: "entity: objects that change; record: rows that are written once",
  }),
  autosearch: Type.Integer({ minimum: 0, maximum: 1, description: "1: a search finds the words of its objects" }),
  version: Type.Integer({ minimum: 0, maximum: 1, description: "1: earlier states of its objects are kept" }),
  versionttl: Type.Integer({ description: "Retention of versions that a later one superseded, as ttl" }),
  time_zone: Type.String({
    description: "Zone in which statements about the class count days, weeks, months and years; empty: UTC",
  }),
  loption: Type.Record(Type.String(), Type.Unknown(), {
    description: "Hints for the store, as the client gave them; without effect",
  }),
  mtime: Type.Integer({ description: "milliseconds since 1970" }),
  revision: Type.String({ description: "Revision of the class's own definition, without what it inherits" }),
  tags: Type.Array(Type.String(), { description: "Always empty" }),
  ttl: Type.Integer({ description: "Seconds; -1: for ever" }),
  vtimebase: Type.String({ description: "Always empty" }),
});
export type ClassRecord = Static<typeof ClassRecord>;

export const FieldRecord = Type.Object({
  name: Type.String({ description: "Name of the field" }),
  colname: Type.String({ description: "The same as name" }),
  title: Type.String({ description: "Title for people; the name if there is none" }),
  dispname: Type.String({ description: "The same as title" }),
  type: Type.String({ description: "Type of the field as in MQL, without its parameters" }),
  ftype: Type.String({ description: "The same as type" }),
  loption: Type.Record(Type.String(), Type.Unknown(), {
    description: 'How values are indexed, such as `{"type":"string"}`',
  }),
  fparam: Type.Unknown({
    description: "Element types of map, set and list; labels of enum; options of bucket; otherwise an empty list",
  }),
  isindex: Type.Boolean({ description: "True: the field has an index" }),
  iskey: Type.Boolean({ description: "True: the field is one of the keys" }),
  isrel: Type.Boolean({ description: "Always false: relations are edges" }),
  note: Type.String({ description: "Always empty" }),
  remedy: Type.String({ description: "Always empty" }),
  btype: Type.String({ description: "Type in which values are stored" }),
  mtime: Type.Integer({
    description: "Last change of the class that defines the field, in milliseconds since 1970",
  }),
  class: Type.String({ description: "Path of the class that defines the field" }),
  /** Present for indexed fields only. */
  indexing: Type.Optional(Indexing),
});
export type FieldRecord = Static<typeof FieldRecord>;

/** A class record with full fields. `indexing`: progress of the words for `autosearch`. */
export const ClassDetails = Type.Object({
  ...ClassRecord.properties,
  fields: Type.Array(FieldRecord, { description: "All fields, including inherited ones" }),
  indexing: Type.Optional(Indexing),
});
export type ClassDetails = Static<typeof ClassDetails>;

export const SchemaTable = Type.Object({ table: Type.String({ description: "Name of the table" }) });

const FieldInfo = Type.Object(
  {
    name: Type.Optional(Type.String({ documented: NOT_EMPTY, description: "Name of the field" })),
    colname: Type.Optional(Type.String({ documented: NOT_EMPTY, description: "The same as name" })),
    type: Type.Optional(Type.String({ description: "Type as in MQL: `varchar`, `set<varchar>`, …" })),
    ftype: Type.Optional(Type.String({ description: "The same as type" })),
    title: Type.Optional(Type.String({ description: "Title for people" })),
    dispname: Type.Optional(Type.String({ description: "The same as title" })),
    isindex: Type.Optional(Type.Boolean({ description: "True: the field gets an index" })),
    iskey: Type.Optional(Type.Boolean({ description: "True: the field is one of the keys" })),
    fparam: Type.Optional(
      Type.Union([AnyMembers, Texts], {
        description: "Element types of map, set and list; labels of enum; options of bucket",
      }),
    ),
  },
  { documented: oneOfMembers(["name"], ["colname"]) },
);
export type FieldInfo = Static<typeof FieldInfo>;

/** A class to create, or the changes of an existing class. Absent members stay unchanged. */
export const ClassInfo = Type.Object(
  {
    class: Type.Optional(Type.String({ documented: NEW_CLASS_PATH, description: "Path of the class" })),
    name: Type.Optional(Type.String({ documented: NEW_CLASS_PATH, description: "The same as class" })),
    fields: Type.Optional(
      Type.Array(Type.Union([FieldInfo, Type.String({ documented: NOT_EMPTY })]), {
        description: "Fields of the class; a bare name means a field that exists",
      }),
    ),
    keys: Type.Optional(Type.Array(Type.String(), { description: "Names of the fields that make the id" })),
    indexes: Type.Optional(Type.Array(Type.String(), { description: "Names of the fields that get an index" })),
    alias: Type.Optional(Type.String({ description: "Another name for people" })),
    nickname: Type.Optional(Type.String({ description: "A short name for people" })),
    remedy: Type.Optional(Type.String({ description: "Remark for people" })),
    keymode: Type.Optional(
      Type.Union([Type.Literal("manu"), Type.Literal("uuid"), Type.Literal("md5")], {
        description: "How ids are made. md5: digest of the keys; uuid: random; manu: given by the client",
      }),
    ),
    kind: Type.Optional(
      Type.Union([Type.Literal("entity"), Type.Literal("record")], {
        description: "entity: objects that change; record: rows that are written once. For a new class only",
      }),
    ),
    autosearch: Type.Optional(Type.Boolean({ description: "True: a search finds the words of its objects" })),
    version: Type.Optional(Type.Boolean({ description: "True: earlier states of its objects are kept" })),
    versionttl: Type.Optional(
      Type.String({ description: "Retention of versions that a later one superseded, as ttl" }),
    ),
    time_zone: Type.Optional(
      Type.String({
        description:
          "Zone in which statements about the class count days and weeks, such as Europe/Berlin; empty: the superclass's zone",
      }),
    ),
    ttl: Type.Optional(
      Type.String({ description: "Time to live: seconds, or a number and a unit as in `30 day`; -1: for ever" }),
    ),
    loption: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Hints for the store, which are kept; without effect",
      }),
    ),
  },
  { documented: oneOfMembers(["class"], ["name"]) },
);
export type ClassInfo = Static<typeof ClassInfo>;

/** The class itself, or its JSON text as the member `data` (or any other) of a form. */
export const ClassInput = Type.Object(
  {
    ...ClassInfo.properties,
    data: Type.Optional(
      Type.Object(ClassInfo.properties, {
        description: "The class as one member, such as the JSON text in a form",
        documented: oneOfMembers(["class"], ["name"]),
      }),
    ),
  },
  { documented: oneOfMembers(["class"], ["name"], ["data"]) },
);
export type ClassInput = Static<typeof ClassInput>;

const NAMED = (member: string) => ({ properties: { [member]: { type: "string", minLength: 1 } }, required: [member] });

export const ActionInput = Type.Object({
  data: Type.Array(
    Type.Record(Type.String(), Type.Unknown(), { documented: { anyOf: [NAMED("class"), NAMED("id")] } }),
    {
      minItems: 1,
      description:
        "An object or a list of objects. Each has the member `class`; an update with a full `id` may omit it",
    },
  ),
  ctype: Type.Optional(
    Type.Union([Type.Literal("insert"), Type.Literal("update")], {
      description: "insert: new objects; update: changes of objects that exist. insert when absent",
    }),
  ),
});

export const ActionAnswer = Type.Object({
  count: Type.Integer({ description: "Number of objects that were written" }),
  ids: Type.Optional(Type.Array(Type.String(), { description: "Ids of the inserted objects, in the order of data" })),
});
export type ActionAnswer = Static<typeof ActionAnswer>;
