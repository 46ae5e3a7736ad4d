import { Type, type Static } from "typebox";
import { TableName, TableNames, TableRows, TableWrite } from "../../../common/api/tables.ts";
import { TABLE_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Answer, type Endpoint } from "../../http/interface/endpoint.ts";
import type { Table, TableService } from "./service.ts";

export function tableRoutes(tables: TableService): readonly Endpoint[] {
  const written = {
    path: "/extend/:name",
    permission: "tables:write",
    input: TableWrite,
    output: TableRows,
    body: "json",
    bodyMaxBytes: TABLE_BODY_MAX_BYTES,
    revised: true,
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
      revised: true,
      handler: async ({ principal, input }) => answerOf(await tables.read(principal, input.name)),
    }),
    endpoint({
      ...written,
      method: "POST",
      summary: "Make an extension table, or replace all of its rows; the message is its rows",
      handler: async ({ principal, input: { name, items }, expected }) =>
        answerOf(await tables.replace(principal, name, items, expected)),
    }),
    endpoint({
      ...written,
      method: "PUT",
      summary: "Replace rows of equal key and add the others; the message is the table's rows",
      handler: async ({ principal, input: { name, items }, expected }) =>
        answerOf(await tables.merge(principal, name, items, expected)),
    }),
    endpoint({
      method: "DELETE",
      path: "/extend/:name",
      permission: "tables:write",
      summary: "Remove an extension table; the message is an empty list",
      input: TableName,
      output: TableRows,
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await tables.remove(principal, input.name, expected);
        return { message: [], revision: undefined };
      },
    }),
  ];
}

function answerOf({ rows, revision }: Table): Answer<Static<typeof TableRows>> {
  return { message: [...rows], revision };
}
