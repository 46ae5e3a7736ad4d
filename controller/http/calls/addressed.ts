import { parseUrlEncoded } from "../body/form-decoder.ts";
import type { Fields } from "../body/fields.ts";

const NO_FIELDS: Fields = new Map();

/** The path without the query, which may contain secrets. */
export function pathOf(url: string): string {
  const mark = url.indexOf("?");
  return mark < 0 ? url : url.slice(0, mark);
}

/** Query of a request target. */
export function queryOf(url: string): Fields {
  const mark = url.indexOf("?");
  return mark < 0 ? NO_FIELDS : parseUrlEncoded(url.slice(mark + 1));
}

/** Parameters of the path, as fields of the input. */
export function pathFields(params: Readonly<Record<string, string>>): Fields {
  const names = Object.keys(params);
  return names.length === 0 ? NO_FIELDS : new Map(names.map((name) => [name, [params[name]]]));
}
