import {
  mapNode,
  NOWHERE,
  type PastInsert,
  printStatement,
  textNode,
  type ValueNode,
  valueNode,
} from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ClassView, EdgeType, LostRelation, ObjectTimes, PastRelation, PastState } from "../objects/index.ts";
import { createClassNode, createEdgeTypeNode } from "./definitions.ts";
import { timeText } from "./past/times.ts";
import type { ExportedObject } from "./rows.ts";
import { groupsBy } from "./timed.ts";
import type { ExportedClass } from "./types.ts";
import { columnNode } from "./values.ts";

/** End of a statement. Each statement is one line, unless a text in it contains line breaks. */
const END = ";\n";

export function edgeTypeText(type: EdgeType): string {
  return printStatement(createEdgeTypeNode(type)) + END;
}

export function classText(exported: ExportedClass, parent: ClassView | undefined): string {
  return printStatement(createClassNode(exported, parent)) + END;
}

/** The statement that inserts an object. Columns without a value are omitted. */
export function objectText(
  exported: ExportedClass,
  object: ExportedObject,
  { relations, times }: { readonly relations: ReadonlySet<string>; readonly times?: ObjectTimes },
): string {
  const row = new WrittenRow(object.id);
  row.addColumns(exported, object.values);
  for (const [type, targets] of object.relations) if (relations.has(type)) row.add(type, valueNode(targets));
  if (times) row.addTimes(times.writeUs, times.createdMs);
  return insertText(exported, row);
}

/** The statement for a version of an object, or for the removal of an object. */
export function stateText(
  exported: ExportedClass,
  { id, timeUs, state }: PastState,
  relations: ReadonlySet<string>,
): string {
  const row = new WrittenRow(id);
  if (state === undefined) {
    row.addTimes(timeUs);
    return insertText(exported, row, { kind: "removal" });
  }
  row.addColumns(exported, state.values);
  row.addTimes(timeUs, state.createdMs);
  const { untilMs } = state;
  return insertText(exported, row, {
    kind: "version",
    until: untilMs === undefined ? undefined : textNode(timeText(untilMs * 1_000)),
    added: relationsNode(state.added, relations),
    dropped: relationsNode(state.dropped, relations),
    lost: lostNode(state.lost, relations),
  });
}

class WrittenRow {
  readonly names = ["id"];
  readonly values: ValueNode[];

  constructor(id: string) {
    this.values = [textNode(id)];
  }

  add(name: string, value: ValueNode): void {
    this.names.push(name);
    this.values.push(value);
  }

  addColumns({ columns, recordColumns }: ExportedClass, values: Row): void {
    for (const { name, type } of [...columns, ...recordColumns]) {
      const value = values[name];
      if (value !== undefined && value !== null) this.add(name, columnNode(type, value));
    }
  }

  addTimes(writeUs: number, createdMs?: number): void {
    if (createdMs !== undefined) this.add("ctime", textNode(timeText(createdMs * 1_000)));
    this.add("vtime", textNode(timeText(writeUs)));
  }
}

function relationsNode(of: readonly PastRelation[], relations: ReadonlySet<string>): ValueNode | undefined {
  return byType(of, relations, (ends) => ends.map(({ target }) => target).sort());
}

function lostNode(of: readonly LostRelation[], relations: ReadonlySet<string>): ValueNode | undefined {
  return byType(of, relations, (ends) => {
    const times = ends.map(({ target, timeUs }) => [target, timeText(timeUs)] as const);
    return Object.fromEntries(times.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function byType<R extends PastRelation>(
  of: readonly R[],
  relations: ReadonlySet<string>,
  valueOf: (ends: readonly R[]) => Value,
): ValueNode | undefined {
  const seen = of.filter(({ type }) => relations.has(type));
  const types = [...groupsBy(seen, ({ type }) => type)].sort(([a], [b]) => (a < b ? -1 : 1));
  return types.length === 0
    ? undefined
    : mapNode(Object.fromEntries(types.map(([type, ends]) => [type, valueOf(ends)])));
}

function insertText({ view }: ExportedClass, { names, values }: WrittenRow, past?: PastInsert): string {
  const target = { kind: "class", path: view.path, subtree: false, alias: undefined, span: NOWHERE } as const;
  return (
    printStatement({
      kind: "insert",
      class: target,
      form: "set",
      columns: names,
      rows: [values],
      at: undefined,
      ...(past && { past }),
      span: NOWHERE,
    }) + END
  );
}
