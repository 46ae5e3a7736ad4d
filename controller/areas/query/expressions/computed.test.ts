import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { isAppError } from "../../../../common/errors.ts";
import { QUERY_FUNCTION_TEXT_MAX_CHARACTERS } from "../../../../common/limits.ts";
import {
  type Condition,
  NOWHERE,
  type Operand,
  parseConditionText,
  parseScript,
  printOperand,
  valueNode,
} from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { arithmetic } from "./arithmetic.ts";
import { CAST_TYPES } from "./cast.ts";
import { FUNCTIONS } from "./functions/functions.ts";
import { ANY, BOOLEAN, DATE, type Kind, kindOf, LIST_OF_TEXT, NUMBER, TEXT, TIME, toComparable } from "./kind.ts";
import { compileOperand, type PredicateContext } from "./predicate.ts";
import { settled } from "./settled.ts";
import type { Source } from "./source.ts";

interface Column {
  readonly kind: Kind;
  readonly values: readonly Value[];
}

/** A column of each kind, with values that are hard to compute with. */
const COLUMNS: Readonly<Record<string, Column>> = {
  number: {
    kind: NUMBER,
    values: [0, -1, 1.5, 1e308, -1e308, 5e-324, "9007199254740993", "-99999999999999999999", null],
  },
  text: {
    kind: TEXT,
    values: ["", "12", "x", "a b a", "😀", "(", "\\d+", "5 minutes", "2026-02-30", "x".repeat(5_000), null],
  },
  boolean: { kind: BOOLEAN, values: [true, false, null] },
  time: { kind: TIME, values: [0, -1, 8.64e15, -8.64e15, 1.7e12, null] },
  date: { kind: DATE, values: ["2026-02-28", "0000-01-01", null] },
  list: { kind: LIST_OF_TEXT, values: [[], ["a"], ["a", "b", "1"], null] },
  map: {
    kind: kindOf({ type: "map", elements: ["varchar", "int"] }),
    values: [{}, { a: 1 }, { __proto__x: 2, a: null }, null],
  },
  any: { kind: ANY, values: [1, "1", true, [1], { a: 1 }, null] },
};

type Row = Readonly<Record<string, Value>>;

const CONTEXT: PredicateContext<Row> = {
  values: [],
  resolve(operand) {
    const name = operand.kind === "field" ? (operand.parts[0] ?? "") : "";
    const kind = COLUMNS[name]?.kind ?? ANY;
    return { label: name, kinds: [kind], kind: () => kind, read: (row) => row[name] ?? null };
  },
};

const CONSTANTS: readonly Value[] = [0, 2, -3, 0.5, "", "a", "a+", "1 hour", "2026-01-01 00:00:00", true, null];
const SIGNS = ["+", "-", "*", "/", "||", "coalesce"];

class Expressions {
  readonly #random: { next(): number };

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random.next() * items.length)] as T;
  }

  operand(depth: number): Operand {
    if (depth === 0 || this.#random.next() < 0.3)
      return this.#random.next() < 0.3
        ? valueNode(this.pick(CONSTANTS))
        : { kind: "field", parts: [this.pick(Object.keys(COLUMNS))], span: NOWHERE };
    const next = (): Operand => this.operand(depth - 1);
    const name = this.pick([...SIGNS, "cast", "case", ...Object.keys(FUNCTIONS)]);
    if (name === "cast") return computed(name, [next(), valueNode(this.pick(CAST_TYPES))]);
    if (name === "case") {
      const when = parseConditionText(this.pick(["number > 1", "text like 'a*'", "boolean = true", "map is null"]));
      return { kind: "case", branches: [{ when, then: next() }], otherwise: next(), span: NOWHERE };
    }
    const { accepts = ["any", "any"], least = accepts.length } = FUNCTIONS[name] ?? {};
    const count = least + Math.floor(this.#random.next() * (accepts.length - least + 1));
    return computed(name, Array.from({ length: count }, next));
  }
}

function computed(name: string, operands: readonly Operand[]): Operand {
  return { kind: "computed", name, operands, span: NOWHERE };
}

/** A row for each place of the columns' values. */
const ROWS: readonly Row[] = Array.from({ length: 11 }, (_, at) =>
  Object.fromEntries(Object.entries(COLUMNS).map(([name, { values }]) => [name, values[at % values.length] ?? null])),
);

/** Scalars of a kind are comparable as that kind; lists and maps are lists and maps. */
function isOfKind(kind: Kind, value: Value): boolean {
  if (kind.type === "list") return Array.isArray(value);
  if (kind.type === "map") return typeof value === "object" && !Array.isArray(value);
  return kind.type === "any" || toComparable(kind, value) !== undefined;
}

test.each([1, 2, 3, 4])(
  "what planning accepts never fails for its type, and is of the kind it says (seed %i)",
  (seed) => {
    const expressions = new Expressions(seed);
    let accepted = 0;
    for (let round = 0; round < 2_500; round += 1) {
      const operand = expressions.operand(3);
      const told = `seed ${seed} round ${round}: ${printOperand(operand)}`;
      const source = planned(operand, told);
      if (!source) continue;
      accepted += 1;
      for (const row of ROWS) {
        const value = source.read(row);
        if (value === undefined || value === null) continue;
        const kind = source.kind(row);
        expect(source.kinds, told).toContain(kind);
        expect(isOfKind(kind, value), `${told} is ${JSON.stringify(value).slice(0, 100)} and no ${kind.type}`).toBe(
          true,
        );
        if (typeof value === "number") expect(Number.isFinite(value), told).toBe(true);
      }
    }
    expect(accepted).toBeGreaterThan(500);
  },
);

function planned(operand: Operand, told: string) {
  try {
    return compileOperand(operand, CONTEXT);
  } catch (error) {
    if (isAppError(error, "invalid")) return undefined;
    throw new Error(told, { cause: error });
  }
}

test("a text that grows beyond what texts may be is null", () => {
  const long = valueNode("a".repeat(2_000));
  const replaced = computed("replace", [long, valueNode("a"), valueNode("b".repeat(2_000))]);
  const joined = computed("||", Array<Operand>(600).fill(long));
  expect(compileOperand(replaced, CONTEXT).read({})).toBeNull();
  expect(compileOperand(joined, CONTEXT).read({})).toBeNull();
});

test("what functions read and make for one row is bounded, and every row begins anew", () => {
  const text = "a".repeat(QUERY_FUNCTION_TEXT_MAX_CHARACTERS);
  const once = compileOperand(computed("upper", [valueNode(text)]), CONTEXT);
  const often = compileOperand(
    computed("coalesce", [
      computed("regexp_match", [computed("concat", Array<Operand>(3).fill(valueNode(text))), valueNode("b")]),
    ]),
    CONTEXT,
  );
  for (const row of ROWS) expect(once.read(row)).toBe(text.toUpperCase());
  const row = {};
  once.read(row);
  once.read(row);
  expect(() => once.read(row)).toThrow(expect.objectContaining({ code: "too_large" }));
  expect(() => often.read({})).not.toThrow();
});

test("what a statement computes before any row is bounded as that of one row", () => {
  const text = "a".repeat(QUERY_FUNCTION_TEXT_MAX_CHARACTERS);
  const [statement] = parseScript(
    `select k from /a where ${Array.from({ length: 3 }, () => `k = upper(?)`).join(" or ")}`,
  ).statements;
  if (statement?.kind !== "select") throw new Error("a SELECT was written");
  const present = { nowMs: 0, values: [text, "a", "b"] };
  expect(() => settled(statement, present)).not.toThrow();
  expect(() => settled(statement, { ...present, values: [text, text, text] })).toThrow(
    expect.objectContaining({ code: "too_large" }),
  );
});

test.each([
  ["coalesce", (inner: Operand) => computed("coalesce", [inner, valueNode("x")])],
  [
    "CASE",
    (inner: Operand): Operand => {
      const when: Condition = { kind: "compare", operator: "!=", left: inner, right: valueNode("y"), span: NOWHERE };
      return { kind: "case", branches: [{ when, then: valueNode(1) }], otherwise: valueNode("x"), span: NOWHERE };
    },
  ],
])("%s reads each of its operands once for a row, however deep it stands in others", (_, around) => {
  let reads = 0;
  const context: PredicateContext<object> = {
    values: [],
    resolve: () => {
      return { label: "f", kinds: [TEXT, NUMBER], kind: () => TEXT, read: () => `${(reads += 1)}` };
    },
  };
  const field: Operand = { kind: "field", parts: ["f"], span: NOWHERE };
  const source = compileOperand(Array.from({ length: 20 }).reduce<Operand>(around, field), context);
  for (const row of [{}, {}]) {
    reads = 0;
    expect(source.read(row)).not.toBeNull();
    source.kind(row);
    expect(reads).toBe(1);
  }
});

test("a time beside a column that no class here has may be a difference as well as a time", () => {
  const of = (kinds: readonly Kind[], label: string): Source<Row> => ({
    ...{ label, kinds, kind: () => kinds[0] ?? ANY, read: () => null },
  });
  const open = arithmetic("-", of([TIME], "t"), of([], "absent"));
  expect(arithmetic("/", open, of([NUMBER], "n")).read({})).toBeNull();
  const known = arithmetic("-", of([TIME], "t"), of([NUMBER], "n"));
  expect(() => arithmetic("/", known, of([NUMBER], "n"))).toThrow(/of times there are differences/);
});

test.each(["date", "cast(text as date)", "cast('2026-03-01' as date)", "coalesce(none, date, time)"])(
  "a zone does not change the day of %s",
  (day) => {
    const row: Row = { date: "2026-03-01", text: "2026-03-01", time: Date.UTC(2026, 2, 1) };
    const answers = (value: string, zone: string): readonly (Value | undefined)[] => {
      const calls = ["year", "month", "day", "hour", "weekday", "time_text"].map(
        (name) => `${name}(${value}, '${zone}')`,
      );
      const [statement] = parseScript(`select ${calls.join(", ")} from /a`).statements;
      if (statement?.kind !== "select") throw new Error("a SELECT was written");
      return statement.items.flatMap((item) =>
        item.kind === "item" ? compileOperand(item.value, CONTEXT).read(row) : [],
      );
    };
    for (const zone of ["America/New_York", "-12:00", "+14:00", "UTC"])
      expect(answers(day, zone)).toEqual([2026, 3, 1, 0, 7, "2026-03-01 00:00:00.000"]);
    for (const moment of ["time", "coalesce(time, date)"])
      expect(answers(moment, "America/New_York")).toEqual([2026, 2, 28, 19, 6, "2026-02-28 19:00:00.000"]);
  },
);
