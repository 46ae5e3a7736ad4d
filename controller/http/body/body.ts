import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { AppError } from "../../../common/errors.ts";
import type { Bound } from "../../../common/json-decoder.ts";
import { HTTP_BODY_READ_FACTOR, HTTP_SESSION_WITHIN_BYTES } from "../../../common/limits.ts";
import { ENCODING_EXAMPLES, UTF8, type Encoding } from "../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../common/text/text-stream.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import type { CallMemory } from "./memory.ts";
import { charsetInForm, charsetOf, escapedForm, type EscapedForm } from "./charset.ts";
import type { EncodedText, Endpoint, UploadedFile } from "../interface/endpoint.ts";
import { addField, type Fields } from "./fields.ts";
import { parseUrlEncoded } from "./form-decoder.ts";
import { membersOf, pathParameters } from "../input/input.ts";
import { looksLikeJson, parseJson, requireFewLeadingBlanks } from "../../../common/json.ts";

/** A body as it was read. Its declared type is only a hint. */
export interface Body {
  readonly fields: Fields;
  readonly isJson: boolean;
  readonly text: string | undefined;
  /** See `Call`. */
  readonly malformed?: EncodedText | undefined;
  readonly files: readonly UploadedFile[];
}

export const NO_BODY: Body = { fields: new Map(), isJson: false, text: undefined, files: [] };

/**
 * Name of the session in a form or in JSON. A body with this member is not a free text, even if it has no member of the
 * endpoint.
 */
export const SESSION_FIELD = "sessionid";

/** Members of an object between two checks of the time slice. */
const MEMBERS_PER_LOOK = 256;

type Reader = Pick<Endpoint, "path" | "input" | "body">;

export interface TextOptions {
  /** Encoding of the text; UTF-8 when absent. */
  readonly encoding?: Encoding | undefined;
  /** Name of the text in errors. Default: The body. */
  readonly what?: string;
  readonly bound: Bound;
  /** Holds memory for the body, from its first byte on. */
  readonly memory: CallMemory;
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  /** Present while the caller is unknown. */
  readonly stranger?: Stranger | undefined;
}

/**
 * A caller who may be identified by a session within the first `HTTP_SESSION_WITHIN_BYTES` of the body. Otherwise the
 * call is refused.
 */
export interface Stranger {
  /** Resolves with the bound of the body if these fields identify the caller; rejects if they do not. */
  readonly knownBy: (fields: Fields) => Promise<Bound>;
}

/** Reads a whole text, decoded in slices. `AppError("too_large")` beyond the bound, `"invalid"` for malformed bytes. */
export async function readText(source: Readable, options: TextOptions): Promise<string> {
  return (await decodedText(await readChunks(source, options), options)).text;
}

/** A body as text. */
export interface ReadBody {
  readonly text: string;
  /** Present for a URL-encoded form whose escaped bytes are not UTF-8. */
  readonly form: EscapedForm | undefined;
  /** Present if some bytes are malformed, and `keepsMalformed` is true. */
  readonly malformed?: EncodedText | undefined;
}

interface BodyOptions extends Omit<TextOptions, "encoding"> {
  readonly contentType: string;
  /** True if the body may be a URL-encoded form, which can name its own charset. */
  readonly isForm: boolean;
  /** True: malformed bytes become U+FFFD. Otherwise they are refused. */
  readonly keepsMalformed?: boolean;
}

/** As `readText`, in the charset of the content type. An unsupported charset is refused before the body is read. */
export async function readBody(source: Readable, { contentType, isForm, ...options }: BodyOptions): Promise<ReadBody> {
  const named = charsetOf(contentType);
  const chunks = await readChunks(source, options);
  const plain = isForm ? undefined : plainText(chunks, named);
  if (plain !== undefined) return { text: plain, form: undefined };
  if (!isForm || options.keepsMalformed) return readPlain(chunks, { ...options, encoding: named ?? UTF8 });
  const whole = chunks.length === 1 ? (chunks[0] ?? NOTHING) : Buffer.concat(chunks);
  const encoding = named ?? charsetInForm(whole) ?? UTF8;
  const form = escapedForm(whole, encoding);
  if (form !== undefined) options.memory.hold(whole.length);
  return { text: (await decodedText(chunks, { ...options, encoding })).text, form };
}

/** Text of a body that arrived in one piece of valid UTF-8, as nearly all do. `undefined` for any other body. */
function plainText(chunks: readonly Buffer[], encoding = UTF8): string | undefined {
  const [whole = NOTHING] = chunks;
  if (chunks.length > 1 || encoding !== UTF8 || !isUtf8(whole)) return undefined;
  const text = whole.toString();
  return text.startsWith(MARK) ? text.slice(1) : text;
}

async function readPlain(
  chunks: readonly Buffer[],
  options: Omit<BodyOptions, "contentType" | "isForm"> & { readonly encoding: Encoding },
): Promise<ReadBody> {
  const { encoding, memory } = options;
  const { text, isMalformed } = await decodedText(chunks, options);
  if (!isMalformed) return { text, form: undefined };
  memory.hold(chunks.reduce((sum, { length }) => sum + length, 0));
  return { text, form: undefined, malformed: { bytes: Buffer.concat(chunks), encoding } };
}

const NOTHING = Buffer.alloc(0);
/** The byte order mark. */
const MARK = "\ufeff";
/** Hint for errors about malformed bytes. */
export const NAME_CHARSET = `name its charset in Content-Type, ${ENCODING_EXAMPLES}`;

async function decodedText(
  chunks: readonly Buffer[],
  {
    encoding,
    slices,
    what = "The body",
    keepsMalformed = false,
  }: Pick<TextOptions, "encoding" | "slices" | "what"> & Pick<BodyOptions, "keepsMalformed">,
): Promise<{ readonly text: string; readonly isMalformed: boolean }> {
  const stream = new TextStream(encoding, keepsMalformed ? {} : { refuse: refusing(what, NAME_CHARSET) });
  let text = "";
  for (const chunk of chunks) {
    if (chunks.length > 1 && slices.isOverNow()) await slices.pause();
    text += stream.take(chunk);
  }
  text += stream.end();
  return { text, isMalformed: stream.malformed > 0 };
}

type ChunkOptions = Pick<TextOptions, "bound" | "memory" | "stranger">;

function readChunks(source: Readable, { bound: first, memory, stranger }: ChunkOptions): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let bound = first;
    let isKnown = stranger === undefined;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      try {
        if (size > bound.max) throw bodyTooLarge(bound);
        memory.hold(chunk.length * HTTP_BODY_READ_FACTOR);
        if (!isKnown && size > HTTP_SESSION_WITHIN_BYTES) ask();
      } catch (error) {
        refuse(error as AppError);
      }
    };
    const ask = (): void => {
      isKnown = true;
      source.pause();
      const head = Buffer.concat(chunks).subarray(0, HTTP_SESSION_WITHIN_BYTES).toString("latin1");
      stranger?.knownBy(sessionIn(head)).then((known) => {
        bound = known;
        if (size > bound.max) refuse(bodyTooLarge(bound));
        else source.resume();
      }, refuse);
    };
    const done = (): void => {
      leave();
      resolve(chunks);
    };
    const broken = (error?: Error): void =>
      refuse(new AppError("cancelled", "The client went away while it was sending.", { cause: error }));
    const refuse = (error: Error): void => {
      leave();
      // The rest of the body is discarded. Destroying the request would close the socket of the answer as well.
      source.resume();
      reject(error);
    };
    const leave = (): void => void source.off("data", take).off("end", done).off("error", broken).off("close", broken);
    if (source.destroyed) broken();
    else source.on("data", take).on("end", done).on("error", broken).on("close", broken);
  });
}

export function bodyTooLarge({ name, max }: Bound): AppError {
  const details = { limit: name, maxBytes: max };
  return new AppError("too_large", `The body is larger than ${max} bytes (${name}).`, { details });
}

// Both spell `SESSION_FIELD`.
const SESSION_IN_FORM = /(?:^|&)(sessionid=[^&]*)&/;
const SESSION_IN_JSON = /"sessionid"\s*:\s*"([^"\\]*)"/;

/** The session in the beginning of a form or of a JSON text, as a field; empty if there is none. */
function sessionIn(head: string): Fields {
  const inForm = SESSION_IN_FORM.exec(head)?.[1];
  if (inForm !== undefined) return parseUrlEncoded(inForm);
  const inJson = SESSION_IN_JSON.exec(head)?.[1];
  return new Map(inJson === undefined ? [] : [[SESSION_FIELD, [inJson]]]);
}

/** The values of a text. Each function throws if the text is not of its kind. */
export interface Texts {
  readonly json: (text: string) => unknown;
  /** Members of the JSON value, if they were read in slices. */
  readonly members?: Fields | undefined;
  readonly form: (text: string) => Fields;
}

const AT_ONCE: Texts = { json: parseJson, form: parseUrlEncoded };

/**
 * Reads a body as the endpoint expects it. The content type is only a hint, because clients send JSON as text, text as
 * JSON, and free text as a form. The content and the declaration of the endpoint decide.
 */
export function interpret(endpoint: Reader, text: string, contentType: string, texts: Texts = AT_ONCE): Body {
  if (endpoint.body === "raw") return { ...NO_BODY, text };
  const body = meaning(endpoint, { text, contentType, texts });
  return endpoint.body === "text" ? { ...body, text } : body;
}

interface Incoming {
  readonly text: string;
  readonly contentType: string;
  readonly texts: Texts;
}

function meaning(endpoint: Reader, incoming: Incoming): Body {
  const { text, contentType, texts } = incoming;
  if (text === "") return NO_BODY;
  const form = isForm(endpoint, contentType) ? texts.form(text) : NO_BODY.fields;
  if (namesMember(endpoint, form.keys())) return { ...NO_BODY, fields: form };
  // MQL and LTSV texts may be declared as a form by mistake. If the endpoint takes no text, the names are typing
  // errors, so the fields are kept.
  const free = { ...NO_BODY, text, ...(!takesText(endpoint) && { fields: form }) };
  if (looksLikeJson(text)) return jsonBody(endpoint, incoming) ?? free;
  if (endpoint.body !== "text" && mustBeJson(endpoint, contentType)) requireFewLeadingBlanks(text);
  return free;
}

/** Content type of one JSON text. Lines of JSON have another type. */
const JSON_TYPE = /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** True if a text that looks like JSON must be JSON. */
function mustBeJson({ body }: Pick<Reader, "body">, contentType: string): boolean {
  return body === "text" ? JSON_TYPE.test(contentType) : body === "json" || /json/i.test(contentType);
}

export function isForm(endpoint: Pick<Reader, "body">, contentType: string): boolean {
  return /^application\/x-www-form-urlencoded/i.test(contentType) || (contentType === "" && endpoint.body === "form");
}

/** True if the handler reads `call.text`. */
export function takesText({ body }: Pick<Endpoint, "body">): boolean {
  return body === "text" || body === "raw";
}

function jsonBody(endpoint: Reader, { text, contentType, texts }: Incoming): Body | undefined {
  const mustBe = mustBeJson(endpoint, contentType);
  const value = parsed(() => texts.json(text), mustBe);
  if (value === undefined) return undefined;
  const fields = texts.members ?? fieldsOf(value);
  if (endpoint.body === "text" && !mustBe && !namesMember(endpoint, fields.keys())) return undefined;
  return { ...NO_BODY, fields, isJson: true };
}

function fieldsOf(value: object): Fields {
  const fields = new Map<string, unknown[]>();
  // A body that is a list becomes the member `items`.
  if (Array.isArray(value)) return fields.set("items", [value]);
  for (const [name, member] of Object.entries(value)) addMember(fields, name, member);
  return fields;
}

/** As `fieldsOf`, for an object with many members. */
export async function fieldsInSlices(
  value: object,
  slices: Pick<ThreadSlices, "isOverNow" | "pause">,
): Promise<Fields> {
  if (Array.isArray(value)) return fieldsOf(value);
  const fields = new Map<string, unknown[]>();
  for (const [at, name] of Object.keys(value).entries()) {
    addMember(fields, name, (value as Readonly<Record<string, unknown>>)[name]);
    if (at % MEMBERS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
  }
  return fields;
}

function addMember(fields: Map<string, unknown[]>, name: string, member: unknown): void {
  if (name.endsWith("[]")) addField(fields, name, member);
  else fields.set(name, [member]);
}

function parsed(parse: () => unknown, isRequired: boolean): object | undefined {
  try {
    return parse() as object;
  } catch (error) {
    if (isRequired) throw error;
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
  // The path says what a free text belongs to. A text that happens to use the names of path parameters is still a text.
  if (body === "text") for (const name of pathParameters(path)) members.delete(name);
  return members;
}
