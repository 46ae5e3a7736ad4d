import { meaningsOf, type ClassView, type Column, type SystemClass } from "../../controller/areas/objects/index.ts";

interface Origin {
  readonly ospace: string;
  /** The classes as their owners state them. Rows that an owner provides are in no index. */
  readonly owned: readonly SystemClass[];
}

/** `deploy/docs/platform-columns.md`: the columns of the platform's classes, with the meanings that their owners state. */
export function platformColumns(views: readonly ClassView[], { ospace, owned }: Origin): string {
  const owners = new Map(owned.map((definition) => [ospace + definition.path, definition]));
  const sections = views
    .filter(({ system }) => system)
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .flatMap((view) => [
      `## \`${view.path.slice(ospace.length)}\``,
      "",
      "| Column | Type | Indexed | Meaning |",
      "| --- | --- | --- | --- |",
      ...rowsOf(view, owners.get(view.path)),
      "",
    ]);
  return [
    "# Columns of the platform's classes",
    "",
    "Hosts, runs, files, users and what else the platform keeps are objects of its own classes, which MQL reads like any other class:",
    "`select host, state, message from /matrix/system/deployment where state = 'failed'`. [Who may read which class](platform-classes.md) depends on rights.",
    "",
    "- Every object has `id`, `class`, `vtime` and `ctime` as well, as in any class ([classes and types](mql-classes.md)).",
    "- A timestamp is answered in milliseconds since 1970. An empty value is null, or a text without characters.",
    "- Conditions on an indexed column are found without reading the whole class.",
    "",
    "Generated from the classes by `npm run gen`. Paths are below the name space of the tenant.",
    "",
    ...sections,
  ].join("\n");
}

/** Inherited columns have their title as meaning. Rows that an owner provides are in no index. */
function rowsOf({ columns }: ClassView, owner: SystemClass | undefined): readonly string[] {
  const meanings = owner === undefined ? new Map<string, string>() : meaningsOf(owner);
  return columns
    .filter(({ sealed }) => !sealed)
    .map((column) => {
      const isIndexed = column.indexed && owner?.provide === undefined;
      const meaning = meanings.get(column.name) ?? column.title ?? "";
      return `| \`${column.name}\` | \`${typeOf(column)}\` | ${isIndexed ? "yes" : ""} | ${cell(meaning)} |`;
    });
}

function typeOf({ type, elements }: Column): string {
  return elements === undefined ? type : `${type}<${elements.join(",")}>`;
}

/** Escapes a text for a cell of a table. */
function cell(text: string): string {
  return text.replaceAll(/[|<*\\]/g, String.raw`\$&`);
}
