import type { Condition, Operand, Statement } from "../../../common/mql/index.ts";
import type { Random } from "../../../common/time.ts";
import { Chance } from "./trees/chance.ts";
import { DefinitionTrees } from "./trees/definitions.ts";
import { ExpressionTrees } from "./trees/expressions.ts";
import { GraphTrees } from "./trees/graph.ts";
import { QueryTrees } from "./trees/queries.ts";
import { TEXTS, ValueTrees } from "./trees/values.ts";

const span = { start: 0, end: 0 };

/** Random statements: all constructs of the language, combined without regard to meaning. */
export class TreeGenerator {
  readonly #chance: Chance;
  readonly #values: ValueTrees;
  readonly #expressions: ExpressionTrees;
  readonly #queries: QueryTrees;
  readonly #graph: GraphTrees;
  readonly #definitions: DefinitionTrees;

  constructor(random: Random) {
    const chance = new Chance(random);
    this.#chance = chance;
    this.#values = new ValueTrees(chance);
    this.#expressions = new ExpressionTrees(chance, this.#values);
    this.#queries = new QueryTrees(chance, this.#values, this.#expressions);
    this.#graph = new GraphTrees(chance, this.#values, this.#queries);
    this.#definitions = new DefinitionTrees(chance, this.#values);
  }

  condition(depth: number): Condition {
    return this.#expressions.condition(depth);
  }

  statement(depth = 2): Statement {
    const makers: readonly (() => Statement)[] = [
      () => this.#queries.select(),
      () => this.#queries.union(),
      () => ({ kind: "selectEdgeTypes", span }),
      () => this.#insert(),
      () => ({
        kind: "insertJson",
        json: this.#chance.coin()
          ? this.#values.placeholder()
          : { kind: "text", value: this.#chance.pick(TEXTS), span },
        span,
      }),
      () => this.#update(),
      () => ({
        kind: "delete",
        column: this.#chance.maybe(() => this.#values.name()),
        class: this.#values.class(),
        where: this.#queries.where(),
        limit: this.#values.count(),
        withVersion: this.#chance.coin(),
        span,
      }),
      () => this.#definitions.definition(),
      () => this.#graph.match(),
    ];
    if (depth > 0 && this.#chance.next() < 0.15)
      return { kind: "batch", statements: this.#chance.some(0, 3, () => this.statement(depth - 1)), span };
    if (depth > 0 && this.#chance.next() < 0.1)
      return { kind: "explain", analyzes: this.#chance.next() < 0.3, statement: this.statement(depth - 1), span };
    return this.#chance.pick(makers)();
  }

  #insert(): Statement {
    const columns = this.#chance.some(1, 3, () => this.#values.name());
    const form = this.#chance.pick(["set", "values"] as const);
    const row = () => columns.map(() => this.#values.value(2));
    return {
      kind: "insert",
      class: this.#values.class(),
      form,
      columns,
      rows: form === "set" ? [row()] : this.#chance.some(1, 3, row),
      at: this.#chance.maybe(() => this.#values.value(0)),
      span,
    };
  }

  #update(): Statement {
    const assignments = this.#chance.some(1, 3, () => {
      const operation = this.#chance.pick(["set", "add", "take"] as const);
      const value = operation === "set" && this.#chance.coin() ? this.#assigned() : this.#values.value(2);
      return { kind: "assignment" as const, column: this.#values.name(), operation, value, span };
    });
    return {
      kind: "update",
      class: this.#values.class(),
      assignments,
      where: this.#queries.where(),
      refresh: this.#chance.coin(),
      span,
    };
  }

  /** After a name, a negative number would be read as a difference. */
  #assigned(): Operand {
    return { kind: "computed", name: "lower", operands: [this.#expressions.operand(1)], span };
  }
}
