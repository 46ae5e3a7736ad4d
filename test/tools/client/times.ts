import { answersOf, operationsIn, type Document } from "./document.ts";
import type { Schema } from "./schemas.ts";

const IS_TIME = /\bmilliseconds since 1970\b/i;

/** The file that tells which members of messages are times, by the descriptions of the interface. */
export function timesFile(document: Document): string {
  const lines = operationsIn(document).flatMap(({ described }) => {
    const { message } = answersOf(described);
    const times = message === undefined ? [] : [...new Set(timesIn(message))].sort();
    return times.length === 0
      ? []
      : [`  ${described.operationId}: [${times.map((name) => JSON.stringify(name)).join(", ")}],`];
  });
  return [
    "// Generated from deploy/docs/openapi.json by `npm run gen`. Do not edit.\n",
    'import type { Operations } from "../../../common/client/gen/operations.ts";\n',
    "/** Members of the message of an operation, or of the things in it, that are milliseconds since 1970. */",
    `export const TIMES: Readonly<Partial<Record<keyof Operations, readonly string[]>>> = {\n${lines.join("\n")}\n};\n`,
  ].join("\n");
}

/** Names of the times of one thing, or of each thing of a list. */
function timesIn(schema: Schema): readonly string[] {
  if (schema.items !== undefined) return timesIn(schema.items);
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) => (isTime(member) ? [name] : [])),
    ...(schema.anyOf ?? []).flatMap(timesIn),
  ];
}

function isTime({ description = "", items }: Schema): boolean {
  return IS_TIME.test(description) || (items !== undefined && isTime(items));
}
