import { Type } from "typebox";

/** Schemas of `/extend`. */

export const TableName = Type.Object({ name: Type.String() });

export const TableRows = Type.Array(Type.Record(Type.String(), Type.Unknown()), {
  description: "Rows; `key`, a text or a number, is optional",
});

export const TableWrite = Type.Object({ name: Type.String(), items: TableRows });

export const TableNames = Type.Array(Type.String());
