import { Type, type Static } from "typebox";

export const KeyStatusInput = Type.Object({});

const SealedByKey = Type.Object({
  id: Type.String({ description: "Id of the key" }),
  listed: Type.Boolean({ description: "True: the key source lists the key" }),
  opens: Type.Boolean({ description: "True: this controller can decrypt with it" }),
  sealed: Type.Record(Type.String(), Type.Integer(), {
    description: "Number of sealed values that need the key, by kind",
  }),
  total: Type.Integer({ description: "Number of all sealed values that need the key" }),
});

const ControllerKeys = Type.Object({
  id: Type.String({ description: "Id of the run of the controller" }),
  url: Type.String({ description: "Address of the controller" }),
  sealing: Type.Optional(
    Type.String({ description: "Id of the key that seals there; absent for a controller of an earlier version" }),
  ),
  opening: Type.Optional(
    Type.Array(Type.String(), {
      description: "Ids of the keys that it can decrypt with; absent for a controller of an earlier version",
    }),
  ),
});

export const KeyStatus = Type.Object({
  source: Type.Union([Type.Literal("file"), Type.Literal("text"), Type.Literal("command")], {
    description: "Where the keys come from",
  }),
  file: Type.Optional(
    Type.String({ description: "Path of the key file on the machine of the controller that answers" }),
  ),
  wanted: Type.String({ description: "Id of the key that is to seal: the first one of the key source" }),
  sealing: Type.String({ description: "Id of the key that seals on the controller that answers" }),
  keys: Type.Array(SealedByKey, { description: "Each key that a sealed value needs or the key source lists" }),
  left: Type.Integer({
    description: "Number of values not sealed with the wanted key, without those that expire by themselves",
  }),
  ending: Type.Integer({ description: "Number of values that need another key until they expire" }),
  deletedTenants: Type.Array(Type.String(), {
    description: "Deleted tenants whose data can be restored. Their values are not counted",
  }),
  controllers: Type.Array(ControllerKeys, { description: "Keys of each controller that runs" }),
  waiting: Type.Optional(
    Type.String({
      description: "Reason why nothing is being sealed again, or the last error. Absent: nothing prevents it",
    }),
  ),
});
export type KeyStatus = Static<typeof KeyStatus>;
