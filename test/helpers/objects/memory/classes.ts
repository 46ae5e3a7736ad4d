import { AppError } from "../../../../common/errors.ts";
import type {
  ClassCatalog,
  ClassChange,
  ClassGuard,
  ClassOptions,
  ClassSpec,
  ClassView,
  Column,
  EdgeType,
} from "../../../../controller/areas/objects/index.ts";

interface Spec extends ClassSpec {
  readonly cid: number;
  readonly guard?: ClassGuard;
  readonly modifiedAtMs: number;
}

/** Classes and types of edges of one tenant. */
export class MemoryClasses {
  readonly edgeTypes = new Map<string, EdgeType>();
  readonly #specs = new Map<string, Spec>();
  readonly #numbers = new Map<string, number>();
  #views = new Map<string, ClassView>();

  /** By path. */
  get views(): ReadonlyMap<string, ClassView> {
    return this.#views;
  }

  catalog(): ClassCatalog {
    const views = [...this.#views.values()];
    const below = (path: string) =>
      views.filter((view) => path === "/" || view.path === path || view.path.startsWith(`${path}/`));
    return {
      revision: views.length,
      get: (path) => this.#views.get(path),
      basis: () => undefined,
      byCid: (cid) => views.find((view) => view.cid === cid),
      byLabel: (label) => views.filter((view) => view.label === label),
      tree: below,
      children: (path) => views.filter((view) => view.parent === path),
      edgeTypes: () => [...this.edgeTypes.values()],
    };
  }

  /** The view of the class; throws if there is none. */
  view(path: string): ClassView {
    const view = this.#views.get(path);
    if (!view) throw notFound(path);
    return view;
  }

  add(spec: Omit<Spec, "cid">): void {
    this.#specs.set(spec.path, { ...spec, cid: this.#specs.size + 1 });
    this.#rebuild();
  }

  alter(path: string, change: ClassChange): void {
    const spec = this.#specs.get(path);
    if (!spec) throw notFound(path);
    this.#specs.set(path, { ...spec, ...changed(spec, change) });
    this.#rebuild();
  }

  drop(path: string): void {
    this.#specs.delete(path);
    this.#views.delete(path);
  }

  addEdgeType(type: EdgeType, options: { readonly ifNotExists?: boolean }): void {
    if (this.edgeTypes.has(type.name) && !options.ifNotExists)
      throw new AppError("conflict", `[Valid] edge type ${type.name} exists.`);
    if (!this.edgeTypes.has(type.name)) this.edgeTypes.set(type.name, type);
  }

  dropEdgeType(name: string, options: { readonly ifExists?: boolean }): void {
    const gone = this.edgeTypes.delete(name);
    if (!gone && !options.ifExists) throw new AppError("not_found", `[NotExist] edge type ${name} does not exist.`);
  }

  #rebuild(): void {
    const known = { specs: this.#specs, numbers: this.#numbers };
    this.#views = new Map([...this.#specs.keys()].sort().map((path) => [path, viewOf(path, known)]));
  }
}

const DEFAULT_OPTIONS: ClassOptions = {
  keyMode: "uuid",
  ttlSeconds: undefined,
  version: false,
  versionTtlSeconds: undefined,
  timeZone: undefined,
  autosearch: false,
  alias: undefined,
  nickname: undefined,
  remedy: undefined,
  hints: {},
};

/** `lineage`: from the topmost class down. */
function inheritedOptions(lineage: readonly Pick<ClassSpec, "options">[]): Partial<ClassOptions> {
  const inherited: { -readonly [K in keyof ClassOptions]?: ClassOptions[K] } = {};
  for (const { options = {} } of lineage) {
    if (options.version !== undefined) inherited.version = options.version;
    if (options.autosearch !== undefined) inherited.autosearch = options.autosearch;
    if (options.timeZone !== undefined) inherited.timeZone = options.timeZone;
    if ("ttlSeconds" in options) inherited.ttlSeconds = options.ttlSeconds;
  }
  return inherited;
}

function viewOf(
  path: string,
  known: { readonly specs: ReadonlyMap<string, Spec>; readonly numbers: Map<string, number> },
): ClassView {
  const spec = known.specs.get(path);
  if (!spec) throw notFound(path);
  const lineage = [...known.specs.values()]
    .filter((one) => isBelow(path, one.path))
    .sort((a, b) => a.path.length - b.path.length);
  const keys = [...new Set(lineage.flatMap((one) => one.keys ?? []))];
  const indexes = new Set(lineage.flatMap((one) => one.indexes ?? []));
  const columns = new Map<string, Column>();
  for (const one of lineage) {
    for (const column of one.columns) {
      if (columns.has(column.name)) continue;
      const name = `${one.path} ${column.name}`;
      const number = known.numbers.get(name) ?? known.numbers.size + 1;
      known.numbers.set(name, number);
      columns.set(column.name, {
        ...column,
        number,
        definedBy: one.path,
        indexed: indexes.has(column.name),
        key: keys.includes(column.name),
      });
    }
  }
  return {
    cid: spec.cid,
    path,
    label: path.split("/").at(-1) ?? "",
    parent: lineage.at(-2)?.path,
    kind: spec.kind ?? "entity",
    columns: [...columns.values()],
    keys,
    options: {
      ...DEFAULT_OPTIONS,
      keyMode: keys.length > 0 ? "manu" : "uuid",
      ...inheritedOptions(lineage),
      ...spec.options,
    },
    modifiedAtMs: spec.modifiedAtMs,
    system: spec.guard !== undefined,
    guard: spec.guard,
    column: (name) => columns.get(name),
  };
}

function changed(spec: ClassSpec, change: ClassChange): Partial<ClassSpec> {
  switch (change.kind) {
    case "add column":
      return { columns: [...spec.columns, change.column] };
    case "drop column":
      return { columns: spec.columns.filter((column) => column.name !== change.name) };
    case "add index":
      return { indexes: [...(spec.indexes ?? []), change.name] };
    case "drop index":
      return { indexes: (spec.indexes ?? []).filter((name) => name !== change.name) };
    case "add key":
      return { keys: [...(spec.keys ?? []), change.name] };
    case "drop key":
      return { keys: (spec.keys ?? []).filter((name) => name !== change.name) };
    case "set options":
      return { options: { ...spec.options, ...change.options } };
  }
}

export function isBelow(path: string, root: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}

export function notFound(path: string): AppError {
  return new AppError("not_found", `[NotExist] class : ${path} not find !`);
}
