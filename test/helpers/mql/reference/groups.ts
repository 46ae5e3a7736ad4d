import {
  type Condition,
  type Fill,
  type Operand,
  partsOf,
  printOperand,
  type Select,
} from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { aggregate, stepOf } from "../definitions.ts";
import { typeOf } from "../types.ts";
import { aliased, type Made, nameOf } from "./answers.ts";
import type { Evaluator } from "./evaluator.ts";
import type { Env } from "./rows.ts";
import { plain } from "./truth.ts";
import type { ReadRow } from "./windows.ts";

/** A group: the values of its keys, and of expressions over the group. */
interface Group {
  readonly keys: readonly Value[];
  readonly read: (value: Operand) => Value;
}

/** GROUP BY, FILL and HAVING over lists of rows. */
export class Groups {
  readonly #evaluator: Evaluator;
  readonly #read: ReadRow;

  constructor(evaluator: Evaluator, read: ReadRow) {
    this.#evaluator = evaluator;
    this.#read = read;
  }

  made(select: Select, envs: readonly Env[]): readonly Made[] {
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
      (group) => !select.having || this.#evaluator.truth(select.having, group.read) === true,
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
      if (operand.kind !== "call") return this.#evaluator.computed(operand, read);
      if (value === "previous") return before?.read(operand) ?? null;
      return value.kind === "number" && typeOf(operand) === "number" ? Number(value.text) : null;
    };
    return read;
  }

  #ofGroup(value: Operand, members: readonly Env[]): Value {
    const [first] = members;
    if (value.kind !== "call" && partsOf(value).some((part) => part.kind === "call") && value.kind !== "field")
      return this.#evaluator.computed(value, (part) => this.#ofGroup(part, members));
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
