import type { Operation, Parameter } from "./document.ts";

const SERVER = "http://127.0.0.1:8080";

/** The call of the example with curl, as a line for a shell. */
export function curlOf({ method, path, described }: Operation): string {
  const { parameters = [], security } = described;
  const url = SERVER + pathWith(path, parameters) + queryOf(parameters);
  const headers = parameters.filter((one) => one.in === "header" && one.example !== undefined);
  const words = [
    "curl",
    ...(security?.length === 0 ? [] : ["-u", `"matrix.admin:$ODP_PASSWORD"`]),
    ...(method === "GET" ? [] : ["-X", method]),
    ...headers.map(({ name, example }) => `-H ${quoted(`${name}: ${textOf(example)}`)}`),
    ...bodyWords(described.requestBody?.content ?? {}),
    quoted(url),
  ];
  return words.join(" ");
}

function pathWith(path: string, parameters: readonly Parameter[]): string {
  return path.replace(/\{(\w+)\}/g, (hole, name: string) => {
    const found = parameters.find((one) => one.in === "path" && one.name === name);
    if (found?.example === undefined) return hole;
    const text = textOf(found.example);
    return name === "path" ? text.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(text);
  });
}

function queryOf(parameters: readonly Parameter[]): string {
  const pairs = parameters
    .filter((one) => one.in === "query")
    .flatMap(({ name, example, content }) => pairsOf(name, example ?? Object.values(content ?? {})[0]?.example))
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** A list is sent as several pairs, an object as JSON. */
function pairsOf(name: string, value: unknown): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.map((one) => [name, textOf(one)]);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function bodyWords(content: Readonly<Record<string, { readonly example?: unknown }>>): readonly string[] {
  const [first] = Object.entries(content);
  if (first === undefined || first[1].example === undefined) return [];
  const [type, { example }] = first;
  const members = typeof example === "object" && example !== null ? Object.entries(example) : [];
  const pairs = members.flatMap(([name, value]) => pairsOf(name, value));
  if (type === "application/x-www-form-urlencoded")
    return pairs.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`);
  if (type === "multipart/form-data") return pairs.map(([name, value]) => fieldOf(name, value));
  return [`-H ${quoted(`Content-Type: ${type}`)}`, `--data-binary ${quoted(textOf(example))}`];
}

function fieldOf(name: string, value: string): string {
  return name === "uploadfile" ? `-F uploadfile=@file` : `-F ${quoted(`${name}=${value}`)}`;
}

/** A word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
