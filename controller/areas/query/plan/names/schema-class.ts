import type { ClassCatalog, ClassView, Column, ColumnType, ObjectRow } from "../../../objects/index.ts";
import { classAccess, type HiddenColumns, type Principal } from "../../../permissions/index.ts";

/**
 * The table of classes, which clients read by MQL. It is outside every tenant's name space, and shows only what its
 * reader may see.
 */
export const SCHEMA_CLASS_PATH = "/system/class";

const COLUMN_TYPES: readonly (readonly [name: string, type: ColumnType])[] = [
  ["name", "varchar"],
  ["cid", "bigint"],
  ["pid", "bigint"],
  ["alias", "varchar"],
  ["nickname", "varchar"],
  ["remedy", "varchar"],
  ["kind", "varchar"],
  ["fields", "list"],
  ["keys", "list"],
  ["ttl", "bigint"],
];

const COLUMNS: readonly Column[] = COLUMN_TYPES.map(([name, type], index) => ({
  name,
  type,
  ...(type === "list" ? { elements: ["varchar" as const] } : {}),
  number: -1 - index,
  definedBy: SCHEMA_CLASS_PATH,
  indexed: false,
  key: name === "name",
}));

const BY_NAME = new Map(COLUMNS.map((column) => [column.name, column]));

const SCHEMA_CLASS: ClassView = {
  cid: -1,
  path: SCHEMA_CLASS_PATH,
  label: "class",
  parent: undefined,
  kind: "entity",
  columns: COLUMNS,
  keys: ["name"],
  options: {
    keyMode: "manu",
    ttlSeconds: undefined,
    version: false,
    versionTtlSeconds: undefined,
    timeZone: undefined,
    autosearch: false,
    alias: undefined,
    nickname: undefined,
    remedy: undefined,
    hints: {},
  },
  modifiedAtMs: 0,
  system: true,
  guard: undefined,
  column: (name) => BY_NAME.get(name),
};

/** The catalog with the schema class, unless the tenant has its own class of that path. */
export function withSchemaClass(catalog: ClassCatalog): ClassCatalog {
  let whole = wholeCatalogs.get(catalog);
  if (!whole) wholeCatalogs.set(catalog, (whole = joinedWithSchemaClass(catalog)));
  return whole;
}

const wholeCatalogs = new WeakMap<ClassCatalog, ClassCatalog>();

function joinedWithSchemaClass(catalog: ClassCatalog): ClassCatalog {
  const isIt = (path: string): boolean => path === SCHEMA_CLASS_PATH && catalog.get(path) === undefined;
  return {
    revision: catalog.revision,
    get: (path) => (isIt(path) ? SCHEMA_CLASS : catalog.get(path)),
    basis: (path) => catalog.basis(path),
    byCid: (cid) => (cid === SCHEMA_CLASS.cid ? SCHEMA_CLASS : catalog.byCid(cid)),
    byLabel: (label) => catalog.byLabel(label),
    tree: (path) => (isIt(path) ? [SCHEMA_CLASS] : catalog.tree(path)),
    children: (path) => catalog.children(path),
    edgeTypes: () => catalog.edgeTypes(),
  };
}

export function isSchemaClass(view: ClassView): boolean {
  return view === SCHEMA_CLASS;
}

/** One row for each class that the principal may read, without columns that it may not see. */
export function schemaRows(principal: Principal, catalog: ClassCatalog): readonly ObjectRow[] {
  return catalog.tree("/").flatMap((view) => {
    const { readable, hidden } = classAccess(principal, view);
    return readable && !isSchemaClass(view) ? [schemaRow(view, hidden, catalog)] : [];
  });
}

function schemaRow(view: ClassView, hidden: HiddenColumns, catalog: ClassCatalog): ObjectRow {
  const seen = (name: string): boolean => !hidden.has(name) && !view.column(name)?.sealed;
  const { alias = "", nickname = "", remedy = "", ttlSeconds = -1 } = view.options;
  const parent = view.parent === undefined ? undefined : catalog.get(view.parent);
  const fields = ["id", "class", ...view.columns.map((column) => column.name).filter(seen)];
  const values = {
    name: view.path,
    cid: view.cid,
    pid: parent?.cid ?? -1,
    alias,
    nickname,
    remedy,
    kind: view.kind,
    fields,
    keys: view.keys.filter(seen),
    ttl: ttlSeconds,
  };
  return {
    id: `class:${view.path}`,
    class: SCHEMA_CLASS,
    values,
    vtimeMs: view.modifiedAtMs,
    ctimeMs: view.modifiedAtMs,
  };
}
