import type { Call } from "../declared/call.ts";
import type { FlagDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, isRow, type Row, type View } from "../formats/columns.ts";
import { jsonIn } from "./raw.ts";

/** `-f` of commands that read a file. */
export const FILE: FlagDeclaration = {
  name: "file",
  short: "f",
  value: "path",
  summary: "file to read; - is the standard input",
  completes: "files",
};
/** `-f` of the commands that store definitions. */
export const DEFINITION_FILE: FlagDeclaration = { ...FILE, default: "-" };

/** The content of `-f` as text. */
export async function fileText(call: Call): Promise<string> {
  return (await call.shell.input(call.text("file"))).toString("utf8");
}

/**
 * The definitions of `-f`: JSON of one, or of a list. `UsageError` with the number of a definition that lacks one of the
 * members, which are texts.
 */
export async function definitionsIn(call: Call, members: readonly string[]): Promise<readonly Row[]> {
  const file = call.text("file");
  const given = jsonIn(await fileText(call), file === "-" ? "The standard input" : file);
  const definitions: readonly unknown[] = Array.isArray(given) ? given : [given];
  return definitions.map((one, at) => {
    const missing = members.find((name) => !isRow(one) || typeof one[name] !== "string");
    if (missing !== undefined || !isRow(one)) throw new UsageError(`Definition ${at + 1} needs the text ${missing}.`);
    return one;
  });
}

/**
 * Stores definitions one after another, and shows what became of each. The stored ones stay, also if a later one fails.
 */
export async function storeEach<T>(
  { shell }: Call,
  {
    definitions,
    view,
    store,
  }: { readonly definitions: readonly T[]; readonly view: View; readonly store: (one: T) => Promise<Row> },
): Promise<void> {
  const results: Row[] = [];
  try {
    for (const one of definitions) results.push(await store(one));
  } finally {
    if (results.length > 0) await shell.show(results, view);
  }
}

/** Condition of a write, and what it does, by the revision that was read; `undefined`: there is none yet. */
export function replacing(revision: string | undefined): {
  readonly condition: { readonly ifMatch: string } | { readonly ifNoneMatch: "*" };
  readonly result: "created" | "replaced";
} {
  return revision === undefined
    ? { condition: { ifNoneMatch: "*" }, result: "created" }
    : { condition: { ifMatch: revision }, result: "replaced" };
}

/** View of what became of definitions. */
export function resultsOf(...names: readonly [string, ...string[]]): View {
  return { name: names[0], columns: [...names, "result"].map((name) => column(name)) };
}
