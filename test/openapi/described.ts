import { Compile, type Validator } from "typebox/schema";
import { mediaTypeOf } from "../../controller/http/answer/forms.ts";

/** The parts of an answer that the document describes. */
export interface Answered {
  readonly status: number;
  /** Value of the header; `undefined` without a body. */
  readonly contentType: string | undefined;
  readonly body: string;
}

export interface Described {
  readonly operationId: string;
  /** Absent: a sign-in by any of the ways of the document; empty: none. */
  readonly security?: readonly object[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly example?: unknown; readonly schema?: ObjectSchema }>>;
  };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly example?: unknown;
  readonly content?: Readonly<Record<string, { readonly example?: unknown }>>;
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

interface Response {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
  readonly "x-codes"?: readonly string[];
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Response>>;
    readonly schemas: Readonly<Record<string, object>>;
  };
}

const METHODS = ["get", "put", "post", "patch", "delete"] as const;

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly described: Described;
}

export function operationsOf({ paths }: OpenApi): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method];
      return described === undefined ? [] : [{ method: method.toUpperCase(), path, described }];
    }),
  );
}

const LINES = "application/x-ndjson";
const EVENTS = "text/event-stream";

/** Compares answers with what the document says of them. */
export class DescribedAnswers {
  readonly #document: OpenApi;
  readonly #validators = new WeakMap<object, Validator>();

  constructor(document: OpenApi) {
    this.#document = document;
  }

  /** The part of the answer that the document does not describe; `undefined` if it describes all of it. */
  faultOf(described: Described, { status, contentType, body }: Answered): string | undefined {
    const response = this.#response(described.responses[String(status)]);
    if (response === undefined) return `status ${status}: ${body.slice(0, 200)}`;
    if (body === "") return undefined;
    const type = mediaTypeOf(contentType ?? "");
    const { schema } = response.content?.[type] ?? response.content?.["*/*"] ?? {};
    if (schema === undefined) return `${status} ${type}: ${body.slice(0, 200)}`;
    return this.#faultOfBody({ type, schema, body }) ?? this.#faultOfCode(response, type, body);
  }

  #response(response: Response | undefined): Response | undefined {
    if (response?.$ref === undefined) return response;
    return this.#document.components.responses[response.$ref.split("/").at(-1) ?? ""];
  }

  #faultOfBody({ type, schema, body }: { readonly type: string; readonly schema: object; readonly body: string }) {
    if (/\bjson$/.test(type) && type !== LINES) return this.#faultOfValue(schema, body);
    const item = (schema as { readonly "x-item-schema"?: object })["x-item-schema"];
    const items = type === LINES ? linesOf(body) : type === EVENTS ? linesOf(body).flatMap((line) => dataOf(line)) : [];
    for (const text of items) {
      const fault = this.#faultOfValue(item ?? {}, text);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #faultOfValue(schema: object, text: string): string | undefined {
    const validator = this.#validatorOf(schema);
    const value: unknown = JSON.parse(text);
    if (validator.Check(value)) return undefined;
    return `${JSON.stringify(validator.Errors(value)[1]).slice(0, 600)} of ${text.slice(0, 400)}`;
  }

  #faultOfCode(response: Response, type: string, body: string): string | undefined {
    const codes = response["x-codes"];
    if (codes === undefined || !/\bjson$/.test(type)) return undefined;
    const { code } = JSON.parse(body) as { readonly code?: string };
    return codes.includes(code ?? "") ? undefined : `code ${code}`;
  }

  #validatorOf(schema: object): Validator {
    let validator = this.#validators.get(schema);
    if (validator === undefined) {
      validator = Compile(this.#resolved(schema) as never);
      this.#validators.set(schema, validator);
    }
    return validator;
  }

  /** The schema with the components in place of the references to them. */
  #resolved(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.#resolved(one));
    if (typeof value !== "object" || value === null) return value;
    const { $ref } = value as { readonly $ref?: unknown };
    if (typeof $ref === "string")
      return this.#resolved(this.#document.components.schemas[$ref.split("/").at(-1) ?? ""]);
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#resolved(one)]));
  }
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}

function dataOf(line: string): readonly string[] {
  return line.startsWith("data: ") ? [line.slice("data: ".length)] : [];
}
