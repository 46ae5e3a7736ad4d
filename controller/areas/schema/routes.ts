import { Type } from "typebox";
import {
  ActionAnswer,
  ActionInput,
  ClassChoice,
  ClassDetails,
  ClassId,
  ClassInfo,
  ClassInput,
  ClassNumber,
  ClassPath,
  ClassRecord,
  FieldRecord,
  SchemaTable,
} from "../../../common/api/schema.ts";
import type { Row } from "../../../common/value.ts";
import { type Call, endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import { parseUrlEncoded } from "../../http/body/form-decoder.ts";
import { readInput } from "../../http/input/input.ts";
import { looksLikeJson, parseJson } from "../../../common/json.ts";
import type { SchemaService } from "./service.ts";

export function schemaRoutes(schema: SchemaService): readonly Endpoint[] {
  return [...classRoutes(schema), ...changeRoutes(schema), ...tableRoutes(schema), actionRoute(schema)];
}

function classRoutes(schema: SchemaService): readonly Endpoint[] {
  const common = { method: "GET", permission: "objects:read" } as const;
  return [
    endpoint({
      ...common,
      path: "/mxobject/schema/class/list",
      summary: "Classes below one named by number; with the class itself when named by path; the root without a name.",
      input: ClassChoice,
      output: Type.Array(ClassRecord),
      handler: async ({ principal, input }) => ({ message: await schema.list(principal, input.id) }),
    }),
    endpoint({
      ...common,
      path: "/mxobject/schema/class/tree",
      summary: "A class, by number or path, and all classes below it; all classes without a name.",
      input: ClassChoice,
      output: Type.Array(ClassRecord),
      handler: async ({ principal, input }) => ({ rows: schema.tree(principal, input.id) }),
    }),
    endpoint({
      ...common,
      path: "/mxobject/schema/class/fields",
      summary: "Fields of a class, inherited ones too.",
      input: ClassId,
      output: Type.Array(FieldRecord),
      handler: async ({ principal, input }) => ({ message: await schema.fields(principal, input.id) }),
    }),
    endpoint({
      ...common,
      path: "/mxobject/schema/class",
      summary: "One class with its fields.",
      input: ClassPath,
      output: ClassDetails,
      revised: true,
      handler: async ({ principal, input }) => {
        const details = await schema.get(principal, input.class);
        return { message: details, revision: details.revision };
      },
    }),
  ];
}

function changeRoutes(schema: SchemaService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/mxobject/schema/class",
      permission: "objects:write",
      summary: "Makes a class, or adds to one that is there what it lacks: columns, keys, indexes, options.",
      input: ClassInput,
      output: ClassDetails,
      body: "json",
      revised: true,
      handler: async (call) => {
        const { details, warnings } = await schema.save(call.principal, infoOf(call), call.expected);
        return { message: details, warnings, revision: details.revision };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/mxobject/schema/class",
      permission: "objects:write",
      summary: "Drops a class, by number or path, that has neither objects nor classes below it.",
      input: ClassNumber,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await schema.remove(principal, input.cid, expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}

function tableRoutes(schema: SchemaService): readonly Endpoint[] {
  const define = (method: "GET" | "POST"): Endpoint =>
    endpoint({
      method,
      path: "/mxobject/system/schema/:table",
      permission: "objects:read",
      summary: "The table field, ftype or class, whole, as the JSON text of a list.",
      input: SchemaTable,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        const { text, meta } = await schema.table(principal, input.table);
        return { message: text, meta };
      },
    });
  return [define("GET"), define("POST")];
}

function actionRoute(schema: SchemaService): Endpoint {
  return endpoint({
    method: "POST",
    path: "/mxobject/actiontoclass",
    permission: "objects:read",
    summary: "Inserts or updates objects as MQL would; refused by what the caller may write.",
    input: ActionInput,
    output: ActionAnswer,
    body: "json",
    handler: async ({ principal, input, signal }) => {
      const action = { kind: input.ctype ?? "insert", objects: input.data as readonly Row[] };
      return { message: await schema.act(principal, action, signal) };
    },
  });
}

/** Clients use different names for the form field that contains the JSON. */
function infoOf({ input, text }: Call<ClassInput>): ClassInfo {
  if (input.data) return input.data;
  const values = [input.class, ...(text === undefined ? [] : [...parseUrlEncoded(text).values()].flat())];
  const json = values.find((value): value is string => typeof value === "string" && looksLikeJson(value));
  if (json === undefined) return input;
  const members = Object.entries(parseJson(json) as object).map(
    ([name, value]: [string, unknown]) => [name, [value]] as const,
  );
  const nothing = new Map<string, unknown[]>();
  return readInput(
    { input: ClassInfo },
    { body: new Map(members), bodyIsJson: true, query: nothing, path: nothing },
  ) as ClassInfo;
}
