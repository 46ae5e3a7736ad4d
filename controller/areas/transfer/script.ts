import { NOWHERE, printStatement, textNode, valueNode } from "../../../common/mql/index.ts";
import type { ClassView, EdgeType } from "../objects/index.ts";
import { createClassNode, createEdgeTypeNode } from "./definitions.ts";
import type { ExportedObject } from "./rows.ts";
import type { ExportedClass } from "./types.ts";
import { columnNode } from "./values.ts";

/** One statement a line, as long as no text has lines of its own. */
const END = ";\n";

export function edgeTypeText(type: EdgeType): string {
  return printStatement(createEdgeTypeNode(type)) + END;
}

export function classText(exported: ExportedClass, parent: ClassView | undefined): string {
  return printStatement(createClassNode(exported, parent)) + END;
}

/** What is not set is left out. */
export function objectText(
  { view, columns }: ExportedClass,
  object: ExportedObject,
  relations: ReadonlySet<string>,
): string {
  const names = ["id"];
  const values = [textNode(object.id) as ReturnType<typeof valueNode>];
  for (const { name, type } of columns) {
    const value = object.values[name];
    if (value === undefined || value === null) continue;
    names.push(name);
    values.push(columnNode(type, value));
  }
  for (const [type, targets] of object.relations) {
    if (!relations.has(type)) continue;
    names.push(type);
    values.push(valueNode(targets));
  }
  const target = { kind: "class", path: view.path, subtree: false, alias: undefined, span: NOWHERE } as const;
  return (
    printStatement({
      kind: "insert",
      class: target,
      form: "set",
      columns: names,
      rows: [values],
      at: undefined,
      span: NOWHERE,
    }) + END
  );
}
