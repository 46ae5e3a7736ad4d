import { isBelow, parentPath, type Definitions } from "./definition.ts";
import type { ClassCatalog, EdgeType, SystemClass } from "./types.ts";
import { LoadedClass } from "./views.ts";

/** All classes of a tenant at one moment. Views of classes that did not change are those of the snapshot before. */
export class Snapshot implements ClassCatalog {
  readonly revision: number;
  readonly definitions: Definitions;
  readonly #classes = new Map<string, LoadedClass>();
  readonly #byCid = new Map<number, LoadedClass>();
  readonly #byLabel = new Map<string, LoadedClass[]>();
  readonly #children = new Map<string, LoadedClass[]>();

  constructor(definitions: Definitions, revision: number, from: { readonly before?: Snapshot; readonly owners: ReadonlyMap<string, SystemClass> }) {
    this.revision = revision;
    this.definitions = definitions;
    // Byte order of paths puts every class behind its parent.
    for (const path of [...definitions.classes.keys()].sort()) this.#add(path, from);
  }

  get(path: string): LoadedClass | undefined {
    return this.#classes.get(path);
  }

  byCid(cid: number): LoadedClass | undefined {
    return this.#byCid.get(cid);
  }

  byLabel(label: string): readonly LoadedClass[] {
    return this.#byLabel.get(label) ?? [];
  }

  tree(path: string): readonly LoadedClass[] {
    if (path === "/") return [...this.#classes.values()];
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

  /** Somebody is about to drop the class: nothing may be written into it. */
  isDropping(path: string): boolean {
    return this.definitions.dropping.has(path);
  }

  hasEdgeType(name: string): boolean {
    return this.definitions.edgeTypes.has(name);
  }

  /** Classes a reference may mean: those with the label, at or below `within`. */
  candidates(label: string, within: string | undefined): readonly LoadedClass[] {
    const all = this.byLabel(label);
    return within === undefined ? all : all.filter((view) => view.path === within || isBelow(view.path, within));
  }


  #add(path: string, from: { readonly before?: Snapshot; readonly owners: ReadonlyMap<string, SystemClass> }): void {
    const definition = this.definitions.classes.get(path);
    if (definition === undefined) return;
    const above = this.#classes.get(parentPath(path) ?? "");
    const known = from.before?.get(path);
    const view = known?.definition === definition && known.above === above ? known : new LoadedClass(definition, above, from.owners.get(path));
    this.#classes.set(path, view);
    this.#byCid.set(view.cid, view);
    append(this.#byLabel, view.label, view);
    if (above !== undefined) append(this.#children, above.path, view);
  }
}

function append(lists: Map<string, LoadedClass[]>, key: string, view: LoadedClass): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [view]);
  else list.push(view);
}
