import { AppError } from "../../../../../common/errors.ts";
import { QUERY_TREES_KEPT_MAX } from "../../../../../common/limits.ts";
import type { ClassRef } from "../../../../../common/mql/index.ts";
import { listed } from "../../../../../common/text/listed.ts";
import {
  type ClassCatalog,
  type ClassView,
  type Column,
  readablePaths,
  RECORD_COLUMNS,
  unknownClass,
} from "../../../objects/index.ts";
import { accessKey, classAccess, closingOf, type ClassAccess, type Principal } from "../../../permissions/index.ts";
import type { PseudoField } from "../../expressions/fields.ts";
import { isPseudo, PSEUDO_FIELDS } from "./pseudo.ts";

export type Target = Pick<ClassRef, "path" | "subtree">;
type Rights = Pick<Principal, "data" | "grants" | "byToken" | "ospace">;

const RECORD_NAMES: ReadonlySet<string> = new Set(RECORD_COLUMNS.map(({ name }) => name));

/** Access to the rows of an answer, which were checked when they were read. */
const ANSWERED: ClassAccess = {
  readable: true,
  writable: false,
  where: undefined,
  hidden: new Set<string>(),
  parts: [],
};

interface TreeContent {
  /** Readable classes that an unknown target may mean, in the form of its path. */
  readonly among?: () => Iterable<string>;
  readonly found: readonly ClassView[];
  readonly relations: ReadonlySet<string>;
  /** Absent for a tree without relations. */
  readonly everything?: (() => VisibleTree) | undefined;
  readonly isUnveiled?: boolean;
  readonly isAnswer?: boolean;
}

/** A class or a subtree, as all principals with the same rights see it under the same definitions. */
export class VisibleTree {
  readonly root: string;
  readonly subtree: boolean;
  /** The readable classes. */
  readonly classes: readonly ClassView[];
  /** True if no class is left out. */
  readonly whole: boolean;
  /** True for the tree of a row condition, which sees columns that its principal does not. */
  readonly isUnveiled: boolean;
  /**
   * True if the rows are the answer of a SELECT. The principal sees all of them, and they have no fields besides
   * columns.
   */
  readonly isAnswer: boolean;
  /** Names of the edge types: attributes that relate an object of any class to others. */
  readonly relations: ReadonlySet<string>;
  readonly #rights: Rights;
  readonly #everything: TreeContent["everything"];
  readonly #access = new Map<number, ClassAccess>();
  readonly #columnsOf = new Map<ClassView, readonly Column[]>();
  readonly #columnsNamed = new Map<string, readonly Column[]>();
  #limited: readonly ClassView[] | undefined;
  #spellings: ReadonlyMap<string, readonly string[]> | undefined;
  #unveiled: VisibleTree | undefined;
  #isMixed: boolean | undefined;
  /** Names of columns and relations in lower case, including hidden ones. */
  #taken: ReadonlySet<string> | undefined;

  constructor(rights: Rights, target: Target, content: TreeContent) {
    const { among, found, relations, everything, isUnveiled = false, isAnswer = false } = content;
    this.#rights = rights;
    this.#everything = everything;
    this.root = target.path;
    this.subtree = target.subtree;
    this.isUnveiled = isUnveiled;
    this.isAnswer = isAnswer;
    this.relations = relations;
    this.classes = found.filter((view) => isUnveiled || this.access(view).readable);
    this.whole = this.classes.length === found.length;
    if (this.classes.length === 0) throw notReadable(rights, target, { found, among });
  }

  /** Classes whose owner hides objects from some principals. */
  get limited(): readonly ClassView[] {
    return (this.#limited ??= this.classes.filter((view) => view.guard?.limit !== undefined));
  }

  /** Fields that the rows have besides columns. */
  get pseudoFields(): readonly PseudoField[] {
    return this.isAnswer ? [] : PSEUDO_FIELDS;
  }

  isPseudo(name: string): name is PseudoField {
    return !this.isAnswer && isPseudo(name);
  }

  access(view: ClassView): ClassAccess {
    if (this.isAnswer) return ANSWERED;
    let access = this.#access.get(view.cid);
    if (!access) this.#access.set(view.cid, (access = accessOf(this.#rights, view)));
    return access;
  }

  column(view: ClassView, name: string): Column | undefined {
    const column = view.column(name) ?? this.#recordColumn(view, name);
    if (!column || column.sealed) return undefined;
    return !this.isUnveiled && this.access(view).hidden.has(name) ? undefined : column;
  }

  /** The columns in the order of the class, without sealed and hidden ones. */
  columnsOf(view: ClassView): readonly Column[] {
    let columns = this.#columnsOf.get(view);
    if (!columns)
      this.#columnsOf.set(
        view,
        (columns = view.columns.filter(({ name }) => this.column(view, name) !== undefined && !this.isPseudo(name))),
      );
    return columns;
  }

  /** The different columns of that name in all classes of the tree. */
  columnsNamed(name: string): readonly Column[] {
    let columns = this.#columnsNamed.get(name);
    if (!columns) {
      columns = this.#collect(name);
      // Unknown names are not cached: a statement that is repeated has none, except by mistake.
      if (columns.length > 0) this.#columnsNamed.set(name, columns);
    }
    return columns;
  }

  /**
   * True for an edge type, unless a column of a class of the tree has the same name. Hidden and sealed columns count,
   * too.
   */
  isRelation(name: string): boolean {
    return this.relations.has(name) && !this.classes.some((view) => view.column(name) !== undefined);
  }

  /** Names of columns, then of relations, that equal this name if case is ignored. */
  spellings(name: string): readonly string[] {
    this.#spellings ??= byLowerCase([
      ...this.classes.flatMap((view) => this.columnsOf(view).map((column) => column.name)),
      ...this.relations,
    ]);
    return this.#spellings.get(name.toLowerCase()) ?? [];
  }

  /** The names that a field can begin with, as the principal sees them. */
  get names(): ReadonlySet<string> {
    const columns = this.classes.flatMap((view) => this.columnsOf(view).map(({ name }) => name));
    return new Set([...columns, ...this.pseudoFields, ...this.relations]);
  }

  /** The tree of all readable classes, because relations lead to objects of any of them. */
  get everything(): VisibleTree {
    return this.#everything?.() ?? this;
  }

  /** A column of `recordColumns`, unless a column of the tree or a relation has the same name, in any case. */
  #recordColumn({ recordColumns }: ClassView, name: string): Column | undefined {
    const column = recordColumns?.find((one) => one.name === name);
    if (column === undefined) return undefined;
    this.#taken ??= new Set(
      [...this.relations, ...this.classes.flatMap(({ columns }) => columns.map((own) => own.name))].map((own) =>
        own.toLowerCase(),
      ),
    );
    return this.#taken.has(name) ? undefined : column;
  }

  #collect(name: string): readonly Column[] {
    const byNumber = new Map<number, Column>();
    for (const view of this.classes) {
      const column = this.column(view, name);
      if (column) byNumber.set(column.number, column);
    }
    return [...byNumber.values()];
  }

  /** True if the name, in any case, is a column of `recordColumns` here. */
  isOfPlatform(name: string): boolean {
    const lower = name.toLowerCase();
    return RECORD_NAMES.has(lower) && this.classes.some((view) => this.#recordColumn(view, lower) !== undefined);
  }

  /** True if a name may be one of `recordColumns` in one class and an own column in another class. */
  get isMixed(): boolean {
    return (this.#isMixed ??=
      this.classes.length > 1 &&
      this.classes.some(({ recordColumns = [] }) => recordColumns.length > 0) &&
      this.classes.some(({ columns }) => columns.some(({ name }) => RECORD_NAMES.has(name.toLowerCase()))));
  }

  /** The same tree, or `only` that class, with all its columns. */
  unveiled(only?: ClassView): VisibleTree {
    const { root: path, subtree, relations } = this;
    const content = { found: this.classes, relations, isUnveiled: true };
    if (only) return new VisibleTree(this.#rights, { path: only.path, subtree: false }, { ...content, found: [only] });
    return (this.#unveiled ??= new VisibleTree(this.#rights, { path, subtree }, content));
  }
}

/** The error must not reveal that a class exists. Only the platform's own classes are known to all principals. */
function notReadable(
  rights: Rights,
  { path }: Target,
  { found, among = () => [] }: Pick<TreeContent, "found" | "among">,
): AppError {
  const closings = found.map((view) => closingOf(rights, view));
  const taken = new Set(closings.flatMap((closing) => closing?.permission ?? []));
  const [permission] = taken;
  if (permission === undefined || closings.includes(undefined)) return unknownClass(path, among());
  const which = taken.size === 1 ? `the permission ${permission}` : `one of the permissions ${listed([...taken])}`;
  const text = `Reading objects of ${path} takes ${which}.`;
  return new AppError("denied", text, { details: { permission, class: path } });
}

/**
 * Trees by definitions, then by rights, then by target. Trees of unreachable definitions or rights are collected with
 * them.
 */
const known = new WeakMap<ClassCatalog, WeakMap<Principal["data"], Map<string, VisibleTree>>>();

/** The root class must exist. Without its subtree it must be readable; in a subtree, one readable class is enough. */
export function visibleTree(rights: Rights, catalog: ClassCatalog, target: Target): VisibleTree {
  const trees = treesOf(catalog, rights.data);
  const name = `${accessKey(rights)} ${target.path}${target.subtree ? "/*" : ""}`;
  let tree = trees.get(name);
  if (!tree) {
    if (trees.size >= QUERY_TREES_KEPT_MAX) trees.clear();
    tree = new VisibleTree(rights, target, {
      among: () => readablePaths(rights, catalog),
      found: classesOf(catalog, target),
      relations: relationsOf(catalog),
      everything: () => visibleTree(rights, catalog, EVERYTHING),
    });
    trees.set(name, tree);
  }
  return tree;
}

const EVERYTHING: Target = { path: "/", subtree: true };

/** Names of the edge types. */
export function relationsOf(catalog: ClassCatalog): ReadonlySet<string> {
  return new Set(catalog.edgeTypes().map((type) => type.name));
}

function byLowerCase(names: Iterable<string>): ReadonlyMap<string, readonly string[]> {
  const spellings = new Map<string, string[]>();
  for (const name of new Set(names)) {
    const lower = name.toLowerCase();
    const known = spellings.get(lower);
    if (known) known.push(name);
    else spellings.set(lower, [name]);
  }
  return spellings;
}

function classesOf(catalog: ClassCatalog, { path, subtree }: Target): readonly ClassView[] {
  const root = catalog.get(path);
  return subtree ? catalog.tree(path) : root ? [root] : [];
}

function treesOf(catalog: ClassCatalog, data: Principal["data"]): Map<string, VisibleTree> {
  let byRights = known.get(catalog);
  if (!byRights) known.set(catalog, (byRights = new WeakMap()));
  let trees = byRights.get(data);
  if (!trees) byRights.set(data, (trees = new Map()));
  return trees;
}

/** All principals may read the schema table, because it shows only what its reader may see. */
function accessOf(rights: Rights, view: ClassView): ClassAccess {
  const access = classAccess(rights, view);
  return view.path === "/system/class" && !view.path.startsWith(`${rights.ospace}/`)
    ? { ...access, readable: true, writable: false }
    : access;
}
