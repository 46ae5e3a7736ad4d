import type { TSchema } from "typebox";
import {
  HTTP_WARNING_MAX_CHARACTERS,
  HTTP_WARNING_NAME_MAX_CHARACTERS,
  HTTP_WARNINGS_MAX,
} from "../../common/limits.ts";
import { nearestName } from "../../common/text/nearest.ts";
import { SESSION_FIELD } from "./body.ts";
import { gather, JsonTexts } from "./coerce.ts";
import type { Answer, Endpoint } from "./endpoint.ts";
import { membersOf, type Sources } from "./input.ts";

/**
 * What clients send to every address: the session, jQuery's mark against caches, tokens of pages, the choice between
 * user and system.
 */
const SENT_EVERYWHERE = new Set([SESSION_FIELD, "_", "_csrf", "csrf", "issys", "$issys", "callback"]);

/**
 * One text for each name of query and body that the endpoint does not know: it was ignored, which is told instead of
 * refused.
 */
export function ignoredNames(
  endpoint: Pick<Endpoint, "input">,
  { query, body }: Pick<Sources, "query" | "body">,
): readonly string[] {
  const known = knownNames(endpoint.input);
  if (known === undefined) return [];
  const ignored = new Set<string>();
  for (const fields of [query, body]) {
    for (const name of fields.keys()) {
      // One more than is told, so that the rest can be told as such.
      if (ignored.size > HTTP_WARNINGS_MAX) break;
      if (!known.has(name) && !SENT_EVERYWHERE.has(name)) ignored.add(name);
    }
  }
  return Array.from(ignored, (name) => ignoredName(name, known));
}

/**
 * The same for members of objects inside what was sent, in whatever depth: `fields[2].colum is not known here and was
 * ignored.`
 */
export function ignoredMembers(
  { input }: Pick<Endpoint, "input">,
  { query, body, bodyIsJson }: Omit<Sources, "path">,
  texts: JsonTexts = new JsonTexts(),
): readonly string[] {
  const told: string[] = [];
  for (const [name, schema] of Object.entries(membersOf(input))) {
    const [values, exact] = body.has(name) ? [body.get(name), bodyIsJson] : [query.get(name), false];
    if (values !== undefined && holdsMembers(schema))
      collectIgnored(schema, gather(schema, values, exact), { path: name, told, texts });
  }
  return told;
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

function collectIgnored(schema: TSchema, given: unknown, { path, told, texts }: Collecting): void {
  const value = texts.valueOf(given);
  if (typeof value !== "object" || value === null || told.length > HTTP_WARNINGS_MAX) return;
  const shapes: readonly (TSchema & Shape)[] = (schema as Shape).anyOf ?? [schema];
  if (Array.isArray(value)) {
    const items = shapes.find((shape) => shape.items !== undefined)?.items;
    if (items && holdsMembers(items))
      value.forEach((element, at) => collectIgnored(items, element, { path: `${path}[${String(at)}]`, told, texts }));
    return;
  }
  const objects = shapes.filter(({ type }) => type === "object");
  if (objects.length === 0 || objects.some((shape) => knownNames(shape) === undefined)) return;
  const members = new Map(objects.flatMap((shape) => Object.entries(membersOf(shape))));
  for (const [name, inner] of Object.entries(value)) {
    const member = members.get(name);
    if (member) collectIgnored(member, inner, { path: `${path}.${name}`, told, texts });
    else if (told.length <= HTTP_WARNINGS_MAX) told.push(ignoredName(name, new Set(members.keys()), `${path}.`));
  }
}

/** Whether objects with names of their own can be in it. */
function holdsMembers(schema: TSchema): boolean {
  const { type, items, anyOf } = schema as Shape;
  return type === "object" || (items !== undefined && holdsMembers(items)) || (anyOf?.some(holdsMembers) ?? false);
}

/** The answer with what is told beside its message; one without envelope stays as it is. */
export function withWarnings(answer: Answer<unknown>, before: readonly string[]): Answer<unknown> {
  if (!("message" in answer) && !("rows" in answer)) return answer;
  const { warnings = [], ...rest } = answer;
  const all = [...before, ...warnings];
  return all.length === 0 ? rest : { ...rest, warnings: bounded(all) };
}

/** Undefined for an endpoint that takes any name. */
function knownNames(schema: TSchema): ReadonlySet<string> | undefined {
  const { additionalProperties, patternProperties } = schema as {
    readonly additionalProperties?: unknown;
    readonly patternProperties?: unknown;
  };
  if ((additionalProperties ?? false) !== false || patternProperties !== undefined) return undefined;
  return new Set(Object.keys(membersOf(schema)));
}

function ignoredName(name: string, known: ReadonlySet<string>, within = ""): string {
  const shown =
    name.length <= HTTP_WARNING_NAME_MAX_CHARACTERS ? name : `${name.slice(0, HTTP_WARNING_NAME_MAX_CHARACTERS)}…`;
  // A long name is no slip of the pen, and comparing it takes long.
  const meant = name.length <= HTTP_WARNING_NAME_MAX_CHARACTERS ? nearestName(name, known) : undefined;
  return `${within}${shown} is not known here and was ignored${meant === undefined ? "." : `; did you mean ${meant}?`}`;
}

function bounded(warnings: readonly string[]): readonly string[] {
  const texts = warnings.slice(0, HTTP_WARNINGS_MAX).map((text) => text.slice(0, HTTP_WARNING_MAX_CHARACTERS));
  return warnings.length <= HTTP_WARNINGS_MAX ? texts : [...texts, "There are more warnings, which are not told."];
}
