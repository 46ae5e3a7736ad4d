import { MqlInput, MqlRows, SearchInput } from "../../../common/api/query.ts";
import { AppError } from "../../../common/errors.ts";
import type { Value } from "../../../common/value.ts";
import { type Call, endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { Principal } from "../permissions/index.ts";
import { requireZone } from "./expressions/functions/calendar-steps.ts";
import type { Searches } from "./search/index.ts";
import type { Query } from "./types.ts";

export function queryRoutes({ query }: { readonly query: Query }): readonly Endpoint[] {
  const common = { path: "/mxobject/mql", permission: "objects:read", input: MqlInput, output: MqlRows } as const;
  const handler = (call: Call<MqlInput>) => answer(query, call);
  return [
    endpoint({ ...common, method: "GET", summary: "Run MQL; the answer is that of the last statement.", handler }),
    endpoint({
      ...common,
      method: "POST",
      summary: "Run MQL given as form, as JSON with values, or as the plain body.",
      body: "text",
      text: { summary: "The statements", example: "select * from /matrix/visit limit 10" },
      content: () => ["mql"],
      handler,
    }),
  ];
}

async function answer(query: Query, call: Call<MqlInput>) {
  const text = call.input.mql ?? call.text ?? "";
  if (text.trim() === "") throw new AppError("invalid", "[Valid] There is no MQL: give it as mql or as the body.");
  const values = valueRows(call.input.values as readonly Value[] | undefined);
  const { cursor, meta } = call.input;
  const result = await query.run(zoned(call), text, { signal: call.signal, values, cursor });
  const { rows, warnings } = result;
  const more = (): boolean => result.meta.more === true;
  return { rows, more, meta: meta || cursor !== undefined ? result.meta : undefined, warnings };
}

export function searchRoutes({ search }: { readonly search: Searches }): readonly Endpoint[] {
  const common = { path: "/mxobject/search", permission: "objects:read", input: SearchInput, output: MqlRows } as const;
  const handler = async (call: Call<SearchInput>) => {
    const { input, text, signal } = call;
    const condition = input.cond ?? text ?? "";
    if (condition.trim() === "")
      throw new AppError("invalid", "[Valid] There is no condition: give it as cond or as the body.");
    const { rows, meta } = await search.search(zoned(call), condition, { signal });
    return { rows, more: () => meta.more === true, ...(input.meta || meta.plan ? { meta } : {}) };
  };
  return [
    endpoint({ ...common, method: "GET", summary: "Search objects by words, fields and times.", handler }),
    endpoint({
      ...common,
      method: "POST",
      summary: "Search by a condition given as form, as JSON or as the plain body.",
      body: "text",
      text: { summary: "The condition", example: "#/matrix/visit: start" },
      content: () => ["cond"],
      handler,
    }),
  ];
}

/** The lists of values, one for each execution. A plain list means one execution. */
function valueRows(values: readonly Value[] | undefined): readonly (readonly Value[])[] | undefined {
  if (!values || values.length === 0) return undefined;
  return values.every((row): row is readonly Value[] => Array.isArray(row)) ? values : [values];
}

/** The caller with the time zone of the call. */
function zoned({ principal, input }: Call<{ readonly time_zone?: string }>): Principal {
  const { time_zone: timeZone } = input;
  if (timeZone === undefined || timeZone.trim() === "") return principal;
  requireZone(timeZone);
  return { ...principal, timeZone };
}
