import type { SystemClass } from "./system-class.ts";
import type { ClassCatalog, EdgeType, TriggerDefinition, WriteBasis } from "../types.ts";
import { isBelow, parentPath, type ClassDefinition, type Definitions } from "./definition.ts";
import { triggersOf } from "./triggers.ts";
import { LoadedClass } from "./views.ts";

const NO_TRIGGERS: readonly TriggerDefinition[] = [];

/** Inputs of a snapshot: the previous snapshot, most of which it shares, and the owners of system classes. */
export interface SnapshotOrigin {
  readonly before?: Snapshot;
  readonly owners: ReadonlyMap<string, SystemClass>;
}

/** All classes of a tenant at one moment. Classes that did not change keep their views from the previous snapshot. */
export class Snapshot implements ClassCatalog {
  readonly revision: number;
  readonly definitions: Definitions;
  readonly #owners: ReadonlyMap<string, SystemClass>;
  readonly #classes: Map<string, LoadedClass>;
  readonly #byCid: Map<number, LoadedClass>;
  readonly #byLabel: Map<string, readonly LoadedClass[]>;
  readonly #children: Map<string, readonly LoadedClass[]>;
  readonly #triggers = new Map<LoadedClass, readonly TriggerDefinition[]>();
  #all: readonly LoadedClass[] | undefined;

  constructor(definitions: Definitions, revision: number, { before, owners }: SnapshotOrigin) {
    this.revision = revision;
    this.definitions = definitions;
    this.#owners = owners;
    this.#classes = new Map(before === undefined ? [] : before.#classes);
    this.#byCid = new Map(before === undefined ? [] : before.#byCid);
    this.#byLabel = new Map(before === undefined ? [] : before.#byLabel);
    this.#children = new Map(before === undefined ? [] : before.#children);
    const { changed, gone } = difference(
      before?.definitions.classes ?? new Map<string, ClassDefinition>(),
      definitions.classes,
    );
    for (const path of gone) this.#remove(path);
    // In byte order of paths, every class comes after its parent.
    for (const path of changed.sort())
      if (this.#classes.get(path)?.definition !== definitions.classes.get(path)) this.#load(path);
  }

  get(path: string): LoadedClass | undefined {
    return this.#classes.get(path);
  }

  basis(path: string): WriteBasis | undefined {
    const view = this.#classes.get(path);
    if (view === undefined) return undefined;
    const { cid, keys, columns, options } = view;
    const named = columns.map(({ name, number }) => [name, number] as const);
    const triggers = this.triggersFor(view).filter(({ before }) => before);
    return { cid, keys, keyMode: options.keyMode, columns: named, triggers };
  }

  byCid(cid: number): LoadedClass | undefined {
    return this.#byCid.get(cid);
  }

  byLabel(label: string): readonly LoadedClass[] {
    return this.#byLabel.get(label) ?? [];
  }

  tree(path: string): readonly LoadedClass[] {
    if (path === "/") return (this.#all ??= [...this.#classes.values()].sort(byPath));
    const root = this.#classes.get(path);
    if (root === undefined) return [];
    const found = [root];
    for (const at of found) found.push(...this.children(at.path));
    return found;
  }

  children(path: string): readonly LoadedClass[] {
    return this.#children.get(path) ?? [];
  }

  edgeTypes(): readonly EdgeType[] {
    return [...this.definitions.edgeTypes.values()];
  }

  /** In no order. */
  views(): Iterable<LoadedClass> {
    return this.#classes.values();
  }

  /** The class is about to be dropped and takes no objects. */
  isDropping(path: string): boolean {
    return this.definitions.dropping.has(path);
  }

  /** The triggers that run for objects of the class, in their order. */
  triggersFor(view: LoadedClass): readonly TriggerDefinition[] {
    if (this.definitions.triggers.size === 0) return NO_TRIGGERS;
    const known = this.#triggers.get(view);
    if (known !== undefined) return known;
    const found = triggersOf(view, this);
    this.#triggers.set(view, found);
    return found;
  }

  hasEdgeType(name: string): boolean {
    return this.definitions.edgeTypes.has(name);
  }

  /** Classes that a reference may mean: those with the label that are `within` or below it. */
  candidates(label: string, within: string | undefined): readonly LoadedClass[] {
    const all = this.byLabel(label);
    return within === undefined ? all : all.filter((view) => view.path === within || isBelow(view.path, within));
  }

  /** Makes new views of the class and of all classes below it, because they inherit from it. */
  #load(path: string): void {
    const definition = this.definitions.classes.get(path);
    if (definition === undefined) return;
    const above = this.#classes.get(parentPath(path) ?? "");
    const view = new LoadedClass(definition, above, this.#owners.get(path));
    this.#remove(path);
    this.#classes.set(path, view);
    this.#byCid.set(view.cid, view);
    this.#byLabel.set(view.label, inserted(this.byLabel(view.label), view));
    if (above !== undefined) this.#children.set(above.path, inserted(this.children(above.path), view));
    for (const child of this.children(path)) this.#load(child.path);
  }

  /** Does not remove classes below it; their own definitions still exist. */
  #remove(path: string): void {
    const view = this.#classes.get(path);
    if (view === undefined) return;
    this.#classes.delete(path);
    if (this.#byCid.get(view.cid) === view) this.#byCid.delete(view.cid);
    this.#byLabel.set(
      view.label,
      this.byLabel(view.label).filter((other) => other !== view),
    );
    const parent = parentPath(path) ?? "";
    this.#children.set(
      parent,
      this.children(parent).filter((other) => other !== view),
    );
  }
}

function difference<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): { readonly changed: string[]; readonly gone: string[] } {
  const changed: string[] = [];
  for (const [path, value] of after) if (before.get(path) !== value) changed.push(path);
  return { changed, gone: [...before.keys()].filter((path) => !after.has(path)) };
}

/** The list with one more view, in the order of paths. */
function inserted(views: readonly LoadedClass[], view: LoadedClass): readonly LoadedClass[] {
  let [from, to] = [0, views.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((views[middle]?.path ?? "") < view.path) from = middle + 1;
    else to = middle;
  }
  return views.toSpliced(from, 0, view);
}

function byPath(one: LoadedClass, other: LoadedClass): number {
  return one.path < other.path ? -1 : 1;
}
