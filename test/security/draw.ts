import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { FILES, NAMES, OBJECTS, TEXTS, type Draw } from "./fuzz/names.ts";
import { searchText, statement } from "./fuzz/statements.ts";

export type { Draw };

/** A call of an endpoint, before it becomes a request. */
export interface DrawnCall {
  readonly endpoint: Endpoint;
  /** Values for the path parameters, by name. */
  readonly path: Readonly<Record<string, string>>;
  readonly input: Readonly<Record<string, unknown>>;
  /** A body that has no members, such as a script. */
  readonly text?: string;
  /** Parts of a multipart body in addition to the members. */
  readonly files?: readonly DrawnFile[];
}

export interface DrawnFile {
  readonly field: string;
  readonly filename: string;
  readonly content: string;
}

const FILE_NAMES = ["file", "depot", "image"];
const CONTENTS: readonly ((draw: Draw) => string)[] = [
  (draw) => `${statement(draw)};\n${statement(draw)};\n`,
  (draw) => `insert into /matrix/vault code='${draw(["closed", "open", "new"])}', note='x';`,
  () => '[{"key":"a","note":"x"}]',
  () => "code,note\nclosed,x\n",
];

const PASSWORD_MEMBER = /passw/;
/** Members without which an endpoint only answers that they are missing. */
const TEXT_MEMBER = /^(mql|cond)$/;

/** True if a call of the endpoint may compute the hash of a password, which costs as much as hundreds of other calls. */
export function isDear({ input }: Endpoint): boolean {
  return Object.keys((input as Schema).properties ?? {}).some((name) => PASSWORD_MEMBER.test(name));
}

/** Names and paths of data that may exist. */
export interface Words {
  /** For parameters in the path of an endpoint. */
  readonly names: readonly string[];
  /** The same, for names that most objects have. */
  readonly objects: readonly string[];
  /** For paths below `/fs/`. */
  readonly files: readonly string[];
  /** For other members. */
  readonly texts: readonly string[];
}

export const WORDS: Words = { names: NAMES, objects: OBJECTS, files: FILES, texts: TEXTS };

export function callOf(endpoint: Endpoint, draw: Draw, words = WORDS): DrawnCall {
  const names = [...endpoint.path.matchAll(/:(\w+)|(\*)/g)].map(([, name = "*"]) => name);
  const likely = /^\/(fs|static)\//.test(endpoint.path) ? words.files : draw([words.names, words.objects]);
  const path = Object.fromEntries(names.map((name) => [name, draw(likely)]));
  const files = endpoint.body === "multipart" && draw([true, false]) ? [fileOf(draw)] : [];
  return { endpoint, path, input: inputOf(endpoint, draw, words), ...(files.length > 0 && { files }) };
}

function fileOf(draw: Draw): DrawnFile {
  const filename = draw(["objects.mql", "plan.txt", "table.csv", "entries.json", "../plan.txt"]);
  return { field: draw(FILE_NAMES), filename, content: draw(CONTENTS)(draw) };
}

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
}

/** Members of an input, except for parameters of the path. Often only the required ones: others select too little. */
export function inputOf(
  { input, path }: Pick<Endpoint, "input" | "path">,
  draw: Draw,
  words = WORDS,
): Readonly<Record<string, unknown>> {
  const { properties = {}, required = [] } = input as Schema;
  const isPlain = draw([true, false]);
  const wanted = Object.entries(properties).filter(
    ([name]) =>
      name !== "*" &&
      !path.includes(`:${name}`) &&
      (required.includes(name) || TEXT_MEMBER.test(name) || (!isPlain && draw([true, false]))),
  );
  return Object.fromEntries(wanted.map(([name, schema]) => [name, valueOf(name, schema, draw, words)]));
}

function valueOf(name: string, schema: Schema, draw: Draw, words: Words): unknown {
  if (name === "mql") return statement(draw);
  if (name === "cond") return searchText(draw);
  if (PASSWORD_MEMBER.test(name)) return draw([PASSWORD, "another long password"]);
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf?.length) return valueOf(name, draw(schema.anyOf), draw, words);
  switch (schema.type) {
    case "integer":
    case "number":
      return draw([0, 1, 2, -1]);
    case "boolean":
      return draw([true, false]);
    case "array":
      return [valueOf(name, schema.items ?? {}, draw, words)];
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([member, of]) => [member, valueOf(member, of, draw, words)]),
      );
    default:
      return draw(words.texts);
  }
}
