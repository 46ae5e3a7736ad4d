import {
  type Call,
  type Condition,
  type Field,
  type Fill,
  type InSelect,
  isAny,
  type Item,
  type NumberNode,
  type Operand,
  type OrderItem,
  partsOf,
  printCall,
  printOperand,
  printWindow,
  type Relate,
  type Select,
  type Source,
  type Union,
  type ValueNode,
  type WindowItem,
} from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import { aggregate, computed, order, stepOf } from "./definitions.ts";
import { typeOf } from "./types.ts";
import { type PlainClass, type PlainRights, type PlainRow, RELATIONS, type World } from "./world.ts";

/**
 * SELECT over a few plain objects: all rows of all classes, conditions by their definition, groups as lists of rows. It
 * uses no index, no pages and no plan, and supports only what the generator produces.
 */

/** True, false, or `undefined` for unknown. */
type Truth = boolean | undefined;

/** The object of each joined class, by its name there; null if a LEFT JOIN finds none. */
type Env = Readonly<Record<string, PlainRow | null>>;

export interface Expected {
  readonly rows: readonly Row[];
  /** Sort keys of each row. */
  readonly keys: readonly (readonly Value[])[];
  readonly descending: readonly boolean[];
  readonly offset: number;
  readonly limit: number;
}

export class Reference {
  readonly #world: World;
  readonly #rights: PlainRights;
  readonly #rule: Condition | undefined;
  readonly #columns = new Map<PlainClass, ReadonlySet<string>>();
  readonly #found = new Map<InSelect, readonly (Value | undefined)[]>();
  readonly #visible = new Map<boolean, ReadonlyMap<string, PlainRow>>();
  readonly #earlier: ReadonlySet<PlainRow>;

  constructor(world: World, rights: PlainRights, rule: Condition | undefined) {
    this.#world = world;
    this.#rights = rights;
    this.#rule = rule;
    this.#earlier = new Set(world.earlier?.rows);
  }

  select(select: Select): Expected {
    const envs = this.#envs(select).filter(
      (env) => !select.where || this.#truth(select.where, (operand) => this.#read(operand, env)) === true,
    );
    const isGrouped =
      select.groupBy.length > 0 ||
      select.items.some((item) => item.kind === "item" && partsOf(item.value).some((part) => part.kind === "call"));
    const made = isGrouped ? this.#groups(select, envs) : envs.map((env) => this.#made(select, env, envs));
    return { ...arranged(select.distinct ? distinct(made) : made, select.orderBy), ...windowOf(select, isGrouped) };
  }

  union(union: Union): Expected {
    const rows = union.selects.flatMap((select) => this.select({ ...select, asOf: union.asOf }).rows);
    const made = rows.map((row) => ({ row, keys: union.orderBy.map((order) => row[nameOf(order.value)] ?? null) }));
    return { ...arranged(union.all ? made : distinct(made), union.orderBy), ...windowOf(union, false) };
  }

  #envs(select: Select): readonly Env[] {
    let envs: readonly Env[] = this.#source(select.from, select.asOf).map((row) => ({
      [select.from.alias ?? ""]: row,
    }));
    for (const join of select.joins) {
      const rows = this.#source(join.class, select.asOf);
      const name = join.class.alias ?? "";
      envs = envs.flatMap((env): readonly Env[] => {
        const pairs = rows.map((row) => ({ ...env, [name]: row }));
        const found = pairs.filter((pair) => isSame(this.#read(join.left, pair), this.#read(join.right, pair)));
        return found.length === 0 && join.outer ? [{ ...env, [name]: null }] : found;
      });
    }
    return envs;
  }

  #source(source: Source, asOf: ValueNode | undefined): readonly PlainRow[] {
    return source.kind === "class" ? this.#rows(source, asOf !== undefined) : this.#answered(source.select, asOf);
  }

  /** Rows of a SELECT in its order and window. The state is that of the enclosing SELECT, unless it names its own. */
  #answered(select: Select | Union, asOf: ValueNode | undefined): readonly PlainRow[] {
    const own = { ...select, asOf: select.asOf ?? asOf, limit: select.limit ?? ALL };
    const expected = own.kind === "union" ? this.union(own) : this.select(own);
    const rows = inOrder(expected).slice(expected.offset, expected.offset + expected.limit);
    const columns = new Set(rows.flatMap(({ row }) => Object.keys(row)));
    return rows.map(({ row }) => ({
      id: "",
      class: { ...ANSWER, columns },
      values: row,
      writtenMs: 0,
      edges: { up: [], near: [] },
    }));
  }

  #rows(from: { readonly path: string; readonly subtree: boolean }, isEarlier: boolean): readonly PlainRow[] {
    return [...this.#seenRows(isEarlier).values()].filter(
      (row) => row.class.path === from.path || (from.subtree && row.class.path.startsWith(`${from.path}/`)),
    );
  }

  /** Rows by id, in the order of their creation. */
  #seenRows(isEarlier: boolean): ReadonlyMap<string, PlainRow> {
    const known = this.#visible.get(isEarlier);
    if (known) return known;
    const state = isEarlier ? (this.#world.earlier?.rows ?? []) : this.#world.now;
    const rule = this.#rule;
    const rows = state.filter((row) => {
      if (!this.#rights.isReadable(row.class.path)) return false;
      return (
        !rule ||
        this.#truth(rule, (operand) =>
          operand.kind === "field" ? valueOf(row, operand.parts, row.class.columns) : undefined,
        ) === true
      );
    });
    const seen = new Map(rows.map((row) => [row.id, row]));
    this.#visible.set(isEarlier, seen);
    return seen;
  }

  /** The ids at the other ends of an edge, or the values of these objects: one, or all in the order of the ids. */
  #followed(row: PlainRow, parts: readonly string[]): Value {
    const rows = this.#seenRows(this.#earlier.has(row));
    let ends: readonly PlainRow[] = [row];
    let rest = parts;
    for (let type = relationOf(rest); type !== undefined; type = relationOf(rest)) {
      const ids = new Set(ends.flatMap((end) => (type ? end.edges[type] : [])));
      ends = [...ids].sort().flatMap((id) => rows.get(id) ?? []);
      rest = rest.slice(1);
    }
    if (rest.length === 0) return ends.length === 0 ? null : ends.map(({ id }) => id);
    const values = ends.map((end) => valueOf(end, rest, this.#seen(end.class)) ?? null).filter((one) => one !== null);
    return values.length > 1 ? values.flat() : (values[0] ?? null);
  }

  /** `undefined` if the class has no such column. */
  #read(operand: Operand, env: Env): Value | undefined {
    if (operand.kind === "call") return undefined;
    if (operand.kind !== "field") return this.#computed(operand, (inner) => this.#read(inner, env));
    const field = operand;
    const [first = "", ...rest] = field.parts;
    const named = rest.length > 0 ? env[first] : undefined;
    if (named === null) return null;
    const row = named ?? Object.values(env)[0];
    const parts = named ? rest : field.parts;
    if (row && relationOf(parts)) return this.#followed(row, parts);
    return row && valueOf(row, parts, this.#seen(row.class));
  }

  /** Uses the definitions of the operators and functions that the generator produces. */
  #computed(operand: Exclude<Operand, Field | Call>, read: (operand: Field | Call) => Value | undefined): Value {
    const value = (inner: Operand): Value =>
      (inner.kind === "field" || inner.kind === "call" ? read(inner) : this.#computed(inner, read)) ?? null;
    if (operand.kind === "truth") return this.#truth(operand.condition, read) ?? null;
    if (operand.kind === "case") {
      const branch = operand.branches.find(({ when }) => this.#truth(when, read) === true);
      const chosen = branch ? branch.then : operand.otherwise;
      return chosen ? value(chosen) : null;
    }
    if (operand.kind !== "computed") return plain(operand);
    const [first] = operand.operands;
    return computed(operand.name, operand.operands.map(value), first ? typeOf(first) : "text");
  }

  #seen(view: PlainClass): ReadonlySet<string> {
    if (view.path === ANSWER.path) return view.columns;
    const known = this.#columns.get(view);
    if (known) return known;
    const columns = new Set([...view.columns].filter((name) => !this.#rights.hidden.has(name)));
    this.#columns.set(view, columns);
    return columns;
  }

  #amongFound(condition: InSelect, own: Value | undefined): Truth {
    if (own === undefined || own === null) return undefined;
    const found = this.#found.get(condition) ?? this.select(condition.select).rows.map((row) => Object.values(row)[0]);
    this.#found.set(condition, found);
    return found.includes(own) !== condition.negated;
  }

  #made(select: Select, env: Env, all: readonly Env[]): Made {
    const row: Row = {};
    for (const item of select.items) {
      if (item.kind === "star") Object.assign(row, this.#whole(env));
      else if (item.kind === "window") row[item.alias ?? printWindow(item)] = this.#over(item, env, all);
      else set(row, item.alias ?? nameOf(item.value), this.#read(item.value, env));
    }
    return { row, keys: select.orderBy.map(({ value }) => this.#read(aliased(value, select), env) ?? null) };
  }

  /** By definition: the ordered rows with the same keys, and those before and after the row. */
  #over({ name, operands, partitionBy, orderBy }: WindowItem, env: Env, all: readonly Env[]): Value {
    const part = (one: Env): string => JSON.stringify(partitionBy.map((key) => this.#read(key, one) ?? null));
    const compared = (left: Env, right: Env): number => {
      for (const { value, descending } of orderBy) {
        const result = order(this.#read(value, left) ?? null, this.#read(value, right) ?? null);
        if (result !== 0) return descending ? -result : result;
      }
      return 0;
    };
    const own = all.filter((one) => part(one) === part(env)).sort(compared);
    const [argument, further] = operands;
    const value = (one: Env | undefined): Value => (one && argument ? (this.#read(argument, one) ?? null) : null);
    const distance = further ? Number(plain(further as ValueNode)) : 1;
    if (name === "row_number") return own.indexOf(env) + 1;
    if (name === "lag") return value(own[own.indexOf(env) - distance]);
    if (name === "lead") return value(own[own.indexOf(env) + distance]);
    if (name === "rate") return this.#rate(own, env, { value, time: orderBy[0]?.value });
    const before = own.filter((one) => compared(one, env) <= 0);
    const known = before.map((one) => ({ value: value(one), ms: 0 })).filter((one) => one.value !== null);
    return name === "count" && !argument ? before.length : aggregate(name, known);
  }

  /** Growth per second since the previous row with a value. A smaller value means that the counter restarted at 0. */
  #rate(
    own: readonly Env[],
    env: Env,
    of: { readonly value: (env: Env) => Value; readonly time: Operand | undefined },
  ): Value {
    const now = of.value(env);
    const before = own.slice(0, own.indexOf(env)).findLast((one) => of.value(one) !== null);
    if (now === null || !before || !of.time) return null;
    const seconds = (Number(this.#read(of.time, env)) - Number(this.#read(of.time, before))) / 1_000;
    const was = Number(of.value(before));
    return (Number(now) < was ? Number(now) : Number(now) - was) / seconds;
  }

  #whole(env: Env): Row {
    const [row] = Object.values(env);
    if (!row) return {};
    if (row.class.path === ANSWER.path)
      return Object.fromEntries([...row.class.columns].map((name) => [name, row.values[name] ?? null]));
    return {
      id: row.id,
      class: row.class.path,
      ...Object.fromEntries([...this.#seen(row.class)].map((name) => [name, row.values[name] ?? null])),
    };
  }

  #groups(select: Select, envs: readonly Env[]): readonly Made[] {
    const groups = new Map<string, Env[]>();
    if (select.groupBy.length === 0) groups.set("[]", []);
    for (const env of envs) {
      const name = JSON.stringify(select.groupBy.map((field) => this.#read(field, env) ?? null));
      groups.set(name, [...(groups.get(name) ?? []), env]);
    }
    const read =
      (members: readonly Env[]) =>
      (value: Operand): Value =>
        this.#ofGroup(aliased(value, select), members);
    const found = [...groups.values()].map((members): Group => {
      const [first] = members;
      return { keys: select.groupBy.map((key) => (first && this.#read(key, first)) ?? null), read: read(members) };
    });
    const kept = (select.fill ? this.#filled(found, select, select.fill) : found).filter(
      (group) => !select.having || this.#truth(select.having, group.read) === true,
    );
    return kept.map((group) => {
      const row: Row = {};
      for (const item of select.items)
        if (item.kind === "item") row[item.alias ?? nameOf(item.value)] = group.read(item.value);
      return { row, keys: select.orderBy.map(({ value }) => group.read(aliased(value, select))) };
    });
  }

  /** Each combination of the other keys, with every step from the first to the last. */
  #filled(found: readonly Group[], select: Select, { value }: Fill): readonly Group[] {
    const at = select.groupBy.findIndex((key) => key.kind === "computed" && key.name === "bucket");
    const bucket = select.groupBy[at];
    const [time, width] = bucket?.kind === "computed" ? bucket.operands.map(printOperand) : [];
    const [, amount = "", unit = ""] = /(\d+) (\w+)/.exec(width ?? "") ?? [];
    // Adding this many days to the start of a step leads into the next one.
    const days = unit.startsWith("month") ? 31 : unit === "week" ? 7 : 1;
    const nextMs = Number(amount) * days * 86_400_000;
    const timed = found.filter((group) => group.keys[at] !== null);
    const begin = (timeMs: Value): number => stepOf(Number(timeMs), `${amount} ${unit}`);
    const bounds = conjuncts(select.where).flatMap((part) => boundsOf(part, time ?? ""));
    const side = (name: string): number[] => bounds.filter(([own]) => own === name).map(([, timeMs]) => begin(timeMs));
    const steps = timed.map((group) => Number(group.keys[at]));
    const from = Math.min(...steps, ...(side("from").length > 0 ? [Math.max(...side("from"))] : []));
    const to = Math.max(...steps, ...(side("to").length > 0 ? [Math.min(...side("to"))] : []));
    const others = (group: Group): string => JSON.stringify(group.keys.toSpliced(at, 1));
    const names = new Set(timed.map(others));
    if (select.groupBy.length === 1 && Number.isFinite(from) && Number.isFinite(to)) names.add("[]");
    const rest = found.filter((group) => group.keys[at] === null);
    return [...names].reduce<readonly Group[]>((made, name) => {
      const own = timed.filter((group) => others(group) === name);
      let before: Group | undefined;
      const filled: Group[] = [];
      for (let step = from; step <= to; step = begin(step + nextMs)) {
        const known = own.find((group) => group.keys[at] === step);
        const keys = own[0]?.keys.with(at, step) ?? [step];
        const group: Group = known ?? { keys, read: this.#readEmpty(select, { keys, value, before }) };
        before = group;
        filled.push(group);
      }
      return [...made, ...filled];
    }, rest);
  }

  #readEmpty(
    select: Select,
    {
      keys,
      value,
      before,
    }: { readonly keys: readonly Value[]; readonly value: Fill["value"]; readonly before: Group | undefined },
  ): Group["read"] {
    const read = (written: Operand): Value => {
      const operand = aliased(written, select);
      const key = select.groupBy.findIndex((one) => printOperand(one) === printOperand(operand));
      if (key >= 0) return keys[key] ?? null;
      if (operand.kind === "field") return null;
      if (operand.kind !== "call") return this.#computed(operand, read);
      if (value === "previous") return before?.read(operand) ?? null;
      return value.kind === "number" && typeOf(operand) === "number" ? Number(value.text) : null;
    };
    return read;
  }

  #ofGroup(value: Operand, members: readonly Env[]): Value {
    const [first] = members;
    if (value.kind !== "call" && partsOf(value).some((part) => part.kind === "call") && value.kind !== "field")
      return this.#computed(value, (part) => this.#ofGroup(part, members));
    if (value.kind !== "call") return (first && this.#read(value, first)) ?? null;
    const { argument } = value;
    if (!argument) return members.length;
    const known = members
      .map((env) => ({ value: this.#read(argument, env) ?? null, ms: Object.values(env)[0]?.writtenMs ?? 0 }))
      .filter((one) => one.value !== null);
    const parameter = value.step === undefined ? undefined : Number(plain(value.step));
    const chosen = value.distinct ? [...new Map(known.map((one) => [one.value, one])).values()] : known;
    return aggregate(value.name, chosen, parameter);
  }

  #truth(condition: Condition, read: (operand: Field | Call) => Value | undefined): Truth {
    switch (condition.kind) {
      case "and":
      case "or": {
        const decided = condition.kind === "or";
        const truths = condition.items.map((item) => this.#truth(item, read));
        return truths.includes(decided) ? decided : truths.includes(undefined) ? undefined : !decided;
      }
      case "not":
        return opposite(this.#truth(condition.operand, read));
      case "inSelect":
        return this.#amongFound(condition, condition.operand.kind === "field" ? read(condition.operand) : undefined);
      default:
        return leafTruth(condition, (operand) =>
          operand.kind === "field" || operand.kind === "call" ? read(operand) : this.#computed(operand, read),
        );
    }
  }
}

/** The class of a SELECT result, which has columns only. */
const ANSWER: PlainClass = { path: "", label: "", columns: new Set() };
const ALL: NumberNode = { kind: "number", text: "-1", span: { start: 0, end: 0 } };

/** A group: the values of its keys, and of expressions over the group. */
interface Group {
  readonly keys: readonly Value[];
  readonly read: (value: Operand) => Value;
}

function conjuncts(where: Condition | undefined): readonly Condition[] {
  return where?.kind === "and" ? where.items.flatMap(conjuncts) : where ? [where] : [];
}

/** Bounds on the time field in a condition. */
function boundsOf(condition: Condition, field: string): readonly (readonly ["from" | "to", number])[] {
  if (condition.kind === "between" && !condition.negated && printOperand(condition.operand) === field)
    return [
      ["from", Number(plain(condition.low))],
      ["to", Number(plain(condition.high))],
    ];
  if (condition.kind !== "compare" || printOperand(condition.left) !== field) return [];
  const timeMs = Number(plain(condition.right));
  if (condition.operator.startsWith(">")) return [["from", timeMs]];
  return condition.operator.startsWith("<") ? [["to", condition.operator === "<" ? timeMs - 1 : timeMs]] : [];
}

interface Made {
  readonly row: Row;
  readonly keys: readonly Value[];
}

type Leaf = Exclude<Condition, { kind: "and" | "or" | "not" | "inSelect" }>;

function leafTruth(condition: Leaf, read: (operand: Operand) => Value | undefined): Truth {
  if (condition.kind === "relate") return relatedTruth(condition, read);
  const operand = condition.kind === "compare" ? condition.left : condition.operand;
  const own = read(wholeOf(operand));
  if (own === undefined) return undefined;
  if (condition.kind === "isNull") return (own === null) !== condition.negated;
  if (own === null) return undefined;
  const negated = condition.kind !== "compare" && condition.negated;
  return choicesOf(operand, own).some((one) => affirmed(condition, one) !== negated);
}

function relatedTruth({ operator, left, right }: Relate, read: (operand: Operand) => Value | undefined): Truth {
  const [first, second] = [read(wholeOf(left)) ?? null, read(wholeOf(right)) ?? null];
  if (first === null || second === null) return undefined;
  return choicesOf(left, first).some((a) => choicesOf(right, second).some((b) => compared(operator, a, b)));
}

/** The argument of `any()`, or the operand itself. */
function wholeOf(operand: Operand): Operand {
  return (isAny(operand) && operand.operands[0]) || operand;
}

/** The values of which at least one must satisfy the condition. */
function choicesOf(operand: Operand, value: Value): readonly Value[] {
  return isAny(operand) ? Object.values(value ?? {}) : [value];
}

function affirmed(condition: Exclude<Leaf, { kind: "isNull" | "relate" }>, own: Value): boolean {
  const held = heldBy(own);
  switch (condition.kind) {
    case "in":
      return condition.values.some((value) => held.includes(plain(value)));
    case "contains":
      return typeof own === "string"
        ? own.includes(String(plain(condition.value)))
        : held.includes(plain(condition.value));
    case "like":
      return held.some((one) =>
        new RegExp(`^${String(plain(condition.pattern)).replaceAll("*", ".*")}$`).test(String(one)),
      );
    case "between":
      return isOrdered(plain(condition.low), own) && isOrdered(own, plain(condition.high));
    case "textMatch":
      return matches(condition.operator, held.map(String), String(plain(condition.value)));
    case "compare":
      return compared(condition.operator, own, plain(condition.right));
  }
}

function compared(operator: string, own: Value, wanted: Value): boolean {
  if (operator === "=" || operator === "!=") return heldBy(own).includes(wanted) === (operator === "=");
  if (operator === "<") return !isOrdered(wanted, own);
  if (operator === ">") return !isOrdered(own, wanted);
  return operator === "<=" ? isOrdered(own, wanted) : isOrdered(wanted, own);
}

/** At least one of several texts must match. */
function matches(operator: string, texts: readonly string[], wanted: string): boolean {
  const words = wanted.split(" ");
  return texts.some((text) => {
    const found = text.split(" ");
    const last = words.at(-1) ?? "";
    switch (operator) {
      case "MATCH":
        return words.every((word) =>
          found.some((one) => (word.endsWith("*") ? one.startsWith(word.slice(0, -1)) : one === word)),
        );
      case "PHRASE":
        return ` ${text} `.includes(` ${wanted} `);
      case "PREFIX":
        return found.some(
          (one, at) =>
            one.startsWith(last) &&
            words.slice(0, -1).every((word, before) => found[at - words.length + 1 + before] === word),
        );
      default:
        return words.every((word) => found.some((one) => changesBetween(word, one) <= Math.min(2, word.length - 1)));
    }
  });
}

/** Optimal string alignment distance, by its recursive definition. */
function changesBetween(left: string, right: string): number {
  if (left === "" || right === "") return left.length + right.length;
  const [a, b] = [left.at(-1), right.at(-1)];
  const [l, r] = [left.slice(0, -1), right.slice(0, -1)];
  const swapped =
    left.length > 1 && right.length > 1 && a === right.at(-2) && b === left.at(-2)
      ? 1 + changesBetween(left.slice(0, -2), right.slice(0, -2))
      : Infinity;
  return Math.min(
    changesBetween(l, right) + 1,
    changesBetween(left, r) + 1,
    changesBetween(l, r) + (a === b ? 0 : 1),
    swapped,
  );
}

function relationOf([name]: readonly string[]): (typeof RELATIONS)[number] | undefined {
  return RELATIONS.find((type) => type === name);
}

/** Elements of sets, keys of maps. */
function heldBy(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value as readonly Value[];
  return typeof value === "object" && value !== null ? Object.keys(value) : [value];
}

function valueOf(
  row: PlainRow,
  [name = "", member]: readonly string[],
  columns: ReadonlySet<string>,
): Value | undefined {
  const isAnswer = row.class.path === ANSWER.path;
  if (name === "id" && !isAnswer) return row.id;
  if (name === "class" && !isAnswer) return row.class.path;
  if (name === "vtime" && !isAnswer) return row.writtenMs;
  if (!isAnswer && !columns.has(name)) return undefined;
  const value = row.values[name] ?? null;
  if (member === undefined) return value;
  return value === null ? null : ((value as Row)[member] ?? null);
}

function plain(node: ValueNode): Value {
  if (node.kind === "number") return Number(node.text);
  if (node.kind === "constant") return node.value;
  const text = node.kind === "text" ? node.value : "";
  return /^\d{4}-\d\d-\d\d /.test(text) ? Date.parse(`${text.replace(" ", "T")}Z`) : text;
}

function isSame(left: Value | undefined, right: Value | undefined): boolean {
  return left !== undefined && left !== null && left === right;
}

function isOrdered(left: Value, right: Value): boolean {
  return order(left, right) <= 0;
}

/** The rows in the order of ORDER BY; equal rows keep their order. */
export function inOrder({
  rows,
  keys,
  descending,
}: Expected): readonly { readonly row: Row; readonly keys: readonly Value[] }[] {
  return rows
    .map((row, at) => ({ row, keys: keys[at] ?? [] }))
    .sort((left, right) => {
      for (const [at, isDescending] of descending.entries()) {
        const result = order(left.keys[at] ?? null, right.keys[at] ?? null);
        if (result !== 0) return isDescending ? -result : result;
      }
      return 0;
    });
}

function opposite(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}

function nameOf(value: Operand): string {
  if (value.kind === "field") return value.parts.join(".");
  if (value.kind !== "call") return printOperand(value);
  return value.name === "count" && !value.argument ? "count" : `system.${printCall(value)}`;
}

/** The expression of a select item that is named by its alias or its position. */
function aliased(value: Operand, { items }: Select): Operand {
  const placed = value.kind === "number" ? items[Number(value.text) - 1] : undefined;
  if (placed?.kind === "item") return placed.value;
  const item = items.find(
    (one): one is Item =>
      one.kind === "item" && value.kind === "field" && value.parts.length === 1 && one.alias === value.parts[0],
  );
  return item ? item.value : value;
}

function set(row: Row, name: string, value: Value | undefined): void {
  if (value !== undefined) row[name] = value;
}

function distinct(made: readonly Made[]): readonly Made[] {
  return [...new Map(made.toReversed().map((one) => [rowText(one.row), one])).values()];
}

/** Independent of the order of members. */
export function rowText(row: Row): string {
  return JSON.stringify(
    Object.entries(row)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, value]) => [name, unordered(value)]),
  );
}

/** Removes differences in sums of fractions that come from the order of additions. */
function unordered(value: Value): Value {
  if (typeof value === "number") return Number.isInteger(value) ? value : Math.round(value * 1e9) / 1e9;
  if (Array.isArray(value)) return (value as readonly Value[]).map(unordered);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value).sort() : value;
}

function arranged(
  made: readonly Made[],
  orderBy: readonly OrderItem[],
): Pick<Expected, "rows" | "keys" | "descending"> {
  return {
    rows: made.map((one) => one.row),
    keys: made.map((one) => one.keys),
    descending: orderBy.map((item) => item.descending),
  };
}

function windowOf(
  { limit, offset }: Pick<Select, "limit" | "offset">,
  isGrouped: boolean,
): Pick<Expected, "offset" | "limit"> {
  const count = limit ? Number(plain(limit as ValueNode)) : isGrouped ? -1 : 100;
  return { offset: offset ? Number(plain(offset as ValueNode)) : 0, limit: count === -1 ? Infinity : count };
}
