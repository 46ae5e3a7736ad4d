import type { TSchema } from "typebox";
import { ABSENT_WORDS, conforms } from "../../input/coerce.ts";
import { membersOf, pathParameters } from "../../input/input.ts";
import type { Endpoint } from "../endpoint.ts";
import { exampleInput } from "./examples.ts";
import { constraints, documentedInput, isSentAsJson, TEXT, type Json } from "./schemas.ts";

const BODY_TYPES = {
  form: "application/x-www-form-urlencoded",
  json: "application/json",
  multipart: "multipart/form-data",
  text: "text/plain",
  raw: "text/plain",
} as const;

type Member = readonly [name: string, schema: TSchema];

/** Parameters and body of one endpoint. */
export function requestOf(endpoint: Endpoint): Json {
  const inPath = pathParameters(endpoint.path);
  const members = Object.entries(membersOf(endpoint.input));
  const hasBody = endpoint.body !== undefined && endpoint.method !== "GET";
  const isText = endpoint.body === "text" || endpoint.body === "raw";
  // Another spelling of a member: generated clients would have two parameters of one name.
  const others = members.filter(([name]) => !inPath.includes(name) && !name.startsWith("$"));
  const request = new DescribedRequest(endpoint);
  const parameters = [
    ...inPath.map((name) => request.pathParameter(name)),
    ...(endpoint.events ? [LAST_EVENT_ID] : []),
    ...(isConditional(endpoint) ? CONDITIONS : []),
    ...(hasBody && !isText ? [] : others.map((member) => request.queryParameter(member, hasBody))),
  ];
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(hasBody && { requestBody: isText ? request.textBody(others) : request.body(others) }),
  };
}

const LAST_EVENT_ID: Json = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  schema: TEXT,
  description: "The last event that the client has.",
};

/** True for a change that its caller can make on a revision. */
export function isConditional({ method, revised }: Pick<Endpoint, "method" | "revised">): boolean {
  return revised === true && method !== "GET";
}

/** A revision in quotes: visible ASCII without the quote. */
const TAG = '(W/)?"[!#-~]*"';

const CONDITIONS: readonly Json[] = [
  conditionOf("If-Match", {
    description: "Revisions in quotes, or *: the definition must be there with one of them, else 412.",
    schema: { ...TEXT, pattern: `^(\\*|${TAG}( *, *${TAG})*)$` },
  }),
  conditionOf("If-None-Match", {
    description: "Only *: the definition must not be there, else 412.",
    schema: { ...TEXT, pattern: "^\\*$" },
  }),
];

function conditionOf(name: string, described: Json): Json {
  return { name, in: "header", required: false, ...described };
}

const FILE: Json = {
  type: "string",
  format: "binary",
  description: "A part with a file name; the part itself may have any name.",
};

interface InputSchema {
  readonly required?: readonly string[];
  /** Constraints on the members together. */
  readonly documented?: Json & { readonly required?: readonly string[] };
}

class DescribedRequest {
  readonly #endpoint: Endpoint;
  readonly #required: ReadonlySet<string>;
  /** Constraints on the members of the body together. */
  readonly #together: Json;
  readonly #example: Json;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    const { required = [], documented: added = {} } = endpoint.input as InputSchema;
    const { required: needed = [], ...together } = added;
    this.#required = new Set([...required, ...needed]);
    this.#together = constraints(together);
    this.#example = exampleInput(endpoint);
  }

  pathParameter(name: string): Json {
    const isRest = name === "*";
    return {
      name: isRest ? "path" : name,
      in: "path",
      required: true,
      schema: documentedInput(membersOf(this.#endpoint.input)[name] ?? {}),
      ...(isRest && { description: "The rest of the path. A slash in it may also be sent as %2F." }),
      ...this.#exampleOf(name),
    };
  }

  /** A member that may also be in the body is not required here. */
  queryParameter([name, schema]: Member, hasBody: boolean): Json {
    const described = this.#text(name, documentedInput(schema));
    const { description } = described as { readonly description?: string };
    return {
      name,
      in: "query",
      required: !hasBody && this.#isNeeded(name, schema),
      ...(description !== undefined && { description }),
      ...(isSentAsJson(schema)
        ? { content: { [BODY_TYPES.json]: { schema: described, ...this.#exampleOf(name) } } }
        : { schema: described, ...this.#exampleOf(name) }),
    };
  }

  body(members: readonly Member[]): Json {
    const { body = "form", uploads } = this.#endpoint;
    const schema = this.#schemaOf(members);
    const json = body === "json" ? [] : members.filter(([, member]) => isSentAsJson(member));
    const encoding = Object.fromEntries(json.map(([name]) => [name, { contentType: BODY_TYPES.json }]));
    const isNeeded = members.some(([name, member]) => this.#isNeeded(name, member));
    return {
      required: isNeeded || uploads === "one" || !conforms(this.#together as TSchema, {}),
      content: {
        [BODY_TYPES[body]]: {
          schema,
          ...(json.length > 0 && { encoding }),
          ...this.#bodyExample([...members.map(([name]) => name), ...(uploads ? ["uploadfile"] : [])]),
        },
      },
    };
  }

  /** A text of any type. A body `text` may also be a form or JSON, with the text as a member. */
  textBody(members: readonly Member[]): Json {
    const { body, text } = this.#endpoint;
    const schema = this.#schemaOf(members);
    // Its bytes are kept or decoded by the charset of its type; generated clients send them as they are.
    const length = body === "text" && !text?.optional ? { minLength: 1 } : {};
    const plain = { schema: { ...TEXT, format: "binary", ...length }, ...(text && { example: text.example }) };
    const type = text?.json === undefined ? BODY_TYPES.text : BODY_TYPES.json;
    const told =
      text?.json === undefined
        ? plain
        : { schema: documentedInput(text.json), example: JSON.parse(text.example) as unknown };
    return {
      required: text?.optional !== true,
      ...(text && { description: text.summary }),
      content: {
        [type]: told,
        ...(body === "text" && { [BODY_TYPES.form]: { schema }, [BODY_TYPES.json]: { schema } }),
      },
    };
  }

  #schemaOf(members: readonly Member[]): Json {
    const { uploads, body } = this.#endpoint;
    const isText = body !== "json";
    const described = members.map(([name, schema]) => [name, documentedInput(schema)] as const);
    const properties = Object.fromEntries(
      described.map(([name, schema]) => [name, isText ? this.#text(name, schema) : schema]),
    );
    const required = members.filter(([name, schema]) => this.#isNeeded(name, schema)).map(([name]) => name);
    const file = uploads === "one" ? { uploadfile: FILE } : uploads && { uploadfile: { type: "array", items: FILE } };
    return {
      type: "object",
      properties: { ...properties, ...(body === "multipart" && file) },
      required: [...required, ...(uploads === "one" ? ["uploadfile"] : [])],
      ...this.#together,
    };
  }

  /** A member of a query or a form. Some clients send words for a missing one. */
  #text(name: string, described: Json): Json {
    const isWord = described["type"] === "string" && described["enum"] === undefined && this.#required.has(name);
    return isWord ? { ...described, not: { enum: ABSENT_WORDS } } : described;
  }

  #bodyExample(names: readonly string[]): Json {
    const shown = names.flatMap((name) => (name in this.#example ? [[name, this.#example[name]] as const] : []));
    return shown.length > 0 ? { example: Object.fromEntries(shown) } : {};
  }

  #exampleOf(name: string): Json {
    return name in this.#example ? { example: this.#example[name] } : {};
  }

  /** A required member with a default may be absent. */
  #isNeeded(name: string, schema: TSchema): boolean {
    return this.#required.has(name) && !("default" in schema);
  }
}
