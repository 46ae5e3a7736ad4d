import type { ClassRef, Count, Placeholder, ValueNode } from "../../../../common/mql/index.ts";
import type { Chance } from "./chance.ts";

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
const PATHS = ["/a", "/matrix/ent/box", "/库/主机", "/a/1b/_"];
export const TEXTS = ["", "v", "it's", '"', "\\", "中文 ；", "a\nb", "--", "#", "/* */", "`", "''", "end"];

/** Random trees: values, names, placeholders and classes. */
export class ValueTrees {
  readonly #chance: Chance;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  value(depth: number): ValueNode {
    const makers: readonly (() => ValueNode)[] = [
      () => ({ kind: "text", value: this.#chance.pick(TEXTS), span }),
      () => ({
        kind: "number",
        text: this.#chance.pick(["0", "-1", "1.50", "12345678901234567890", "1e5", "-2.5e-3"]),
        span,
      }),
      () => ({ kind: "constant", value: this.#chance.pick([true, false, null]), span }),
      () => this.placeholder(),
      () => ({ kind: "list", items: this.#chance.some(0, 3, () => this.value(depth - 1)), span }),
      () => this.map(depth),
    ];
    return this.#chance.pick(depth > 0 ? makers : makers.slice(0, 4))();
  }

  map(depth: number): Extract<ValueNode, { kind: "map" }> {
    return {
      kind: "map",
      entries: this.#chance.some(0, 3, () => ({
        kind: "entry" as const,
        key: this.#chance.pick(TEXTS),
        value: this.value(depth - 1),
        span,
      })),
      span,
    };
  }

  /** Its index follows from its position, which only the parser knows. */
  placeholder(): Placeholder {
    return { kind: "placeholder", index: 0, span };
  }

  name(): string {
    return this.#chance.pick(NAMES);
  }

  tag(): string {
    return this.#chance.pick(["m", "p", "主机"]);
  }

  class(): ClassRef {
    return { kind: "class", path: this.#chance.pick(PATHS), subtree: this.#chance.coin(), alias: undefined, span };
  }

  count(): Count | undefined {
    return this.#chance.maybe(
      (): Count =>
        this.#chance.coin()
          ? this.placeholder()
          : { kind: "number", text: this.#chance.pick(["-1", "0", "100"]), span },
    );
  }
}
