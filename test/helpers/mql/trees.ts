import type {
  Chain,
  ClassOption,
  ClassRef,
  ColumnDefinition,
  Condition,
  Count,
  Expression,
  Field,
  GraphNode,
  Operand,
  Placeholder,
  Select,
  SelectItem,
  Source,
  Statement,
  Tail,
  Union,
  ValueNode,
  WindowItem,
} from "../../../common/mql/index.ts";
import type { Random } from "../../../common/time.ts";

const span = { start: 0, end: 0 };
const NAMES = [
  "host",
  "a",
  "size_1",
  "主机",
  "a b",
  "group",
  "select",
  "limit",
  "x`y",
  "Order",
  "key",
  "set",
  "end",
  "class",
  "1st",
  "path",
];
const TEXTS = ["", "v", "it's", '"', "\\", "中文 ；", "a\nb", "--", "#", "/* */", "`", "''", "end"];
const PATHS = ["/a", "/matrix/ent/box", "/库/主机", "/a/1b/_"];
const OPEN: Tail = { orderBy: [], limit: undefined, offset: undefined, cursor: undefined };
const COMPARE = ["=", "!=", ">", "<", ">=", "<="] as const;

/** Random statements: all constructs of the language, combined without regard to meaning. */
export class TreeGenerator {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  statement(depth = 2): Statement {
    const makers: readonly (() => Statement)[] = [
      () => this.#select(),
      () => this.#union(),
      () => ({ kind: "selectEdgeTypes", span }),
      () => this.#insert(),
      () => ({
        kind: "insertJson",
        json: this.#coin() ? this.#placeholder() : { kind: "text", value: this.#pick(TEXTS), span },
        span,
      }),
      () => this.#update(),
      () => ({
        kind: "delete",
        column: this.#maybe(() => this.#name()),
        class: this.#class(),
        where: this.#where(),
        limit: this.#count(),
        withVersion: this.#coin(),
        span,
      }),
      () => this.#definition(),
      () => this.#match(),
    ];
    if (depth > 0 && this.#next() < 0.15)
      return { kind: "batch", statements: this.#some(0, 3, () => this.statement(depth - 1)), span };
    if (depth > 0 && this.#next() < 0.1)
      return { kind: "explain", analyzes: this.#next() < 0.3, statement: this.statement(depth - 1), span };
    return this.#pick(makers)();
  }

  condition(depth: number): Condition {
    if (depth > 0 && this.#next() < 0.6) {
      const kind = this.#pick(["and", "or", "not"] as const);
      if (kind === "not") return { kind, operand: this.condition(depth - 1), span };
      return { kind, items: this.#some(2, 4, () => this.condition(depth - 1)), span };
    }
    return this.#leaf();
  }

  #leaf(): Condition {
    const negated = this.#coin();
    const operand = this.#operand();
    const makers: readonly (() => Condition)[] = [
      () => ({ kind: "compare", operator: this.#pick(COMPARE), left: operand, right: this.#value(2), span }),
      () => ({ kind: "relate", operator: this.#pick(COMPARE), left: operand, right: this.#related(), span }),
      () => ({ kind: "in", operand, values: this.#some(0, 3, () => this.#value(1)), negated, span }),
      () => ({ kind: "like", operand, pattern: this.#value(0), negated, span }),
      () => ({ kind: "between", operand, low: this.#value(0), high: this.#value(0), negated, span }),
      () => ({ kind: "isNull", operand, negated, span }),
      () => ({ kind: "contains", operand, value: this.#value(2), negated, span }),
      () => ({
        kind: "textMatch",
        operator: this.#pick(["MATCH", "PHRASE", "PREFIX", "FUZZY"]),
        operand,
        value: this.#value(0),
        negated,
        span,
      }),
    ];
    return this.#pick(makers)();
  }

  /** Allowed in conditions of statements, but not in separate conditions. */
  #inSelect(): Condition {
    const select = { ...this.#select(), cursor: undefined };
    return { kind: "inSelect", operand: this.#field(), select, negated: this.#coin(), span };
  }

  #window(): WindowItem {
    const name = this.#pick(["lag", "row_number", "count", "sum"] as const);
    const operands = name === "lag" ? this.#some(1, 2, () => this.#single(1)) : name === "sum" ? [this.#field()] : [];
    const orderBy = this.#some(0, 2, () => ({
      kind: "order" as const,
      value: this.#single(1),
      descending: this.#coin(),
      span,
    }));
    const partitionBy = this.#some(0, 2, () => this.#single(1));
    return { kind: "window", name, operands, partitionBy, orderBy, alias: this.#maybe(() => this.#name()), span };
  }

  #source(): Source {
    if (this.#next() < 0.95) return this.#class();
    const select = this.#coin() ? this.#select() : this.#union();
    return { kind: "selected", select: { ...select, cursor: undefined }, alias: undefined, span };
  }

  #union(): Union {
    const selects = this.#some(2, 3, () => ({ ...this.#select(), ...OPEN }));
    const tail = this.#tail();
    // Directly after the class of the last part it would belong to that part only.
    const asOf = tail.limit ? this.#asOf() : undefined;
    return { kind: "union", all: this.#coin(), selects, ...tail, asOf, span };
  }

  #select(): Select {
    const joins = this.#some(0, 1, () => ({
      kind: "join" as const,
      outer: this.#coin(),
      class: { ...this.#source(), alias: this.#name() },
      left: this.#field(),
      right: this.#field(),
      span,
    }));
    const groupBy = this.#some(0, 2, () => this.#single(1));
    const filling = this.#pick([
      "previous",
      { kind: "constant", value: null, span },
      { kind: "number", text: "0", span },
    ] as const);
    const fill = groupBy.length > 0 && this.#coin() ? { fill: { kind: "fill" as const, value: filling, span } } : {};
    return {
      kind: "select",
      distinct: this.#coin(),
      items: this.#some(1, 4, () => (this.#next() < 0.1 ? this.#window() : this.#item())),
      from: { ...this.#source(), alias: this.#maybe(() => this.#name()) },
      joins,
      asOf: this.#asOf(),
      where: this.#where(),
      groupBy,
      ...fill,
      having: this.#where(),
      ...this.#tail(),
      span,
    };
  }

  #tail(): Tail {
    return {
      orderBy: this.#some(0, 2, () => ({
        kind: "order" as const,
        value: this.#single(1),
        descending: this.#coin(),
        span,
      })),
      limit: this.#count(),
      offset: this.#count(),
      cursor: this.#maybe(() =>
        this.#coin() ? this.#placeholder() : { kind: "text" as const, value: this.#pick(TEXTS), span },
      ),
    };
  }

  #asOf(): ValueNode | undefined {
    return this.#maybe((): ValueNode => ({ kind: "text", value: this.#pick(TEXTS), span }));
  }

  #insert(): Statement {
    const columns = this.#some(1, 3, () => this.#name());
    const form = this.#pick(["set", "values"] as const);
    const row = () => columns.map(() => this.#value(2));
    return {
      kind: "insert",
      class: this.#class(),
      form,
      columns,
      rows: form === "set" ? [row()] : this.#some(1, 3, row),
      at: this.#maybe(() => this.#value(0)),
      span,
    };
  }

  #update(): Statement {
    const assignments = this.#some(1, 3, () => {
      const operation = this.#pick(["set", "add", "take"] as const);
      const value = operation === "set" && this.#coin() ? this.#assigned() : this.#value(2);
      return { kind: "assignment" as const, column: this.#name(), operation, value, span };
    });
    return { kind: "update", class: this.#class(), assignments, where: this.#where(), refresh: this.#coin(), span };
  }

  /** After a name, a negative number would be read as a difference. */
  #assigned(): Operand {
    return { kind: "computed", name: "lower", operands: [this.#operand(1)], span };
  }

  #definition(): Statement {
    const target = this.#class();
    const name = this.#name();
    const type = this.#maybe(() => "text");
    const makers: readonly (() => Statement)[] = [
      () => ({
        kind: "createClass",
        ifNotExists: this.#coin(),
        class: target,
        columns: this.#some(0, 3, () => this.#column()),
        keys: this.#some(0, 2, () => this.#name()),
        indexes: this.#some(0, 2, () => this.#name()),
        options: this.#some(0, 2, () => this.#option()),
        span,
      }),
      () => ({ kind: "dropClass", ifExists: this.#coin(), class: target, span }),
      () => ({
        kind: "createEdgeType",
        ifNotExists: this.#coin(),
        name: this.#pick(TEXTS),
        remedy: this.#maybe(() => this.#pick(TEXTS)),
        span,
      }),
      () => ({ kind: "dropEdgeType", ifExists: this.#coin(), name: this.#pick(TEXTS), span }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: "addColumn", column: this.#column(), span },
        span,
      }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: this.#pick(["dropColumn", "addKey", "dropKey"]), name, span },
        span,
      }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: this.#pick(["addIndex", "dropIndex"]), name, type, span },
        span,
      }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: "setOptions", options: this.#some(1, 2, () => this.#option()), span },
        span,
      }),
    ];
    return this.#pick(makers)();
  }

  #column(): ColumnDefinition {
    const details = this.#maybe(() => this.#map(1));
    return {
      kind: "column",
      name: this.#name(),
      type: this.#pick(["varchar", "set", "enum"]),
      elements: this.#some(0, 2, () => "int"),
      details,
      title: this.#maybe(() => this.#pick(TEXTS)),
      span,
    };
  }

  #option(): ClassOption {
    const value = this.#value(0);
    const unit = value.kind === "number" ? this.#maybe(() => "day") : undefined;
    return { kind: "option", name: this.#pick(["ttl", "key", "limit", "kind"]), value, unit, span };
  }

  #match(): Statement {
    const pathMode = this.#maybe(() => this.#pick(["short", "long", "all", "detail", "back", "any"] as const));
    return {
      kind: "match",
      chains: this.#some(1, 2, () => this.#chain()),
      where: this.#where(),
      pathMode,
      pathTags: pathMode ? this.#some(0, 2, () => this.#tag()) : [],
      returns: this.#some(0, 2, () => this.#name()),
      until: this.#maybe(() => this.#pick(TEXTS)),
      diff: this.#maybe(() => this.#value(0)),
      asOf: this.#asOf(),
      span,
    };
  }

  #chain(): Chain {
    const steps = this.#some(0, 2, () => ({
      kind: "step" as const,
      direction: this.#pick(["out", "in", "both"] as const),
      type: this.#maybe(() => this.#pick(["contain", "net.link"])),
      depth: this.#pick([1, 3, "any"] as const),
      node: this.#graphNode(),
      span,
    }));
    return { kind: "chain", start: this.#graphNode(), steps, span };
  }

  #graphNode(): GraphNode {
    const ids = this.#some(0, 2, () => this.#pick(["box:1", "box:*"]));
    const label = ids.length > 0 ? undefined : this.#maybe(() => this.#pick(["box", "/a/b", "/a/"]));
    return {
      kind: "node",
      name: this.#maybe(() => this.#tag()),
      ids,
      class: label,
      where: this.#where(),
      limit: this.#count(),
      span,
    };
  }

  #item(): SelectItem {
    if (this.#next() < 0.2) return { kind: "star", alias: this.#maybe(() => this.#name()), span };
    return {
      kind: "item",
      value: this.#coin() ? this.#call() : this.#operand(2),
      alias: this.#maybe(() => this.#name()),
      span,
    };
  }

  #call(): Extract<Operand, { kind: "field" | "call" }> {
    if (this.#next() < 0.7) return this.#field();
    const argument = this.#maybe(() => (this.#coin() ? this.#field() : this.#expression(1)));
    const step = argument && this.#coin() ? { step: { kind: "text" as const, value: this.#pick(TEXTS), span } } : {};
    return {
      kind: "call",
      name: this.#pick(["count", "max", "top"]),
      distinct: argument !== undefined && this.#coin(),
      argument,
      ...step,
      span,
    };
  }

  /** The right side of a comparison that is no literal. A field there is in brackets. */
  #related(): Operand {
    return this.#coin() ? this.#field() : this.#expression(2);
  }

  #single(depth: number): Operand {
    return this.#coin() ? this.#field() : this.#expression(depth);
  }

  #operand(depth = 1): Operand {
    if (this.#next() < 0.15) return this.#value(0);
    return depth > 0 && this.#next() < 0.3 ? this.#expression(depth) : this.#call();
  }

  #expression(depth: number): Expression {
    const operand = (): Operand => this.#operand(depth - 1);
    const type: ValueNode = { kind: "text", value: this.#pick(["int", "text", "a b"]), span };
    const makers: readonly (() => Expression)[] = [
      () => ({
        kind: "computed",
        name: this.#pick(["+", "-", "*", "/", "||"]),
        operands: [operand(), operand()],
        span,
      }),
      () => ({ kind: "computed", name: "-", operands: [this.#coin() ? this.#field() : this.#call()], span }),
      () => ({
        kind: "computed",
        name: this.#pick(["lower", "now", "contains", "any"]),
        operands: this.#some(0, 3, operand),
        span,
      }),
      () => ({ kind: "computed", name: "cast", operands: [operand(), type], span }),
      () => ({
        kind: "case",
        branches: this.#some(1, 2, () => ({ when: this.condition(0), then: operand() })),
        otherwise: this.#maybe(operand),
        span,
      }),
      () => ({ kind: "truth", condition: this.condition(Math.max(0, depth - 1)), span }),
    ];
    return this.#pick(makers)();
  }

  #field(): Field {
    const parts = this.#some(1, 3, () => this.#name());
    if (this.#next() < 0.8) return { kind: "field", parts, span };
    const window = {
      kind: "window" as const,
      from: this.#maybe(() => this.#value(0)),
      to: this.#maybe(() => this.#value(0)),
      span,
    };
    return { kind: "field", parts, window, span };
  }

  #class(): ClassRef {
    return { kind: "class", path: this.#pick(PATHS), subtree: this.#coin(), alias: undefined, span };
  }

  #where(): Condition | undefined {
    return this.#maybe(() => (this.#next() < 0.2 ? this.#inSelect() : this.condition(2)));
  }

  #count(): Count | undefined {
    return this.#maybe(
      (): Count =>
        this.#coin() ? this.#placeholder() : { kind: "number", text: this.#pick(["-1", "0", "100"]), span },
    );
  }

  #value(depth: number): ValueNode {
    const makers: readonly (() => ValueNode)[] = [
      () => ({ kind: "text", value: this.#pick(TEXTS), span }),
      () => ({ kind: "number", text: this.#pick(["0", "-1", "1.50", "12345678901234567890", "1e5", "-2.5e-3"]), span }),
      () => ({ kind: "constant", value: this.#pick([true, false, null]), span }),
      () => this.#placeholder(),
      () => ({ kind: "list", items: this.#some(0, 3, () => this.#value(depth - 1)), span }),
      () => this.#map(depth),
    ];
    return this.#pick(depth > 0 ? makers : makers.slice(0, 4))();
  }

  #map(depth: number): Extract<ValueNode, { kind: "map" }> {
    return {
      kind: "map",
      entries: this.#some(0, 3, () => ({
        kind: "entry" as const,
        key: this.#pick(TEXTS),
        value: this.#value(depth - 1),
        span,
      })),
      span,
    };
  }

  /** Its index follows from its position, which only the parser knows. */
  #placeholder(): Placeholder {
    return { kind: "placeholder", index: 0, span };
  }

  #name(): string {
    return this.#pick(NAMES);
  }

  #tag(): string {
    return this.#pick(["m", "p", "主机"]);
  }

  #some<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + Math.floor(this.#next() * (most - least + 1)) }, make);
  }

  #maybe<T>(make: () => T): T | undefined {
    return this.#coin() ? make() : undefined;
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#next() * choices.length)] as T;
  }

  #coin(): boolean {
    return this.#next() < 0.5;
  }

  #next(): number {
    return this.#random.next();
  }
}
