import { Type } from "typebox";
import { AppError } from "../../../common/errors.ts";
import { QUERY_COLLECT_MAX_ROWS } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { Searches } from "./search/index.ts";
import type { Query, QueryResult } from "./types.ts";

/** `odb`: the object database. Services record what a statement changes. */
export function queryHostObject({ query, search }: { readonly query: Query; readonly search: Searches }): HostObject {
  return {
    name: "odb",
    summary: "Objects and their classes, with the rights of the script",
    functions: [
      hostFunction({
        name: "mql",
        summary: "Runs MQL; each ? takes the next value",
        parameters: [
          { name: "text", schema: Type.String({ description: "One statement or several; the last one answers" }) },
          { name: "values", schema: Type.Unknown({ description: "For the placeholders" }), rest: true },
        ],
        returns: "{data, meta}: the rows of the last statement, and what they are",
        example: 'OUTPUT = odb.mql("SELECT msg FROM /matrix/consolelog/serverjs LIMIT ?", 1).data',
        call: async ({ principal, signal }, text, values) => {
          const given = values.length > 0 ? { values: [values as readonly Value[]] } : {};
          return answerOf(await query.run(principal, text, { signal, ...given }));
        },
      }),
      hostFunction({
        name: "search",
        summary: "Searches objects by words, fields and times",
        parameters: [
          { name: "condition", schema: Type.String({ description: "In the language of /mxobject/search" }) },
        ],
        returns: "{data, meta}: the objects found, and what they are",
        example: 'OUTPUT = odb.search("/matrix/consolelog/serverjs/: | example").data',
        call: async ({ principal, signal }, condition) =>
          answerOf(await search.search(principal, condition, { signal })),
      }),
    ],
  };
}

async function answerOf(result: QueryResult): Promise<Value> {
  const data: Row[] = [];
  for await (const page of result.rows) {
    data.push(...page.map(withCapitals));
    if (data.length <= QUERY_COLLECT_MAX_ROWS) continue;
    const message = `The answer has more than ${QUERY_COLLECT_MAX_ROWS} rows: give a LIMIT.`;
    throw new AppError("too_large", message, { details: { limit: "QUERY_COLLECT_MAX_ROWS" } });
  }
  return { data, meta: result.meta as unknown as Value };
}

/** Adds capitalised names of a graph's members, which scripts may use, too. */
function withCapitals(row: Row): Row {
  const { graph } = row;
  if (typeof graph !== "object" || graph === null || Array.isArray(graph)) return row;
  const capitals = Object.entries(graph).map(([name, value]) => [name.charAt(0).toUpperCase() + name.slice(1), value]);
  return { ...row, graph: { ...graph, ...(Object.fromEntries(capitals) as Row) } };
}
