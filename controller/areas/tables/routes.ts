import { Type } from "typebox";
import { TableName, TableNames, TableRows, TableWrite } from "../../../common/api/tables.ts";
import { TABLE_BODY_MAX_BYTES } from "../../../common/limits.ts";

import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { TableService } from "./service.ts";

export function tableRoutes(tables: TableService): readonly Endpoint[] {
  const written = {
    path: "/extend/:name",
    permission: "tables:write",
    input: TableWrite,
    output: TableRows,
    body: "json",
    bodyMaxBytes: TABLE_BODY_MAX_BYTES,
  } as const;
  return [
    endpoint({
      method: "GET",
      path: "/extend",
      permission: "tables:read",
      summary: "Names of the extension tables",
      input: Type.Object({}),
      output: TableNames,
      handler: async ({ principal }) => ({ message: [...(await tables.names(principal))] }),
    }),
    endpoint({
      method: "GET",
      path: "/extend/:name",
      permission: "tables:read",
      summary: "Rows of an extension table",
      input: TableName,
      output: TableRows,
      handler: async ({ principal, input }) => ({ message: [...(await tables.rows(principal, input.name))] }),
    }),
    endpoint({
      ...written,
      method: "POST",
      summary: "Make an extension table, or replace all of its rows; the message is its rows",
      handler: async ({ principal, input }) => ({
        message: [...(await tables.replace(principal, input.name, input.items))],
      }),
    }),
    endpoint({
      ...written,
      method: "PUT",
      summary: "Replace rows of equal key and add the others; the message is the table's rows",
      handler: async ({ principal, input }) => ({
        message: [...(await tables.merge(principal, input.name, input.items))],
      }),
    }),
    endpoint({
      method: "DELETE",
      path: "/extend/:name",
      permission: "tables:write",
      summary: "Remove an extension table; the message is an empty list",
      input: TableName,
      output: TableRows,
      handler: async ({ principal, input }) => {
        await tables.remove(principal, input.name);
        return { message: [] };
      },
    }),
  ];
}
