import { Type, type Static } from "typebox";

export const KeyStatusInput = Type.Object({});

const SealedByKey = Type.Object({
  id: Type.String(),
  /** True if the key source lists the key. `opens`: this controller can decrypt with it. */
  listed: Type.Boolean(),
  opens: Type.Boolean(),
  /** Number of sealed values of each kind that need the key. */
  sealed: Type.Record(Type.String(), Type.Integer()),
  total: Type.Integer(),
});

const ControllerKeys = Type.Object({
  id: Type.String(),
  url: Type.String(),
  /** Absent for a controller of an earlier version. */
  sealing: Type.Optional(Type.String()),
  opening: Type.Optional(Type.Array(Type.String())),
});

export const KeyStatus = Type.Object({
  source: Type.Union([Type.Literal("file"), Type.Literal("text"), Type.Literal("command")]),
  /** Path of the key file on the machine of the controller that answers. */
  file: Type.Optional(Type.String()),
  /** The key that is to seal: the first one of the key source. */
  wanted: Type.String(),
  /** The key that seals on the controller that answers. */
  sealing: Type.String(),
  keys: Type.Array(SealedByKey),
  /** Number of values not sealed with the wanted key, without those that expire by themselves. */
  left: Type.Integer(),
  /** Number of values that need another key until they expire. */
  ending: Type.Integer(),
  /** Deleted tenants whose data can be restored. Their values are not counted. */
  deletedTenants: Type.Array(Type.String()),
  controllers: Type.Array(ControllerKeys),
  /** Reason why nothing is being sealed again, or the last error. Absent: nothing prevents it. */
  waiting: Type.Optional(Type.String()),
});
export type KeyStatus = Static<typeof KeyStatus>;
