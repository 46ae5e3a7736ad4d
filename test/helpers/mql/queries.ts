import {
  type Call,
  type ClassRef,
  type Condition,
  type Count,
  type Expression,
  type Field,
  type Fill,
  type Item,
  type Join,
  type NumberNode,
  type Operand,
  type OrderItem,
  type Select,
  type SelectItem,
  type Source as FromSource,
  type Tail,
  type Union,
  type ValueNode,
  type WindowItem,
  printOperand,
} from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import { CallGenerator, isExact } from "./calls.ts";
import { ExpressionGenerator } from "./expressions.ts";
import { columnType, typeOf } from "./types.ts";
import {
  COLUMN_NAMES,
  COLUMN_TYPES,
  type ColumnName,
  type Dice,
  drawnValue,
  type PlainClass,
  type PlainRights,
  RELATIONS,
  SINGLE,
  type World,
} from "./world.ts";

const span = { start: 0, end: 0 };
const OPEN: Tail = { orderBy: [], limit: undefined, offset: undefined, cursor: undefined };
const TEXTS: readonly ColumnName[] = ["s1", "s2", "x1"];
const SEVERAL: readonly ColumnName[] = ["g1", "m1"];

/** A class, with or without its subclasses, and the fields that can be named there. */
interface Source {
  readonly ref: FromSource;
  readonly names: readonly ColumnName[];
  /** Columns that every class of the source has. */
  readonly shared: readonly ColumnName[];
  /** True for the result of a SELECT: it has no time, no relations and no order. */
  readonly isAnswer?: true;
}

/** Random SELECTs that are valid for the caller: they use only names that it may use. */
export class QueryGenerator {
  readonly #world: World;
  readonly #rights: PlainRights;
  readonly #dice: Dice;
  readonly #expressions: ExpressionGenerator;
  readonly #calls: CallGenerator;

  constructor(world: World, rights: PlainRights, dice: Dice) {
    this.#world = world;
    this.#rights = rights;
    this.#dice = dice;
    this.#expressions = new ExpressionGenerator(dice);
    this.#calls = new CallGenerator(dice);
  }

  /** `undefined` if nothing may be read. */
  statement(): Select | Union | undefined {
    const sources = this.#sources();
    if (sources.length === 0) return undefined;
    const roll = this.#dice.below(10);
    if (roll === 0) return this.#union(sources);
    if (roll === 1) return this.#joined(sources);
    const source = this.#source(sources);
    return this.#placed(roll < 4 ? this.#grouped(source) : this.#listed(source));
  }

  /** Replaces some ORDER BY expressions by column positions. */
  #placed(select: Select): Select {
    const first = select.items.findIndex(({ kind }) => kind === "star");
    const texts = select.items
      .slice(0, first < 0 ? undefined : first)
      .map((one) => (one.kind === "item" ? printOperand(one.value) : ""));
    const orderBy = select.orderBy.map((order): OrderItem => {
      const at = texts.indexOf(printOperand(order.value));
      return at >= 0 && this.#dice.chance(0.3) ? { ...order, value: number(at + 1) } : order;
    });
    return { ...select, orderBy };
  }

  /** A class, or a SELECT over a source. */
  #source(sources: readonly Source[], depth = 2): Source {
    if (depth === 0 || this.#dice.chance(0.8)) return this.#dice.pick(sources);
    const inner = this.#source(sources, depth - 1);
    const roll = this.#dice.below(4);
    const made =
      roll === 0 && !inner.isAnswer
        ? this.#answeredUnion(sources)
        : roll === 1
          ? this.#answeredGroups(inner)
          : this.#answeredRows(inner);
    const ref: FromSource = {
      kind: "selected",
      select: made.select,
      alias: this.#dice.chance(0.5) ? "q" : undefined,
      span,
    };
    return { ref, names: made.names, shared: made.names, isAnswer: true };
  }

  /** A SELECT whose rows have a unique id. */
  #answeredRows(inner: Source): { readonly select: Select; readonly names: readonly ColumnName[] } {
    const names = this.#dice.some(inner.names, 0.6);
    const items = names.map((name) => item(field([name])));
    const fields = inner.names.map((name) => field([name]));
    const changed = items.map((one, at): SelectItem => {
      const name = names[at] ?? "n1";
      const type = columnType(field([name]));
      if (type === "list" || type === "map" || !this.#dice.chance(0.25)) return one;
      return item(this.#expressions.of(type, fields, 1), name);
    });
    const select = { ...this.#plain(inner), items: [item(field(["id"])), item(field(["class"])), ...changed] };
    return { select: { ...select, ...this.#tail([field(["id"])]) }, names };
  }

  #answeredGroups(inner: Source): { readonly select: Select; readonly names: readonly ColumnName[] } {
    const keys = this.#dice.some(inner.names.filter(isScalar), 0.3).filter((name) => name !== "n1");
    const least = (name: string): SelectItem =>
      item({ kind: "call", name: "min", distinct: false, argument: field([name]), span }, name);
    const counted = item({ kind: "call", name: "count", distinct: false, argument: undefined, span }, "n1");
    const items = [least("id"), least("class"), counted, ...keys.map((name) => item(field([name])))];
    const select = { ...this.#plain(inner), items, groupBy: keys.map((name) => field([name])) };
    return { select: { ...select, ...this.#tail([]), limit: undefined }, names: ["n1", ...keys] };
  }

  #answeredUnion(sources: readonly Source[]): { readonly select: Union; readonly names: readonly ColumnName[] } {
    const parts = [this.#dice.pick(sources), this.#dice.pick(sources)];
    const names = this.#dice.some(
      COLUMN_NAMES.filter((name) => parts.every((part) => part.shared.includes(name))),
      0.6,
    );
    const selects = parts.map((part): Select => {
      const items = ["id", "class", ...names].map((name) => item(field([name])));
      return { ...this.#plain(part), asOf: undefined, items, ...OPEN };
    });
    const select: Union = {
      kind: "union",
      all: false,
      selects,
      ...this.#tail([field(["id"])]),
      asOf: this.#asOf(),
      span,
    };
    return { select, names };
  }

  #sources(): readonly Source[] {
    const readable = this.#world.classes.filter((view) => this.#rights.isReadable(view.path));
    return readable.flatMap((view) => {
      const tree = readable.filter((other) => other.path === view.path || other.path.startsWith(`${view.path}/`));
      return [this.#classSource(view, [view], false), this.#classSource(view, tree, true)];
    });
  }

  #classSource(view: PlainClass, tree: readonly PlainClass[], subtree: boolean): Source {
    const names = COLUMN_NAMES.filter(
      (name) => !this.#rights.hidden.has(name) && tree.some((one) => one.columns.has(name)),
    );
    const shared = names.filter((name) => tree.every((one) => one.columns.has(name)));
    return { ref: { kind: "class", path: view.path, subtree, alias: undefined, span }, names, shared };
  }

  #listed(source: Source): Select {
    const distinct = this.#dice.chance(0.2);
    // Rows that differ only in unordered values, or in the existence of a column, would come in any order.
    const names = distinct ? source.shared.filter(isScalar) : source.names;
    const items =
      !distinct && !source.isAnswer && this.#dice.chance(0.15)
        ? [star()]
        : this.#items([
            ...["class", "id", ...names].map((name) => ({ field: field([name]) })),
            ...(distinct ? [] : this.#followed(source).map((one) => ({ field: one }))),
          ]);
    const windows =
      !distinct && this.#dice.chance(0.15) ? [this.#windowOf(source), this.#windowOf(source)].map(aliasedAs("w")) : [];
    const outputs = items.flatMap((item) => (item.kind === "item" ? [item] : []));
    const keys = distinct
      ? outputs.map(output)
      : [...this.#dice.some(names, 0.3).map((name) => field([name])), field(["id"])];
    return { ...this.#plain(source), distinct, items: [...items, ...windows], ...this.#tail(keys.filter(isSingle)) };
  }

  #windowOf({ names, isAnswer }: Source): WindowItem {
    const keys = ["class", ...names.filter(isScalar)].map((name) => field([name]));
    const times = isAnswer ? {} : { time: field(["vtime"]), rest: [] };
    return this.#calls.window(keys, { ids: [field(["id"])], ...times });
  }

  #grouped(source: Source): Select {
    if (source.names.includes("t1") && this.#dice.chance(0.25)) return this.#filled(source);
    const fields = ["class", ...source.names.filter(isScalar)].map((name) => field([name]));
    const made = this.#dice.chance(0.3) ? [this.#expressions.scalar(fields, 1)] : [];
    const groupBy = [...this.#dice.some([...fields, ...this.#followed(source).filter(isOne)], 0.3), ...made];
    const calls = Array.from({ length: 1 + this.#dice.below(3) }, () => this.#call(source));
    const items = [...this.#dice.some(groupBy, 0.8), ...calls, ...this.#ofGroups(groupBy, calls)].map(
      (value, at): Item => ({ kind: "item", value, alias: this.#dice.chance(0.5) ? `a${at}` : undefined, span }),
    );
    const having = this.#dice.chance(0.3) ? this.#calls.having(calls) : undefined;
    const orders = [...this.#dice.some(calls.filter(isExact), 0.5), ...groupBy];
    return { ...this.#plain(source), items: unlike(items), groupBy, having, ...this.#tail(orders) };
  }

  /** Expressions over the keys, or over aggregates of the group. */
  #ofGroups(groupBy: readonly Operand[], calls: readonly Call[]): readonly Expression[] {
    const numbers = calls.filter((one) => isExact(one) && typeOf(one) === "number");
    const keys = groupBy.filter((key): key is Field => key.kind === "field" && isOne(key));
    return [
      ...(numbers.length > 0 && this.#dice.chance(0.4) ? [this.#expressions.ofCalls(numbers)] : []),
      ...(keys.length > 0 && this.#dice.chance(0.2) ? [this.#expressions.scalar(keys, 1)] : []),
    ];
  }

  /** Groups by days or months, including those without rows; the end of the time is given or not. */
  #filled(source: Source): Select {
    const steps: Expression = {
      kind: "computed",
      name: "bucket",
      operands: [field(["t1"]), text(this.#dice.pick(["1 day", "2 days", "1 week", "1 month", "3 months"]))],
      span,
    };
    const others = this.#dice.some(
      source.names.filter((name) => isScalar(name) && name !== "t1"),
      0.2,
    );
    const fields = others.slice(0, 1).map((name) => field([name]));
    const made = fields.map((one) => {
      const key = this.#dice.chance(0.3) ? this.#expressions.scalar([one], 1) : one;
      // With FILL, only one key may be a time step.
      return key.kind === "computed" && ["bucket", "date_trunc"].includes(key.name) ? one : key;
    });
    const groupBy: readonly Operand[] = [steps, ...made];
    const calls = Array.from({ length: 1 + this.#dice.below(2) }, () => this.#call(source));
    const keys = groupBy.map((value, at): Item => ({ kind: "item", value, alias: `a${at}`, span }));
    const values = [...calls, ...this.#ofGroups([], calls)];
    const items = unlike([...keys, ...values.map((value): Item => ({ kind: "item", value, alias: undefined, span }))]);
    const plain = this.#plain(source);
    const operators = this.#dice.some([">", ">=", "<", "<="] as const, 0.3);
    const bounds = operators.map((operator): Condition => {
      return { kind: "compare", operator, left: field(["t1"]), right: this.#valueFor("t1"), span };
    });
    const all = [...bounds, ...(plain.where ? [plain.where] : [])];
    const where: Condition | undefined = all.length > 1 ? { kind: "and", items: all, span } : all[0];
    const value = this.#dice.pick<Fill["value"]>(["previous", { kind: "constant", value: null, span }, numberNode(0)]);
    const having = this.#dice.chance(0.2) ? this.#calls.having(calls) : undefined;
    return { ...plain, where, items, groupBy, fill: { kind: "fill", value, span }, having, ...this.#tail(groupBy) };
  }

  #union(sources: readonly Source[]): Union {
    const parts = Array.from({ length: 2 + this.#dice.below(2) }, () => this.#dice.pick(sources));
    const shared = ["id", "class", ...COLUMN_NAMES.filter((name) => parts.every((part) => part.names.includes(name)))];
    const names = [...new Set(["id", ...this.#dice.some(shared, 0.5)])];
    const selects = parts.map(
      (part): Select => ({
        ...this.#plain(part),
        asOf: undefined,
        items: names.map((name) => item(field([name]))),
        ...OPEN,
      }),
    );
    const order = names.filter((name) => isSingle(field([name]))).map((name) => field([name]));
    return { kind: "union", all: this.#dice.chance(0.5), selects, ...this.#tail(order), asOf: this.#asOf(), span };
  }

  #joined(sources: readonly Source[]): Select {
    const tables = ["a", "b", "c"].slice(0, this.#dice.chance(0.25) ? 3 : 2).map((alias) => {
      const source = this.#source(sources, 1);
      return { ...source, alias, ref: { ...source.ref, alias } };
    });
    const [first, ...others] = tables;
    const joins = others.map((table, at) => this.#join(tables.slice(0, at + 1), table));
    const all = tables.flatMap((table) =>
      [...["id", ...table.names].map((name) => field([name])), ...this.#followed(table)].map(({ parts }) => ({
        field: field([table.alias, ...parts]),
      })),
    );
    const fields = all.map((one) => one.field);
    const plain = this.#dice.chance(0.6) ? this.#condition(fields, 1) : undefined;
    const among = this.#dice.chance(0.15) ? this.#amongFound(fields.filter(isOne)) : undefined;
    const where = this.#both(plain, among);
    const ids = tables.map(({ alias }) => field([alias, "id"]));
    const items = this.#items(all).map(
      (one, at): SelectItem => (one.kind === "item" ? { ...one, alias: `j${at}` } : one),
    );
    const windows = this.#dice.chance(0.2) ? [this.#windowOver(tables), this.#windowOver(tables)] : [];
    const from = first?.ref ?? { kind: "class" as const, path: "/", subtree: true, alias: undefined, span };
    return {
      ...this.#plain({ ref: from, names: [], shared: [], isAnswer: true }),
      joins,
      where,
      items: [...items, ...windows.map(aliasedAs("w"))],
      ...this.#tail([...this.#dice.some(fields, 0.1).filter((one) => isSingle(one) && isOne(one)), ...ids]),
    };
  }

  /** For each object of the other tables there is one row per time of the first table. */
  #windowOver(tables: readonly (Source & { readonly alias: string })[]): WindowItem {
    const scalars = tables.flatMap(({ alias, names }) => names.filter(isScalar).map((name) => field([alias, name])));
    const ids = tables.map(({ alias }) => field([alias, "id"]));
    const [first] = tables;
    const times = !first || first.isAnswer ? {} : { time: field([first.alias, "vtime"]), rest: ids.slice(1) };
    return this.#calls.window(scalars, { ids, ...times });
  }

  #join(earlier: readonly (Source & { readonly alias: string })[], own: Source & { readonly alias: string }): Join {
    const partner = this.#dice.pick(earlier);
    const scalars = own.names.filter(
      (name) => isScalar(name) && partner.names.some((other) => COLUMN_TYPES[other] === COLUMN_TYPES[name]),
    );
    const name = scalars.length > 0 ? this.#dice.pick(scalars) : undefined;
    const others = partner.names.filter((other) => name !== undefined && COLUMN_TYPES[other] === COLUMN_TYPES[name]);
    const left = field([partner.alias, name === undefined ? "id" : this.#dice.pick(others)]);
    const right = field([own.alias, name ?? "id"]);
    const sides = this.#dice.chance(0.5) ? { left, right } : { left: right, right: left };
    return { kind: "join", outer: this.#dice.chance(0.4), class: own.ref, ...sides, span };
  }

  /** Some fields of the objects at the other ends of relations, over one step or two. */
  #followed({ isAnswer }: Source): readonly Field[] {
    if (isAnswer || this.#dice.chance(0.6)) return [];
    const readable = this.#world.classes.filter((view) => this.#rights.isReadable(view.path));
    const names = COLUMN_NAMES.filter(
      (name) => name !== "m1" && !this.#rights.hidden.has(name) && readable.some((view) => view.columns.has(name)),
    );
    return Array.from({ length: 3 }, () => {
      const steps = [this.#dice.pick(RELATIONS), ...(this.#dice.chance(0.3) ? [this.#dice.pick(RELATIONS)] : [])];
      const end = this.#dice.pick(["", "id", "class", ...names]);
      return field(end === "" ? steps : [...steps, end]);
    });
  }

  #plain(source: Source): Select {
    const { ref, names } = source;
    const plain = this.#dice.chance(0.75)
      ? this.#condition([...["id", "class", ...names].map((name) => field([name])), ...this.#followed(source)], 2)
      : undefined;
    const among = this.#dice.chance(0.1)
      ? this.#amongFound(["id", ...names.filter(isScalar)].map((name) => field([name])))
      : undefined;
    const where = this.#both(plain, among);
    return {
      kind: "select",
      distinct: false,
      items: [],
      from: ref,
      joins: [],
      asOf: this.#asOf(),
      where,
      groupBy: [],
      having: undefined,
      ...OPEN,
      span,
    };
  }

  #both(left: Condition | undefined, right: Condition | undefined): Condition | undefined {
    if (!left || !right) return left ?? right;
    return { kind: this.#dice.pick(["and", "or"] as const), items: [left, right], span };
  }

  /** A column or the id, IN a SELECT of a column of the same type. */
  #amongFound(fields: readonly Field[]): Condition | undefined {
    const operand = this.#dice.pick(fields);
    const own = operand.parts.at(-1) as ColumnName | "id" | "class";
    if (own === "class" || SEVERAL.includes(own as ColumnName)) return undefined;
    const source = this.#dice.pick(this.#sources());
    const others = own === "id" ? [own] : source.names.filter((name) => COLUMN_TYPES[name] === COLUMN_TYPES[own]);
    if (others.length === 0) return undefined;
    const select = { ...this.#plain(source), items: [item(field([this.#dice.pick(others)]))] };
    return { kind: "inSelect", operand, select, negated: this.#dice.chance(0.3), span };
  }

  #asOf(): ValueNode | undefined {
    const { earlier } = this.#world;
    return earlier && this.#dice.chance(0.3) ? { kind: "number", text: String(earlier.atMs), span } : undefined;
  }

  /** Ordered by all of the keys or by none. LIMIT only with an order, so that the result is unique. */
  #tail(keys: readonly Operand[]): Tail {
    if (keys.length === 0 || this.#dice.chance(0.4)) return { ...OPEN, limit: number(-1) };
    const orderBy = keys.map(
      (value): OrderItem => ({ kind: "order", value, descending: this.#dice.chance(0.4), span }),
    );
    const limit = this.#dice.chance(0.5) ? number(this.#dice.below(12)) : number(-1);
    return {
      orderBy,
      limit,
      offset: this.#dice.chance(0.3) ? number(this.#dice.below(6)) : undefined,
      cursor: undefined,
    };
  }

  #items(choices: readonly { readonly field: Field }[]): readonly SelectItem[] {
    const chosen = this.#dice.some(choices, 0.4);
    return (chosen.length > 0 ? chosen : choices.slice(0, 1)).map((one, at) =>
      item(
        this.#perhapsComputed(
          one.field,
          choices.map((other) => other.field),
        ),
        this.#dice.chance(0.2) ? `a${at}` : undefined,
      ),
    );
  }

  #perhapsComputed(of: Field, fields: readonly Field[]): Operand {
    if (!isOne(of) || !this.#dice.chance(0.25)) return of;
    return this.#expressions.of(columnType(of), this.#dice.chance(0.5) ? [of] : fields, this.#dice.below(3));
  }

  #call({ names, isAnswer }: Source): Call {
    return this.#calls.call(
      names.map((name) => field([name])),
      { hasTimes: !isAnswer },
    );
  }

  /** Selects the ids of objects of a class or a tree by a condition, which may follow relations. */
  choice(): (Select & { readonly from: ClassRef; readonly where: Condition }) | undefined {
    const source = this.#sources().at(this.#dice.below(8));
    if (source?.ref.kind !== "class") return undefined;
    const { ref: from, names } = source;
    const fields = [...["id", "class", ...names].map((name) => field([name])), ...this.#followed(source)];
    const where = this.#condition(fields, 2);
    return { ...this.#plain(source), from, where, items: [item(field(["id"]))], asOf: undefined };
  }

  /** A condition over all columns of the world, including those that the caller may not see. */
  rule(): Condition {
    const names = COLUMN_NAMES.filter((name) => this.#world.classes.some((view) => view.columns.has(name)));
    return this.#condition(
      ["id", ...names].map((name) => field([name])),
      1,
    );
  }

  #condition(fields: readonly Field[], depth: number): Condition {
    const roll = this.#dice.below(10);
    if (this.#dice.chance(0.1)) return this.#expressions.condition(fields.filter(isOne), this.#dice.below(3));
    if (depth === 0 || roll < 3) return this.#leaf(this.#dice.pick(fields));
    if (roll === 3) return { kind: "not", operand: this.#condition(fields, depth - 1), span };
    return {
      kind: roll < 8 ? "and" : "or",
      items: Array.from({ length: 2 + this.#dice.below(2) }, () => this.#condition(fields, depth - 1)),
      span,
    };
  }

  #leaf(operand: Field): Condition {
    const name = operand.parts.at(-1) ?? "";
    const negated = this.#dice.chance(0.3);
    const value = () => this.#valueFor(name);
    if (this.#dice.chance(0.12)) return { kind: "isNull", operand, negated, span };
    if (this.#dice.chance(0.2)) return { kind: "in", operand, values: [value(), value(), value()], negated, span };
    if (!isOne(operand) && !SEVERAL.includes(name as ColumnName))
      return { kind: "compare", operator: this.#dice.pick(["=", "!="]), left: operand, right: value(), span };
    if (SEVERAL.includes(name as ColumnName)) return this.#ofSeveral(operand, name, negated);
    if (name === "x1" || (name === "s1" && this.#dice.chance(0.2))) return this.#textLeaf(operand, negated);
    if (isText(name) && this.#dice.chance(0.25))
      return { kind: "like", operand, pattern: text(this.#dice.pick(["a*", "*1", "a*2", "*b*", "k*"])), negated, span };
    if (!isText(name) && this.#dice.chance(0.25))
      return { kind: "between", operand, low: value(), high: value(), negated, span };
    return {
      kind: "compare",
      operator: this.#dice.pick(["=", "=", "!=", "<", "<=", ">", ">="]),
      left: operand,
      right: value(),
      span,
    };
  }

  #ofSeveral(operand: Field, name: string, negated: boolean): Condition {
    const value = this.#valueFor(name);
    if (isOne(operand) && this.#dice.chance(0.25)) return this.#expressions.ofMembers(operand);
    if (name === "m1" && this.#dice.chance(0.4)) {
      const member = { ...operand, parts: [...operand.parts, this.#dice.pick(["x", "y"])] };
      return {
        kind: "compare",
        operator: this.#dice.pick(["=", "!="]),
        left: member,
        right: text(this.#dice.pick(["1", "2"])),
        span,
      };
    }
    if (this.#dice.chance(0.4)) return { kind: "contains", operand, value, negated, span };
    return { kind: "compare", operator: this.#dice.pick(["=", "!="]), left: operand, right: value, span };
  }

  #textLeaf(operand: Field, negated: boolean): Condition {
    const wanted = this.#dice.pick(["disk", "full disk", "fa* web", "dis", "web no", "dsik", "red", "node warn"]);
    const operator = this.#dice.pick(["MATCH", "MATCH", "PHRASE", "PREFIX", "FUZZY"] as const);
    return {
      kind: "textMatch",
      operator,
      operand,
      value: text(operator === "MATCH" ? wanted : wanted.replaceAll("*", "")),
      negated,
      span,
    };
  }

  #valueFor(name: string): ValueNode {
    if (name === "id" || isRelation(name))
      return text(this.#dice.pick(this.#world.now.map((row) => row.id).concat("none:1")));
    if (name === "class") return text(this.#dice.pick(this.#world.classes).path);
    const value = drawnValue(name as ColumnName, this.#dice);
    if (SEVERAL.includes(name as ColumnName)) return text(this.#dice.pick(["x", "y", "z", "none"]));
    return valueNode(name, value);
  }
}

function isScalar(name: string): name is ColumnName {
  return !SEVERAL.includes(name as ColumnName);
}

function isText(name: string): boolean {
  return TEXTS.includes(name as ColumnName) || name === "id" || name === "class";
}

function isRelation(name: string): boolean {
  return RELATIONS.some((type) => type === name);
}

/** Returns true if the field is a single value and not a list of the values of several objects. */
function isOne({ parts }: Field): boolean {
  return !isRelation(parts.at(-1) ?? "") && parts.every((part) => !isRelation(part) || part === SINGLE);
}

function isSingle(value: Operand): boolean {
  return value.kind !== "field" || isScalar(value.parts.at(-1) ?? "");
}

/** Makes the names of the outputs unique, except for aliases. */
function unlike(items: readonly Item[]): readonly Item[] {
  return items.map((one, at) => ({
    ...one,
    alias:
      one.alias ??
      (items.some((other, before) => before < at && JSON.stringify(other.value) === JSON.stringify(one.value))
        ? `d${at}`
        : undefined),
  }));
}

function aliasedAs(name: string): (one: WindowItem, at: number) => WindowItem {
  return (one, at) => ({ ...one, alias: `${name}${at}` });
}

function output(one: Item): Operand {
  return one.alias === undefined ? one.value : field([one.alias]);
}

function star(): SelectItem {
  return { kind: "star", alias: undefined, span };
}

function item(value: Operand, alias?: string): Item {
  return { kind: "item", value, alias, span };
}

function field(parts: readonly string[]): Field {
  return { kind: "field", parts, span };
}

function text(value: string): ValueNode {
  return { kind: "text", value, span };
}

function number(value: number): Count {
  return numberNode(value);
}

function numberNode(value: number): NumberNode {
  return { kind: "number", text: String(value), span };
}

/** Times become text. */
function valueNode(name: string, value: Value): ValueNode {
  if (typeof value === "boolean") return { kind: "constant", value, span };
  if (COLUMN_TYPES[name as ColumnName] === "timestamp")
    return text(new Date(Number(value)).toISOString().slice(0, 19).replace("T", " "));
  return typeof value === "number" ? { kind: "number", text: String(value), span } : text(String(value));
}
