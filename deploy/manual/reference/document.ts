/** The parts of an OpenAPI document that the reference shows. */
export interface Document {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Answer>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

export interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly tags?: readonly string[];
  /** Empty: without sign-in. */
  readonly security?: readonly object[];
  readonly "x-permission"?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Answer>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly example?: unknown;
  /** Form of a parameter that is sent as JSON, in place of `schema`. */
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Body {
  readonly required: boolean;
  readonly description?: string;
  readonly content: Readonly<Record<string, Content>>;
}

export interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
}

export interface Answer {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Content>>;
  readonly "x-codes"?: readonly string[];
}

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  /** Schema of each line or event of a stream. */
  readonly "x-item-schema"?: Schema;
}

/** A WebSocket, `x-websocket` of its path. */
export interface Socket extends Pick<Described, "summary" | "x-permission" | "parameters"> {
  readonly frames: Readonly<Record<"server" | "client", { readonly description: string; readonly schema?: Schema }>>;
  readonly closes: readonly { readonly code: number; readonly reason: string }[];
}

export interface Operation {
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  readonly described: Described;
}

const METHODS = ["get", "post", "put", "patch", "delete"];

export function operationsOf({ paths }: Document): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method];
      return described === undefined ? [] : [{ method: method.toUpperCase(), path, described }];
    }),
  );
}

export function socketsOf({ paths }: Document): readonly { readonly path: string; readonly socket: Socket }[] {
  return Object.entries(paths).flatMap(([path, item]) => {
    const socket = item["x-websocket"] as unknown as Socket | undefined;
    return socket === undefined ? [] : [{ path, socket }];
  });
}

/** The answer itself, or the one of the components that it refers to. */
export function answerOf({ components }: Document, answer: Answer): Answer {
  return answer.$ref === undefined ? answer : (components.responses[nameIn(answer.$ref)] ?? answer);
}

export function nameIn(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}
