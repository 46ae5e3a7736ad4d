import type { Chain, GraphNode, Statement } from "../../../../common/mql/index.ts";
import type { Chance } from "./chance.ts";
import { TEXTS, type ValueTrees } from "./values.ts";
import type { QueryTrees } from "./queries.ts";

const span = { start: 0, end: 0 };

/** Random trees: MATCH. */
export class GraphTrees {
  readonly #chance: Chance;
  readonly #values: ValueTrees;
  readonly #queries: QueryTrees;

  constructor(chance: Chance, values: ValueTrees, queries: QueryTrees) {
    this.#chance = chance;
    this.#values = values;
    this.#queries = queries;
  }

  match(): Statement {
    const pathMode = this.#chance.maybe(() =>
      this.#chance.pick(["short", "long", "all", "detail", "back", "any"] as const),
    );
    return {
      kind: "match",
      chains: this.#chance.some(1, 2, () => this.#chain()),
      where: this.#queries.where(),
      pathMode,
      pathTags: pathMode ? this.#chance.some(0, 2, () => this.#values.tag()) : [],
      returns: this.#chance.some(0, 2, () => this.#values.name()),
      until: this.#chance.maybe(() => this.#chance.pick(TEXTS)),
      diff: this.#chance.maybe(() => this.#values.value(0)),
      asOf: this.#queries.asOf(),
      span,
    };
  }

  #chain(): Chain {
    const steps = this.#chance.some(0, 2, () => ({
      kind: "step" as const,
      direction: this.#chance.pick(["out", "in", "both"] as const),
      type: this.#chance.maybe(() => this.#chance.pick(["contain", "net.link"])),
      depth: this.#chance.pick([1, 3, "any"] as const),
      node: this.#graphNode(),
      span,
    }));
    return { kind: "chain", start: this.#graphNode(), steps, span };
  }

  #graphNode(): GraphNode {
    const ids = this.#chance.some(0, 2, () => this.#chance.pick(["box:1", "box:*"]));
    const label = ids.length > 0 ? undefined : this.#chance.maybe(() => this.#chance.pick(["box", "/a/b", "/a/"]));
    return {
      kind: "node",
      name: this.#chance.maybe(() => this.#values.tag()),
      ids,
      class: label,
      where: this.#queries.where(),
      limit: this.#values.count(),
      span,
    };
  }
}
