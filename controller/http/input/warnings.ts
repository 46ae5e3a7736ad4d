import type { TSchema } from "typebox";
import {
  HTTP_WARNING_MAX_CHARACTERS,
  HTTP_WARNINGS_HEADER_MAX_CHARACTERS,
  HTTP_WARNINGS_MAX,
} from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import { ignoredName } from "../../../common/text/unknown.ts";
import { NO_BODY, SESSION_FIELD, takesText, type Body } from "../body/body.ts";
import { CHARSET_FIELD } from "../body/charset.ts";
import { gather, type JsonTexts } from "./coerce.ts";
import type { Answer, Endpoint, UploadedFile } from "../interface/endpoint.ts";
import type { Fields } from "../body/fields.ts";
import { membersOf, type InputWork, type Sources } from "./input.ts";

/**
 * Names that clients send to every address: the session, jQuery's mark against caches, tokens of pages, the charset of
 * a form, the choice between user and system.
 */
const SENT_EVERYWHERE = new Set([SESSION_FIELD, "_", CHARSET_FIELD, "_csrf", "csrf", "issys", "$issys", "callback"]);

/** Bodies that clients send when they have no content. */
const NOTHING = new Set(["", "null", "undefined", '""', "''"]);

/** Items of a list that are examined in one step. */
const ITEMS_PER_STEP = 32;

/** All fields of a call except those of its path, and its body as it arrived. */
interface Sent extends Omit<Sources, "path"> {
  readonly sent: Body;
}

/** Warnings about everything in query and body that the endpoint does not read. */
export function ignoredIn(
  endpoint: Pick<Endpoint, "input" | "body">,
  sent: Sent,
  work: InputWork,
): readonly string[] | Promise<readonly string[]> {
  const names = ignoredNames(endpoint, sent);
  const body = ignoredBody(endpoint, sent.sent);
  if (!sendsMembers(endpoint.input, sent)) return [...names, ...body];
  return ignoredMembers(endpoint, sent, work).then((members) => [...names, ...members, ...body]);
}

/** One warning for each name in query and body that the endpoint does not know. Such names are ignored, not refused. */
export function ignoredNames(
  endpoint: Pick<Endpoint, "input">,
  { query, body }: Pick<Sources, "query" | "body">,
): readonly string[] {
  const known = knownNames(endpoint.input);
  const [inQuery, inBody] = [unknownNames(query, known), unknownNames(body, known)];
  if (inQuery.length + inBody.length === 0) return NOTHING_IGNORED;
  return Array.from(new Set([...inQuery, ...inBody]), (name) => ignoredName(name, known ?? new Set()));
}

const NOTHING_IGNORED: readonly string[] = [];

/** Names in the body that the endpoint does not know. */
export function unknownMembers({ input }: Pick<Endpoint, "input">, body: Fields): readonly string[] {
  return unknownNames(body, knownNames(input));
}

/** Unknown names, at most one more than are reported. The additional one shows that there are more. */
function unknownNames(fields: Fields, known: ReadonlySet<string> | undefined): readonly string[] {
  if (known === undefined || fields.size === 0) return NOTHING_IGNORED;
  const unknown: string[] = [];
  for (const name of fields.keys()) {
    if (unknown.length > HTTP_WARNINGS_MAX) break;
    if (!known.has(name) && !SENT_EVERYWHERE.has(name)) unknown.push(name);
  }
  return unknown;
}

/** The text of a body from which no member was read, and which the endpoint does not read; `undefined` otherwise. */
export function unreadText(endpoint: Pick<Endpoint, "body">, body: Body): string | undefined {
  if (takesText(endpoint) || body.fields.size > 0) return undefined;
  const text = body.text?.trim() ?? "";
  return NOTHING.has(text) ? undefined : text;
}

/** The files that were sent. Browsers send an empty file field as a part without a name; it does not count. */
export function sentFiles({ files }: Body): readonly UploadedFile[] {
  return files.filter(({ filename, size }) => filename !== "" || size > 0);
}

/** Warnings about a body that was not read, and about files if the endpoint takes none. */
export function ignoredBody(endpoint: Pick<Endpoint, "body">, body: Body): readonly string[] {
  if (body === NO_BODY) return NOTHING_IGNORED;
  const files = endpoint.body === "multipart" ? [] : sentFiles(body);
  const told = files.map(({ field }) => `The file in ${field} is not read here, and was ignored.`);
  if (unreadText(endpoint, body) === undefined) return told;
  return [...told, "The body is neither JSON nor a form, and was ignored."];
}

/**
 * Warnings about unknown members of objects inside the input, at any depth, such as `fields[2].colum is not known here
 * and was ignored.`
 */
export async function ignoredMembers(
  { input }: Pick<Endpoint, "input">,
  { query, body, bodyIsJson }: Omit<Sources, "path">,
  { texts, work }: InputWork,
): Promise<readonly string[]> {
  const told: string[] = [];
  for (const [name, schema] of innerMembersOf(input)) {
    const [values, exact] = body.has(name) ? [body.get(name), bodyIsJson] : [query.get(name), false];
    if (values === undefined) continue;
    const steps = collectIgnored(schema, gather(schema, values, exact), { path: name, told, texts });
    while (!steps.next().done) if (work.slices.isOverNow()) await work.slices.pause();
  }
  return told;
}

/** True if a member was sent whose value may have members. */
function sendsMembers(input: TSchema, { query, body }: Pick<Sources, "query" | "body">): boolean {
  return innerMembersOf(input).some(([name]) => body.has(name) || query.has(name));
}

const innerMembers = new WeakMap<TSchema, readonly (readonly [name: string, schema: TSchema])[]>();

/** The members of an input whose values can have members. */
function innerMembersOf(input: TSchema): readonly (readonly [name: string, schema: TSchema])[] {
  let members = innerMembers.get(input);
  if (members === undefined) {
    members = Object.entries(membersOf(input)).filter(([, schema]) => holdsMembers(schema));
    innerMembers.set(input, members);
  }
  return members;
}

interface Collecting {
  readonly path: string;
  readonly told: string[];
  readonly texts: JsonTexts;
}

interface Shape {
  readonly type?: string;
  readonly items?: TSchema;
  readonly anyOf?: readonly TSchema[];
}

/** Ends when there are enough warnings. Other work can run between its steps. */
function* collectIgnored(schema: TSchema, given: unknown, collecting: Collecting): Generator<undefined> {
  const { path, told, texts } = collecting;
  const value = texts.valueOf(given);
  if (typeof value !== "object" || value === null || told.length > HTTP_WARNINGS_MAX) return;
  const { items, members } = innerOf(schema);
  if (Array.isArray(value)) {
    if (items === undefined) return;
    for (const [at, element] of value.entries()) {
      yield* collectIgnored(items, element, { ...collecting, path: `${path}[${String(at)}]` });
      if (at % ITEMS_PER_STEP === 0) yield;
    }
    return;
  }
  if (members === undefined) return;
  for (const name of Object.keys(value)) {
    if (told.length > HTTP_WARNINGS_MAX) return;
    const member = members.get(name);
    if (member && holdsMembers(member)) {
      const inner = (value as Readonly<Record<string, unknown>>)[name];
      yield* collectIgnored(member, inner, { ...collecting, path: `${path}.${name}` });
    }
    if (!member) told.push(ignoredName(name, new Set(members.keys()), `${path}.`));
  }
}

/** Schemas inside a schema whose values can have members. */
interface Inner {
  /** Schema of list items that may have members; undefined for any other schema. */
  readonly items: TSchema | undefined;
  /** Schemas by member name, for an object that names its members; undefined for an object with any members. */
  readonly members: ReadonlyMap<string, TSchema> | undefined;
}

const inners = new WeakMap<TSchema, Inner>();

function innerOf(schema: TSchema): Inner {
  let inner = inners.get(schema);
  if (inner !== undefined) return inner;
  const shapes: readonly (TSchema & Shape)[] = (schema as Shape).anyOf ?? [schema];
  const items = shapes.find((shape) => shape.items !== undefined)?.items;
  const objects = shapes.filter(({ type }) => type === "object");
  const takesAny = objects.length === 0 || objects.some((shape) => knownNames(shape) === undefined);
  inner = {
    items: items !== undefined && holdsMembers(items) ? items : undefined,
    members: takesAny ? undefined : new Map(objects.flatMap((shape) => Object.entries(membersOf(shape)))),
  };
  inners.set(schema, inner);
  return inner;
}

/** True if the schema, or the schema of its items or variants, allows an object. */
function holdsMembers(schema: TSchema): boolean {
  const { type, items, anyOf } = schema as Shape;
  return type === "object" || (items !== undefined && holdsMembers(items)) || (anyOf?.some(holdsMembers) ?? false);
}

/** The answer with `before` in front of its own warnings. Their number and lengths are bounded. */
export function withWarnings(answer: Answer<unknown>, before: readonly string[]): Answer<unknown> {
  if (before.length === 0 && answer.warnings === undefined) return answer;
  const { warnings = [], ...rest } = answer;
  const all = [...before, ...warnings];
  return all.length === 0 ? rest : { ...rest, warnings: boundedWarnings(all) };
}

const namesBySchema = new WeakMap<TSchema, { readonly names: ReadonlySet<string> | undefined }>();

/** Names that an input knows; `undefined` if it takes any name. */
function knownNames(schema: TSchema): ReadonlySet<string> | undefined {
  let found = namesBySchema.get(schema);
  if (found === undefined) namesBySchema.set(schema, (found = { names: namesIn(schema) }));
  return found.names;
}

function namesIn(schema: TSchema): ReadonlySet<string> | undefined {
  const { additionalProperties, patternProperties } = schema as {
    readonly additionalProperties?: unknown;
    readonly patternProperties?: unknown;
  };
  if ((additionalProperties ?? false) !== false || patternProperties !== undefined) return undefined;
  return new Set(Object.keys(membersOf(schema)));
}

/** Header with the warnings of an answer without an envelope: a JSON list of texts. */
export const WARNINGS_HEADER = "x-odp-warnings";

const MORE = "There are more warnings, which are not told.";

/**
 * At most `HTTP_WARNINGS_MAX` warnings, none longer than `HTTP_WARNING_MAX_CHARACTERS`. One more says if there are
 * others.
 */
export function boundedWarnings(warnings: readonly string[]): readonly string[] {
  const texts = warnings.slice(0, HTTP_WARNINGS_MAX).map((text) => beginningOf(text, HTTP_WARNING_MAX_CHARACTERS));
  return warnings.length <= HTTP_WARNINGS_MAX ? texts : [...texts, MORE];
}

/** The value of `X-Odp-Warnings`: a JSON list in ASCII, of at most `HTTP_WARNINGS_HEADER_MAX_CHARACTERS`. */
export function warningsHeader(warnings: readonly string[]): string {
  const whole = ascii(warnings);
  if (whole.length <= HTTP_WARNINGS_HEADER_MAX_CHARACTERS) return whole;
  const isBounded = (count: number): boolean =>
    ascii([...warnings.slice(0, count), MORE]).length <= HTTP_WARNINGS_HEADER_MAX_CHARACTERS;
  let count = warnings.length;
  while (count > 0 && !isBounded(count)) count--;
  return ascii([...warnings.slice(0, count), MORE]);
}

/** The JSON text of a list in ASCII: a header cannot have other characters. */
function ascii(texts: readonly string[]): string {
  return JSON.stringify(texts).replace(
    /[^\x20-\x7e]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
