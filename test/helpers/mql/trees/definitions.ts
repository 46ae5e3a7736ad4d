import type { ClassOption, ColumnDefinition, Statement } from "../../../../common/mql/index.ts";
import type { Chance } from "./chance.ts";
import { TEXTS, type ValueTrees } from "./values.ts";

const span = { start: 0, end: 0 };

/** Random trees: statements that define classes and edge types. */
export class DefinitionTrees {
  readonly #chance: Chance;
  readonly #values: ValueTrees;

  constructor(chance: Chance, values: ValueTrees) {
    this.#chance = chance;
    this.#values = values;
  }

  definition(): Statement {
    const target = this.#values.class();
    const name = this.#values.name();
    const type = this.#chance.maybe(() => "text");
    const makers: readonly (() => Statement)[] = [
      () => ({
        kind: "createClass",
        ifNotExists: this.#chance.coin(),
        class: target,
        columns: this.#chance.some(0, 3, () => this.#column()),
        keys: this.#chance.some(0, 2, () => this.#values.name()),
        indexes: this.#chance.some(0, 2, () => this.#values.name()),
        options: this.#chance.some(0, 2, () => this.#option()),
        span,
      }),
      () => ({ kind: "dropClass", ifExists: this.#chance.coin(), class: target, span }),
      () => ({
        kind: "createEdgeType",
        ifNotExists: this.#chance.coin(),
        name: this.#chance.pick(TEXTS),
        remedy: this.#chance.maybe(() => this.#chance.pick(TEXTS)),
        span,
      }),
      () => ({ kind: "dropEdgeType", ifExists: this.#chance.coin(), name: this.#chance.pick(TEXTS), span }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: "addColumn", column: this.#column(), span },
        span,
      }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: this.#chance.pick(["dropColumn", "addKey", "dropKey"]), name, span },
        span,
      }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: this.#chance.pick(["addIndex", "dropIndex"]), name, type, span },
        span,
      }),
      () => ({
        kind: "alterClass",
        class: target,
        alteration: { kind: "setOptions", options: this.#chance.some(1, 2, () => this.#option()), span },
        span,
      }),
    ];
    return this.#chance.pick(makers)();
  }

  #column(): ColumnDefinition {
    const details = this.#chance.maybe(() => this.#values.map(1));
    return {
      kind: "column",
      name: this.#values.name(),
      type: this.#chance.pick(["varchar", "set", "enum"]),
      elements: this.#chance.some(0, 2, () => "int"),
      details,
      title: this.#chance.maybe(() => this.#chance.pick(TEXTS)),
      span,
    };
  }

  #option(): ClassOption {
    const value = this.#values.value(0);
    const unit = value.kind === "number" ? this.#chance.maybe(() => "day") : undefined;
    return { kind: "option", name: this.#chance.pick(["ttl", "key", "limit", "kind"]), value, unit, span };
  }
}
