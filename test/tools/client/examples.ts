import { operationsIn, type Described, type Document, type Parameter } from "./document.ts";
import { keyOf } from "./schemas.ts";

/** A request as the typed client takes it. */
export interface Request {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** The example of an operation in the document. */
export function exampleOf({ parameters = [], requestBody }: Described): Request {
  const path = valuesIn(parameters, "path");
  const query = valuesIn(parameters, "query");
  const body = bodyOf(requestBody);
  return { ...(path && { path }), ...(query && { query }), ...(body !== undefined && { body }) };
}

function valuesIn(parameters: readonly Parameter[], place: Parameter["in"]): Request["query"] {
  const shown = parameters.flatMap((parameter) => {
    const value = parameter.example ?? parameter.content?.["application/json"]?.example;
    return parameter.in === place && value !== undefined ? [[parameter.name, value] as const] : [];
  });
  return shown.length === 0 ? undefined : Object.fromEntries(shown);
}

function bodyOf(requestBody: Described["requestBody"]): unknown {
  const [type, described] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const example = described?.example;
  if (example === undefined) return requestBody?.required === true && type !== "text/plain" ? {} : undefined;
  if (typeof example === "string" || !Object.hasOwn(example as object, "uploadfile")) return example;
  const { uploadfile, ...others } = example as { readonly uploadfile: unknown };
  const isList = described?.schema.properties?.["uploadfile"]?.type === "array";
  const files = [uploadfile].flat().map((content) => ({ name: "example.txt", content }));
  return { ...others, uploadfile: isList ? files : files[0] };
}

/** The file of all examples. Its types fail when an operation has none, or one that the client would not take. */
export function examplesFile(document: Document): string {
  const lines = operationsIn(document).map(
    ({ described }) => `  ${described.operationId}: ${literal(exampleOf(described), "  ")},`,
  );
  return [
    "// Generated from deploy/docs/openapi.json by `npm run gen`. Do not edit.\n",
    'import type { OperationId, RequestOf } from "../../../common/client/index.ts";\n',
    "/** The example of each operation as a request of the typed client. */",
    `export const EXAMPLE_REQUESTS = {\n${lines.join("\n")}\n} satisfies { readonly [Id in OperationId]: RequestOf<Id> };\n`,
  ].join("\n");
}

/** A value as a literal of TypeScript. Its lines after the first are indented by `indent`. */
export function literal(value: unknown, indent: string): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((item) => literal(item, inner));
    return `[${items.join(", ")}]`;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${keyOf(name)}: ${literal(member, inner)}`);
  const short = `{ ${members.join(", ")} }`;
  if (members.length === 0) return "{}";
  if (short.length <= 80 && !short.includes("\n")) return short;
  return `{\n${members.map((member) => `${inner}${member},`).join("\n")}\n${indent}}`;
}
