import type { FastifyInstance } from "fastify";
import type { Answered, Described, Parameter } from "./described.ts";

/** A call of an operation as the document describes it, with values for what only a run of it knows. */
export interface Sent {
  readonly method: string;
  readonly path: string;
  /** Members in place of those of the example. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Name of the file that is uploaded. */
  readonly filename?: string;
  readonly headers: Readonly<Record<string, string>>;
}

const FORM = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";
const EVENTS = "text/event-stream";

/** Sends the example of an operation. Of a stream of events, reads the first. */
export async function answerTo(app: FastifyInstance, described: Described, sent: Sent): Promise<Answered> {
  const { parameters = [] } = described;
  const valueOf = (parameter: Parameter): unknown => sent.members?.[parameter.name] ?? exampleOf(parameter);
  const url = sent.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const parameter = parameters.find((one) => one.in === "path" && one.name === name);
    return encodeURIComponent(String(parameter === undefined ? "" : valueOf(parameter)));
  });
  const query = new URLSearchParams();
  for (const parameter of parameters.filter((one) => one.in === "query"))
    for (const text of textsOf(valueOf(parameter))) query.append(parameter.name, text);
  const { payload, type } = await bodyOf(described, sent);
  const gone = new AbortController();
  const response = await app.inject({
    method: sent.method as "GET",
    url: `${url}?${query.toString()}`,
    headers: { accept: "application/problem+json", ...sent.headers, ...(type && { "content-type": type }) },
    ...(payload !== undefined && { payload }),
    payloadAsStream: true,
    signal: gone.signal,
  });
  const contentType = response.headers["content-type"]?.toString();
  const body = await textOf(response.stream(), contentType?.startsWith(EVENTS) === true);
  gone.abort();
  return { status: response.statusCode, contentType, body };
}

async function textOf(stream: NodeJS.ReadableStream, isEndless: boolean): Promise<string> {
  const pieces: Buffer[] = [];
  // An aborted stream fails, and its error has no reader.
  stream.on("error", () => {});
  for await (const piece of stream) {
    pieces.push(Buffer.from(piece));
    if (isEndless) break;
  }
  return Buffer.concat(pieces).toString();
}

function exampleOf({ example, content }: Parameter): unknown {
  return example ?? content?.["application/json"]?.example;
}

/** The texts by which a form or a query sends a value: several for a list, JSON for what is neither text nor number. */
function textsOf(value: unknown): readonly string[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.map(String);
  return [typeof value === "object" ? JSON.stringify(value) : String(value)];
}

interface Body {
  readonly payload?: string | Buffer;
  readonly type?: string;
}

async function bodyOf({ requestBody }: Described, { members, filename }: Sent): Promise<Body> {
  const [type, described] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  if (type === undefined) return {};
  const { example, schema } = described ?? {};
  if (typeof example === "string") return { payload: example, type };
  const names = Object.keys(schema?.properties ?? {});
  const own = Object.entries(members ?? {}).filter(([name]) => names.includes(name));
  const all = { ...(example as object | undefined), ...Object.fromEntries(own) };
  if (type === FORM || type === MULTIPART) return formOf(type, all, filename);
  return Object.keys(all).length === 0 && requestBody?.required !== true ? {} : { payload: JSON.stringify(all), type };
}

async function formOf(type: string, members: object, filename = "example.txt"): Promise<Body> {
  const { uploadfile, ...others } = members as { readonly uploadfile?: string | Buffer | readonly string[] };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(others)) for (const text of textsOf(value)) query.append(name, text);
  if (type === FORM) return { payload: query.toString(), type };
  const form = new FormData();
  for (const [name, text] of query) form.append(name, text);
  if (uploadfile !== undefined) form.append("uploadfile", new File([uploadfile].flat() as string[], filename));
  const request = new Response(form);
  return { payload: Buffer.from(await request.arrayBuffer()), type: request.headers.get("content-type") ?? type };
}
