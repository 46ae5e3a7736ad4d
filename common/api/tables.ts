import { Type } from "typebox";
import { PLAIN_TEXT } from "./documented.ts";

/** Schemas of `/extend`. */

const Name = Type.String({ documented: PLAIN_TEXT, description: "Name of the table" });

export const TableName = Type.Object({ name: Name });

export const TableRows = Type.Array(Type.Record(Type.String(), Type.Unknown()), {
  description: "Rows; `key`, a text or a number, is optional",
});

export const TableWrite = Type.Object({ name: Name, items: TableRows });

export const TableNames = Type.Array(Type.String());
