import { Type } from "typebox";

export const ClusterInfoInput = Type.Object({});

export const DataNode = Type.Object({
  datacenter: Type.String(),
  hostid: Type.String(),
  isup: Type.Boolean(),
  peer: Type.String(),
  port: Type.Integer(),
  rack: Type.String(),
});

export const ClusterInfoOutput = Type.Object({ datastore: Type.Array(DataNode) });
