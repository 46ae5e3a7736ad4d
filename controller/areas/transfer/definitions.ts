import {
  type ClassOption,
  type ColumnDefinition,
  type CreateClass,
  type CreateEdgeType,
  type MapNode,
  NOWHERE,
  textNode,
  type ValueNode,
  valueNode,
} from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import type { ClassOptions, ClassView, Column, EdgeType, KeyMode } from "../objects/index.ts";
import type { ExportedClass } from "./types.ts";

/** The statement that creates the class. It requires that the superclasses exist. */
export function createClassNode(exported: ExportedClass, parent: ClassView | undefined): CreateClass {
  return {
    kind: "createClass",
    ifNotExists: true,
    class: { kind: "class", path: exported.view.path, subtree: false, alias: undefined, span: NOWHERE },
    columns: exported.ownColumns.map(columnDefinition),
    keys: exported.ownKeys,
    indexes: exported.ownIndexes,
    options: optionNodes(exported, parent),
    span: NOWHERE,
  };
}

export function createEdgeTypeNode({ name, remedy }: EdgeType): CreateEdgeType {
  return { kind: "createEdgeType", ifNotExists: true, name, remedy: remedy === "" ? undefined : remedy, span: NOWHERE };
}

function columnDefinition({ name, type, elements = [], labels, options, title }: Column): ColumnDefinition {
  const details = labels ?? options;
  return {
    kind: "column",
    name,
    type,
    elements,
    details: details && (valueNode(details as Value) as MapNode),
    title,
    span: NOWHERE,
  };
}

/** The options that differ from those that the class would have without own options. */
function optionNodes(exported: ExportedClass, parent: ClassView | undefined): readonly ClassOption[] {
  const { view } = exported;
  const inherited = parent?.options;
  const { keyMode, ttlSeconds, version, versionTtlSeconds, autosearch, timeZone } = view.options;
  const { alias, nickname, remedy, hints } = view.options;
  const texts = { alias, nickname, remedy };
  return [
    ...(view.kind === "record" ? [option("kind", textNode("record"))] : []),
    ...(keyMode === defaultKeyMode(exported, parent) ? [] : [option("key", textNode(keyMode))]),
    ...(ttlSeconds === inherited?.ttlSeconds ? [] : [option("ttl", valueNode(ttlSeconds ?? -1))]),
    ...(version === (inherited?.version ?? false) ? [] : [option("version", valueNode(version))]),
    ...(versionTtlSeconds === inherited?.versionTtlSeconds
      ? []
      : [option("versionttl", valueNode(versionTtlSeconds ?? -1))]),
    ...(autosearch === (inherited?.autosearch ?? false) ? [] : [option("autosearch", valueNode(autosearch))]),
    ...(timeZone === inherited?.timeZone ? [] : [option("time_zone", textNode(timeZone ?? ""))]),
    ...Object.entries(texts).flatMap(([name, text]) => (text === undefined ? [] : [option(name, textNode(text))])),
    ...hintNodes(hints),
  ];
}

function hintNodes(hints: ClassOptions["hints"]): readonly ClassOption[] {
  return Object.keys(hints)
    .sort()
    .map((name) => option(name, valueNode(hints[name] ?? null)));
}

/** The key mode that a class has if its definition does not name one. */
function defaultKeyMode({ view, ownKeys }: ExportedClass, parent: ClassView | undefined): KeyMode {
  if (view.keys.length === 0) return "uuid";
  return ownKeys.length === 0 && parent ? parent.options.keyMode : "manu";
}

function option(name: string, value: ValueNode): ClassOption {
  return { kind: "option", name, value, unit: undefined, span: NOWHERE };
}
