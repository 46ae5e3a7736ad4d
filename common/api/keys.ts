import { Type, type Static } from "typebox";

export const KeyStatusInput = Type.Object({});

const SealedByKey = Type.Object({
  id: Type.String(),
  /** Where the keys come from has it, this controller opens with it. */
  listed: Type.Boolean(),
  opens: Type.Boolean(),
  /** How many things of each kind need it. */
  sealed: Type.Record(Type.String(), Type.Integer()),
  total: Type.Integer(),
});

const ControllerKeys = Type.Object({
  id: Type.String(),
  url: Type.String(),
  /** Absent of a controller of an earlier version. */
  sealing: Type.Optional(Type.String()),
  opening: Type.Optional(Type.Array(Type.String())),
});

export const KeyStatus = Type.Object({
  source: Type.Union([Type.Literal("file"), Type.Literal("text"), Type.Literal("command")]),
  /** Path of the key file on the machine of the controller that was asked. */
  file: Type.Optional(Type.String()),
  /** The key that is to seal: the first where the keys come from. */
  wanted: Type.String(),
  /** The key that seals on the controller that was asked. */
  sealing: Type.String(),
  keys: Type.Array(SealedByKey),
  /** Things that are not sealed with the wanted key, those apart that end by themselves. */
  left: Type.Integer(),
  /** Things that need another key until they end by themselves. */
  ending: Type.Integer(),
  /** Deleted tenants whose data can be had back; what they keep is not counted. */
  deletedTenants: Type.Array(Type.String()),
  controllers: Type.Array(ControllerKeys),
  /** Why nothing is sealed anew now, or what went wrong at it; absent: nothing stands in its way. */
  waiting: Type.Optional(Type.String()),
});
export type KeyStatus = Static<typeof KeyStatus>;
