import { AppError } from "../../../../../common/errors.ts";
import { type ClassRef, type Condition, type Field, NOWHERE, printField } from "../../../../../common/mql/index.ts";
import { setMember } from "../../../../../common/members.ts";
import { unknownName } from "../../../../../common/text/nearest.ts";
import type { Row } from "../../../../../common/value.ts";
import { type ClassCatalog, type ClassView, type Column, nameAmong, type ObjectRow } from "../../../objects/index.ts";
import { type ClassAccess, type Principal, rowLimit, type RowTest } from "../../../permissions/index.ts";
import { sourceOfField } from "../../expressions/bind.ts";
import type { BoundField, Fields } from "../../expressions/fields.ts";
import { type Kind, kindOf } from "../../expressions/kind.ts";
import { about } from "../../expressions/placing.ts";
import { type Arguments, withValues } from "../../expressions/literal.ts";
import { compilePredicate, type Predicate, type Source } from "../../expressions/predicate.ts";
import { WHOLE_SERIES, windowOf } from "../../expressions/aggregates/timeseries.ts";
import { Cells } from "./cells.ts";
import { ColumnSource } from "./column-source.ts";
import { arrivalSource, pseudoSource, readPseudo } from "./pseudo.ts";
import { followedField } from "./followed.ts";
import { relationSource } from "./related.ts";
import { parseRowCondition, usable } from "./rowconditions.ts";
import { type VisibleTree, visibleTree } from "./tree.ts";

/**
 * The classes of a statement as its principal sees them. All names of the statement are resolved here. Classes that the
 * principal may not read do not exist here, nor do columns that are sealed or hidden from it.
 */
export class Scope implements Fields<ObjectRow> {
  readonly principal: Principal;
  readonly alias: string | undefined;
  readonly tree: VisibleTree;
  /** True when rows include the objects that their relations lead to. */
  readonly #follows: boolean;
  /** Caches of resolved names: a long condition repeats a few names many times. */
  readonly #defined: Map<string, string | undefined>;
  readonly #plain: Map<string, BoundField>;
  readonly #sources = new Map<BoundField, Source<ObjectRow>>();
  readonly #like: Scope | undefined;

  constructor(
    principal: Principal,
    alias: string | undefined,
    tree: VisibleTree,
    { follows = false, like }: Like = {},
  ) {
    this.principal = principal;
    this.alias = alias;
    this.tree = tree;
    this.#follows = follows;
    this.#defined = like ? like.#defined : new Map();
    this.#plain = like ? like.#plain : new Map();
    this.#like = like;
  }

  /** The same scope with relations as fields, for readers that follow relations. */
  following(): Scope {
    return new Scope(this.principal, this.alias, this.tree, { follows: true });
  }

  /** The same scope for a principal with the same rights. Only for a scope whose relations are not followed. */
  seenBy(principal: Principal): Scope {
    return new Scope(principal, this.alias, this.tree, { follows: this.#follows, like: this });
  }

  /** The scope of all objects that the principal sees, because relations may lead to any of them. */
  get everything(): Scope {
    return new Scope(this.principal, undefined, this.tree.everything);
  }

  get root(): string {
    return this.tree.root;
  }

  get subtree(): boolean {
    return this.tree.subtree;
  }

  /** The readable classes. */
  get classes(): readonly ClassView[] {
    return this.tree.classes;
  }

  /** True if no class of the tree is left out. */
  get whole(): boolean {
    return this.tree.whole;
  }

  access(view: ClassView): ClassAccess {
    return this.tree.access(view);
  }

  column(view: ClassView, name: string): Column | undefined {
    return this.tree.column(view, name);
  }

  /** The columns in the order of the class, without sealed and hidden ones. */
  columnsOf(view: ClassView): readonly Column[] {
    return this.tree.columnsOf(view);
  }

  /** The different columns of that name in all classes of the scope. */
  columnsNamed(name: string): readonly Column[] {
    return this.tree.columnsNamed(name);
  }

  /** `AppError("not_found")` for a field that no class of the scope has. */
  bind(field: Field, values: Arguments = []): BoundField {
    const [name = "", ...members] = field.parts;
    if (field.window || members.length > 0) return this.#bound(field, values);
    let known = this.#plain.get(name);
    if (known === undefined) this.#plain.set(name, (known = this.#bound(field, values)));
    return known;
  }

  #bound(field: Field, values: Arguments): BoundField {
    const followed = this.followed(field, values);
    if (followed) {
      if (this.#follows) return followed;
      throw onlyFollowed(field.parts.join("."));
    }
    const plain = this.#bindParts(this.#ownParts(field));
    const isSeries = !plain.pseudo && this.columnsNamed(plain.name).some((column) => column.type === "bucket");
    if (!field.window) return isSeries ? { ...plain, series: WHOLE_SERIES } : plain;
    if (!isSeries) throw new AppError("invalid", `[Valid] A window needs a time series: ${plain.label} is no bucket.`);
    return {
      ...plain,
      label: printField(withValues({ ...field, parts: [plain.name, ...plain.members] }, values)),
      series: windowOf(field.window, values),
    };
  }

  #bindParts(parts: readonly string[]): BoundField {
    const [written = "", ...members] = parts;
    const name = this.definedName(written) ?? written;
    const label = [name, ...members].join(".");
    if (this.tree.isPseudo(name)) {
      if (members.length > 0) throw new AppError("invalid", `[Valid] ${name} has no members.`);
      return { label, short: label, name, table: 0, pseudo: name, members };
    }
    const columns = this.columnsNamed(name);
    if (columns.length === 0 && !this.tree.isUnveiled) throw this.unknownField(parts);
    if (members.length > 0 && columns.length > 0 && !columns.some((column) => hasMembers(kindOf(column)))) {
      throw new AppError("invalid", `[Valid] ${name} is a ${columns[0]?.type ?? ""} and has no members.`);
    }
    return { label, short: label, name, table: 0, pseudo: undefined, members };
  }

  /** The error about a field that no class of the scope has; it names the nearest that the principal sees. */
  unknownField([name = "", ...members]: readonly string[]): AppError {
    return unknownName(`Field ${[name, ...members].join(".")} Not Exist`, { name, among: this.tree.names });
  }

  /** Parts of the field without the alias of the class. */
  #ownParts({ parts }: Field): readonly string[] {
    return parts.length > 1 && parts[0] === this.alias ? parts.slice(1) : parts;
  }

  /** Field of the objects that a relation leads to; undefined if the field does not begin with a relation. */
  followed(field: Field, values: Arguments = []): BoundField | undefined {
    const [written = "", ...rest] = this.#ownParts(field);
    const first = this.definedName(written);
    if (first === undefined || !this.isRelation(first)) return undefined;
    return followedField({ ...field, parts: [first, ...rest] }, this.everything, values);
  }

  /** True for a name in exactly this case. */
  has(name: string): boolean {
    return this.tree.isPseudo(name) || this.columnsNamed(name).length > 0;
  }

  /**
   * The defined form of a name written in any case: a pseudo field, a column or a relation. The exact one wins.
   * Undefined when there is none; `AppError("invalid")` when there are several and none is exact.
   */
  definedName(written: string): string | undefined {
    const known = this.#defined.get(written);
    if (known !== undefined || this.#defined.has(written)) return known;
    const name = this.#definedName(written);
    this.#defined.set(written, name);
    return name;
  }

  #definedName(written: string): string | undefined {
    if (this.has(written) || this.isRelation(written)) return written;
    const pseudo = written.toLowerCase();
    if (this.tree.isPseudo(pseudo)) return pseudo;
    const spellings = this.tree.spellings(written);
    const columns = spellings.filter((name) => this.has(name));
    const known = nameAmong(columns.length > 0 ? columns : spellings.filter((name) => this.isRelation(name)), written);
    return known ?? (this.has(pseudo) ? pseudo : undefined);
  }

  /** True if the name means the edges of that type, and not a column. */
  isRelation(name: string): boolean {
    return this.tree.isRelation(name) && !this.tree.isPseudo(name);
  }

  kindsOf(field: BoundField): readonly Kind[] {
    return this.source(field).kinds;
  }

  kindsNamed(name: string): readonly Kind[] {
    return this.has(name) ? this.kindsOf(this.bind({ kind: "field", parts: [name], span: NOWHERE })) : [];
  }

  star(alias: string | undefined): undefined {
    if (alias !== undefined && alias !== this.alias)
      throw unknownName(`[NotExist] Nothing is called ${alias} here.`, { name: alias, among: [this.alias ?? ""] });
  }

  writtenMs(): (row: ObjectRow) => number {
    return (row) => row.vtimeMs;
  }

  /**
   * Puts all values of a row into the answer. Columns that the row's class lacks are left out; columns that are not set
   * are null.
   */
  wholeRow(): (row: ObjectRow, result: Row) => void {
    const [tree, cells] = [this.tree, cellsOf(this)];
    return (row, result) => {
      const hidden = cells?.hiddenIn(row);
      for (const pseudo of tree.pseudoFields) result[pseudo] = readPseudo(pseudo, row);
      for (const { name } of tree.columnsOf(row.class))
        setMember(result, name, hidden?.has(name) ? null : (row.values[name] ?? null));
    };
  }

  source(bound: BoundField): Source<ObjectRow> {
    // Fields that only this run binds are not added to what later runs share.
    let known = this.#sources.get(bound) ?? (this.#like ? this.#like.#sources.get(bound) : undefined);
    if (known === undefined) {
      known = sourceOfField(bound, this, (field) => this.#plainSource(field));
      this.#sources.set(bound, known);
    }
    return known;
  }

  #plainSource(field: BoundField): Source<ObjectRow> {
    if (field.isArrival) return arrivalSource(this.classes, field.label);
    if (field.pseudo) return pseudoSource(field.pseudo, field.label);
    return field.relation
      ? relationSource(field.relation, this.everything, field.label)
      : new ColumnSource(this.tree, field, cellsOf(this));
  }

  /** The condition that hides rows of the class from the principal. */
  rowCondition(view: ClassView): string | undefined {
    return this.access(view).where;
  }

  /** True if some rows of the class do not exist for the principal. */
  isRuled(view: ClassView): boolean {
    return this.rowCondition(view) !== undefined || rowLimit(this.principal, view) !== undefined;
  }
}

interface Like {
  readonly follows?: boolean;
  /** Shares the resolved names of this scope. */
  readonly like?: Scope;
}

/**
 * The root class must exist. Without its subtree it must be readable; in a subtree, one readable class is enough. An
 * error is about the place of the target, if it has one.
 */
export function scopeOf(
  principal: Principal,
  catalog: ClassCatalog,
  target: Pick<ClassRef, "path" | "subtree" | "alias"> & Partial<Pick<ClassRef, "span">>,
): Scope {
  const { alias, span = NOWHERE } = target;
  return new Scope(
    principal,
    alias,
    about(span, () => visibleTree(principal, catalog, target)),
  );
}

/**
 * True for a row that the principal may know of: its class is readable, its row condition is true, and its owner does
 * not hide it.
 */
export function visibility(scope: Scope): Predicate<ObjectRow> {
  let ruled = visibilities.get(scope.tree);
  if (!ruled) visibilities.set(scope.tree, (ruled = visibilityOf(scope)));
  const limits = limitsOf(scope);
  if (limits.size === 0) return ruled;
  const byRules = ruled;
  return (row) => byRules(row) === true && limits.get(row.class.cid)?.(row.values) !== false;
}

/** Visibility by rules, by tree. All principals of the tree share it. */
const visibilities = new WeakMap<VisibleTree, Predicate<ObjectRow>>();

/** The test by which the owner of a class limits the rows for this principal, by class number. */
function limitsOf({ principal, tree }: Scope): ReadonlyMap<number, RowTest> {
  const limits = new Map<number, RowTest>();
  for (const view of tree.limited) {
    const test = rowLimit(principal, view);
    if (test !== undefined) limits.set(view.cid, test);
  }
  return limits;
}

function visibilityOf(scope: Scope): Predicate<ObjectRow> {
  const conditions = new Map<string, Predicate<ObjectRow>>();
  for (const view of scope.classes) {
    const text = scope.rowCondition(view);
    if (text !== undefined && !conditions.has(text)) conditions.set(text, rowPredicate(scope, text));
  }
  if (conditions.size === 0 && scope.whole) return () => true;
  const known = new Set(scope.classes.map((view) => view.cid));
  return (row) => {
    if (!known.has(row.class.cid)) return false;
    const text = scope.rowCondition(row.class);
    return text === undefined || conditions.get(text)?.(row);
  };
}

/** Absent when the principal can read and write the same columns in all rows of each class. */
export function cellsOf(scope: Scope): Cells | undefined {
  const { tree } = scope;
  if (!cells.has(tree)) {
    const isVarying = !tree.isUnveiled && scope.classes.some((view) => tree.access(view).parts.length > 1);
    const rules = {
      access: (view: ClassView) => tree.access(view),
      compile: (where: string) => rowPredicate(scope, where),
    };
    cells.set(tree, isVarying ? new Cells(rules) : undefined);
  }
  return cells.get(tree);
}

const cells = new WeakMap<VisibleTree, Cells | undefined>();

/** The one row condition that holds for every class of the scope, so that a read can be narrowed by it. */
export function commonRowCondition(scope: Scope): string | undefined {
  const texts = new Set(scope.classes.map((view) => scope.rowCondition(view)));
  const [only] = texts;
  return texts.size === 1 ? only : undefined;
}

export function unveiled(scope: Scope, only?: ClassView): Scope {
  return new Scope(scope.principal, undefined, scope.tree.unveiled(only));
}

/** Compiles the condition with the meaning that it has in a statement about the row's class only. */
function rowPredicate(scope: Scope, text: string): Predicate<ObjectRow> {
  const condition = parseRowCondition(text);
  const ofTree = compiledIn(unveiled(scope), condition);
  if (!scope.tree.isMixed) return ofTree;
  const byClass = new Map<ClassView, Predicate<ObjectRow>>();
  return (row) => {
    const known = byClass.get(row.class);
    if (known) return known(row);
    const own = compiledIn(unveiled(scope, row.class), condition);
    byClass.set(row.class, own);
    return own(row);
  };
}

function compiledIn(inner: Scope, condition: Condition): Predicate<ObjectRow> {
  return usable(() =>
    compilePredicate(condition, {
      values: [],
      resolve(operand) {
        if (operand.kind === "call") throw new AppError("invalid", `${operand.name}() in a row condition`);
        return inner.source(inner.bind(operand));
      },
    }),
  );
}

function onlyFollowed(name: string): AppError {
  return new AppError(
    "invalid",
    `[Valid] ${name} is a relation: SELECT and the conditions of UPDATE, DELETE and MATCH follow it.`,
  );
}

function hasMembers(kind: Kind): boolean {
  return kind.type === "map" || kind.type === "any";
}
