import type { Schema } from "./schemas.ts";

/** The parts of the OpenAPI document that the typed client is made of. */

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
}

type Content = Readonly<
  Record<string, { readonly schema: Schema & { readonly "x-item-schema"?: Schema }; readonly example?: unknown }>
>;

export interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly "x-permission"?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly description?: string; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content; readonly headers?: object }>>;
}

export interface Socket {
  readonly summary: string;
  readonly "x-permission": string;
  readonly parameters: readonly Parameter[];
  readonly frames: { readonly server: { readonly schema: Schema } };
}

type PathItem = Readonly<Partial<Record<"get" | "put" | "post" | "patch" | "delete", Described>>> & {
  readonly "x-websocket"?: Socket;
};

export interface Document {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, PathItem>>;
}

export interface Operation {
  readonly method: "get" | "put" | "post" | "patch" | "delete";
  readonly path: string;
  readonly described: Described;
}

const METHODS = ["get", "put", "post", "patch", "delete"] as const;

export function operationsIn({ paths }: Document): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method];
      return described === undefined ? [] : [{ method, path, described }];
    }),
  );
}

const JSON_TYPE = "application/json";
const LINES = "application/x-ndjson";
const EVENTS = "text/event-stream";

interface Answers {
  readonly message: Schema | undefined;
  /** JSON without the envelope. */
  readonly value: Schema | undefined;
  readonly lines: Schema | undefined;
  readonly events: Schema | undefined;
  readonly isContent: boolean;
}

export function answersOf({ responses }: Described): Answers {
  const content = responses["200"]?.content ?? {};
  const { [JSON_TYPE]: json, [LINES]: lines, [EVENTS]: events, ...others } = content;
  const forms = json === undefined ? [] : (json.schema.anyOf ?? [json.schema]);
  const envelope = forms.find((schema) => schema.properties?.["message"] !== undefined);
  return {
    message: envelope?.properties?.["message"],
    value: forms.find((schema) => schema !== envelope && !("$ref" in schema)),
    lines: lines?.schema["x-item-schema"],
    events: events?.schema["x-item-schema"],
    isContent: Object.keys(others).length > 0,
  };
}

export function redirects({ responses }: Described): boolean {
  return "302" in responses;
}

/** True for a change that can be made on a revision. */
export function isRevised({ parameters = [] }: Described): boolean {
  return parameters.some(({ name }) => name === "If-Match");
}

/** True if the operation is read page by page. The members that name a page are called so in all operations. */
export function isPaged(described: Described): boolean {
  const names = memberNames(described);
  return names.includes("cursor") || names.includes("after");
}

/** Names of the members of query and body. */
export function memberNames({ parameters = [], requestBody }: Described): readonly string[] {
  const inQuery = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
  const bodies = Object.values(requestBody?.content ?? {});
  return [...inQuery, ...bodies.flatMap(({ schema }) => Object.keys(schema.properties ?? {}))];
}
