import type { Readable } from "node:stream";
import { AppError } from "../../common/errors.ts";
import { HTTP_BODY_MAX_BYTES, HTTP_BODY_READ_FACTOR } from "../../common/limits.ts";
import type { CallMemory } from "./body-memory.ts";
import type { Endpoint, UploadedFile } from "./endpoint.ts";
import { addField, parseUrlEncoded, type Fields } from "./fields.ts";
import { membersOf, pathParameters } from "./input.ts";
import { looksLikeJson, parseJson } from "../../common/json.ts";

/** A body as read, whatever it claimed to be. */
export interface Body {
  readonly fields: Fields;
  readonly isJson: boolean;
  readonly text: string | undefined;
  readonly files: readonly UploadedFile[];
}

export const NO_BODY: Body = { fields: new Map(), isJson: false, text: undefined, files: [] };

/** Sign-in by form: belongs to no endpoint, so it makes a form a form. */
export const SESSION_FIELD = "sessionid";

type Reader = Pick<Endpoint, "path" | "input" | "body">;

export interface TextOptions {
  readonly contentType: string;
  /** `HTTP_BODY_MAX_BYTES` when absent. */
  readonly maxBytes: number | undefined;
  /** Holds the body from its first byte on. */
  readonly memory: CallMemory;
}

/** The whole body as text in the charset its type names. `AppError("too_large")` beyond `maxBytes`. */
export async function readText(source: Readable, { contentType, maxBytes, memory }: TextOptions): Promise<string> {
  return decode(await readBytes(source, maxBytes ?? HTTP_BODY_MAX_BYTES, memory), contentType);
}

function readBytes(source: Readable, maxBytes: number, memory: CallMemory): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      try {
        if (size > maxBytes) throw bodyTooLarge(maxBytes);
        memory.hold(chunk.length * HTTP_BODY_READ_FACTOR);
      } catch (error) {
        refuse(error as AppError);
      }
    };
    const done = (): void => {
      leave();
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    };
    const broken = (error?: Error): void =>
      refuse(new AppError("cancelled", "The client went away while it was sending.", { cause: error }));
    const refuse = (error: AppError): void => {
      leave();
      // What is still to come goes nowhere; destroying the request would take the answer's socket along.
      source.resume();
      reject(error);
    };
    const leave = (): void => void source.off("data", take).off("end", done).off("error", broken).off("close", broken);
    if (source.destroyed) broken();
    else source.on("data", take).on("end", done).on("error", broken).on("close", broken);
  });
}

function bodyTooLarge(maxBytes: number): AppError {
  return new AppError("too_large", `The body is larger than ${String(maxBytes)} bytes.`, { details: { maxBytes } });
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function decode(bytes: Uint8Array, contentType: string): string {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return (/^utf-?8$/i.test(charset) ? UTF8 : new TextDecoder(charset, { fatal: true })).decode(bytes);
  } catch (error) {
    throw new AppError("invalid", `The body is no ${charset} text.`, { cause: error });
  }
}

/**
 * What a body means to an endpoint. The content type is only a hint, because clients send JSON as text, text as JSON,
 * and free text as a form; what is in it and what the endpoint asks for decide.
 */
export function interpret(endpoint: Reader, text: string, contentType: string): Body {
  if (endpoint.body === "raw") return { ...NO_BODY, text };
  const body = meaning(endpoint, text, contentType);
  return endpoint.body === "text" ? { ...body, text } : body;
}

function meaning(endpoint: Reader, text: string, contentType: string): Body {
  if (text === "") return NO_BODY;
  const free = { ...NO_BODY, text };
  if (isForm(endpoint, contentType)) {
    const form = formBody(endpoint, text);
    if (form !== undefined) return form;
  }
  if (!looksLikeJson(text)) return free;
  return jsonBody(endpoint, text, /json/i.test(contentType)) ?? free;
}

function isForm(endpoint: Reader, contentType: string): boolean {
  return /^application\/x-www-form-urlencoded/i.test(contentType) || (contentType === "" && endpoint.body === "form");
}

/** Undefined when a text only calls itself a form, as MQL and LTSV texts do. */
function formBody(endpoint: Reader, text: string): Body | undefined {
  const fields = parseUrlEncoded(text);
  return namesMember(endpoint, fields.keys()) ? { ...NO_BODY, fields } : undefined;
}

function jsonBody(endpoint: Reader, text: string, declared: boolean): Body | undefined {
  const value = parsed(text, endpoint.body === "json" || (declared && endpoint.body !== "text"));
  if (value === undefined) return undefined;
  const fields = new Map<string, unknown[]>();
  // A body that is a bare list comes as the member `items`.
  const members = Array.isArray(value) ? [["items", value] as const] : Object.entries(value);
  for (const [name, member] of members) {
    if (name.endsWith("[]")) addField(fields, name, member);
    else fields.set(name, [member]);
  }
  if (endpoint.body === "text" && !namesMember(endpoint, fields.keys())) return undefined;
  return { ...NO_BODY, fields, isJson: true };
}

function parsed(text: string, mustBeJson: boolean): object | undefined {
  try {
    return parseJson(text) as object;
  } catch (error) {
    if (mustBeJson) throw error;
    return undefined;
  }
}

function namesMember(endpoint: Reader, names: Iterable<string>): boolean {
  let members = bodyMembers.get(endpoint);
  if (members === undefined) bodyMembers.set(endpoint, (members = bodyMembersOf(endpoint)));
  for (const name of names) if (members.has(name)) return true;
  return false;
}

const bodyMembers = new WeakMap<Reader, ReadonlySet<string>>();

function bodyMembersOf({ input, body, path }: Reader): ReadonlySet<string> {
  const members = new Set([...Object.keys(membersOf(input)), SESSION_FIELD]);
  // What a free text belongs to is said by the path; a text that happens to use the same words stays a text.
  if (body === "text") for (const name of pathParameters(path)) members.delete(name);
  return members;
}
