import { Type } from "typebox";
import { RULE_DIAL_MAX_SECONDS } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import type { Outbound, OutboundRequest } from "../../outbound/index.ts";
import { type HostContext, hostFunction, type HostFunction, type HostObject } from "../../scripting/index.ts";

type Sender = Pick<Outbound, "send">;

/** `dial` for the bodies of rules. They have no `http`, because a record must not wait for another server. */
export function dialHostObject(outbound: Pick<Outbound, "dial">): HostObject {
  return {
    name: "record",
    summary: "What the body of a rule asks for; each function is a global one, too",
    kinds: ["rule"],
    functions: [
      hostFunction({
        name: "dial",
        summary: "Whether a TCP connection is taken; private networks are closed until the administrator opens them",
        parameters: [
          { name: "host", schema: Type.String({ minLength: 1, maxLength: 253, description: "A name or an address" }) },
          { name: "port", schema: Type.Integer({ minimum: 1, maximum: 65_535 }) },
          {
            name: "seconds",
            schema: Type.Number({ exclusiveMinimum: 0, maximum: RULE_DIAL_MAX_SECONDS, description: "1 without it" }),
            optional: true,
          },
        ],
        returns: "true or false",
        example: 'setvar("note", dial("127.0.0.1", 1, 0.5))',
        call: ({ principal, signal }, host, port, seconds = 1) =>
          outbound.dial(principal.tenant, { host, port, timeoutMs: seconds * 1_000 }, signal),
      }),
    ],
  };
}
type Fields = Readonly<Record<string, unknown>>;

const URL_TEXT = { name: "url", schema: Type.String({ description: "With http:// or https://" }) } as const;
const ANSWER = "{status, headers, data}, data being the text of the body; as well to the first function at the end";
const REFUSED = "function (answer) { OUTPUT = answer.data; }, function (error) { OUTPUT = error.code; })";
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_BODY = { "content-type": "application/json" };

/** `http`: requests to other servers. */
export function httpHostObject(outbound: Sender): HostObject {
  return {
    name: "http",
    summary: "Requests to other servers; private networks are closed until the administrator opens them",
    kinds: ["serverjs", "trigger"],
    functions: [
      withParameters(outbound, "get"),
      withParameters(outbound, "delete"),
      withForm(outbound, "post"),
      withForm(outbound, "put"),
      withJson(outbound, "postjson"),
      withJson(outbound, "putjson"),
      anything(outbound),
    ],
  };
}

function withParameters(outbound: Sender, name: "get" | "delete"): HostFunction {
  return hostFunction({
    name,
    summary: `Sends ${name.toUpperCase()}`,
    parameters: [
      URL_TEXT,
      {
        name: "params",
        schema: Type.Object({}, { description: "Added to the address: a text, or a list of them, by name" }),
        optional: true,
      },
    ],
    returns: ANSWER,
    example: `http.${name}("http://127.0.0.1/status", { n: 1 }, ${REFUSED}`,
    changes: name === "delete",
    call: (context, url, params = {}) => {
      const query = fieldsOf(params as Fields).toString();
      const mark = url.includes("?") ? "&" : "?";
      return send(outbound, context, { method: name, url: query === "" ? url : `${url}${mark}${query}` });
    },
  });
}

function withForm(outbound: Sender, name: "post" | "put"): HostFunction {
  return hostFunction({
    name,
    summary: `Sends a form by ${name.toUpperCase()}`,
    parameters: [
      URL_TEXT,
      {
        name: "form",
        schema: Type.Object({}, { description: "A text, or a list of them, by name" }),
        optional: true,
      },
    ],
    returns: ANSWER,
    example: `http.${name}("http://127.0.0.1/form", { name: ["one", "two"] }, ${REFUSED}`,
    changes: true,
    call: (context, url, form = {}) =>
      send(outbound, context, { method: name, url, headers: FORM, body: fieldsOf(form as Fields).toString() }),
  });
}

function withJson(outbound: Sender, name: "postjson" | "putjson"): HostFunction {
  const method = name.slice(0, -"json".length);
  return hostFunction({
    name,
    summary: `Sends JSON by ${method.toUpperCase()}`,
    parameters: [URL_TEXT, { name: "value", schema: Type.Unknown({ description: "What is sent as JSON" }) }],
    returns: ANSWER,
    example: `http.${name}("http://127.0.0.1/json", { n: 1 }, ${REFUSED}`,
    changes: true,
    call: (context, url, value) =>
      send(outbound, context, { method, url, headers: JSON_BODY, body: JSON.stringify(value) }),
  });
}

function anything(outbound: Sender): HostFunction {
  return hostFunction({
    name: "do",
    summary: "Sends what is given",
    parameters: [
      { name: "method", schema: Type.String({ description: "GET, PATCH, …" }) },
      URL_TEXT,
      { name: "headers", schema: Type.Record(Type.String(), Type.String()), optional: true },
      { name: "body", schema: Type.String({ description: "Its text" }), optional: true },
    ],
    returns: ANSWER,
    example: `http["do"]("PATCH", "http://127.0.0.1/x", { "content-type": "text/plain" }, "text", ${REFUSED}`,
    changes: true,
    call: (context, ...[method, url, headers = {}, body]) => send(outbound, context, { method, url, headers, body }),
  });
}

async function send(outbound: Sender, { principal, signal }: HostContext, request: OutboundRequest): Promise<Value> {
  const { status, headers, data } = await outbound.send(principal.tenant, request, signal);
  return { status, headers, data };
}

function fieldsOf(fields: Fields): URLSearchParams {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) given.append(name, textOf(one));
  return given;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
