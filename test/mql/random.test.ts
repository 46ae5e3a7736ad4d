import { expect, test } from "vitest";
import { type Condition, printCondition, type ValueNode } from "../../common/mql/index.ts";
import type { Random } from "../../common/time.ts";
import type { Row, Value } from "../../common/value.ts";
import { ObjectService, type Objects } from "../../controller/areas/objects/index.ts";
import type { Principal } from "../../controller/areas/permissions/index.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { realClock, seededRandom } from "../helpers/clock.ts";
import { onCluster, openTestEngine } from "../helpers/engine.ts";
import { MemoryObjects } from "../helpers/memory-objects.ts";
import { testPrincipal, testRuntime } from "../helpers/runtime.ts";

/**
 * Random conditions over random objects, answered by the query area and by a few lines of plain evaluation. The principal has a row
 * condition, so that both conditions take part in what is pushed down.
 */
const QUERIES = Number(process.env.ODP_RANDOM_QUERIES ?? 400);
const admin = testPrincipal();
const runtime = testRuntime(realClock);
const span = { start: 0, end: 0 };
const FIELDS = ["host", "size", "tags", "up", "seen", "slots", "config"] as const;
type Field = (typeof FIELDS)[number];

interface Plain {
  readonly id: string;
  readonly isRack: boolean;
  readonly values: Row;
}

async function fill(objects: Objects, random: Random): Promise<readonly Plain[]> {
  const query = new QueryService({ objects, runtime });
  await query.rows(admin, `create class /matrix/ent/box (host varchar, size int, up boolean, seen timestamp, config map<varchar,varchar>, keys(host), index(host, size, seen, tags, config));
    create class /matrix/ent/box/rack (slots int, index(slots))`);
  const plain = Array.from({ length: 60 }, (_, index): Plain => {
    const isRack = random.next() < 0.4;
    const values: Row = { host: `h${index % 20}${index >= 20 ? `-${index}` : ""}` };
    for (const field of FIELDS) if (field !== "host" && (isRack || field !== "slots") && random.next() < 0.8) values[field] = stored(field, random);
    return { id: `${isRack ? "rack" : "box"}:${String(values.host)}`, isRack, values };
  });
  for (const { isRack, values } of plain) await objects.insert(admin, `/matrix/ent/box${isRack ? "/rack" : ""}`, [values]);
  return plain;
}

function stored(field: Field, random: Random): Value {
  const letters = ["x", "y", "z"].filter(() => random.next() < 0.5);
  if (field === "tags") return letters;
  if (field === "config") return Object.fromEntries(letters.map((letter) => [letter, "1"]));
  return scalar(field, random);
}

/** What a condition may compare the field with, and what objects have in it. */
function scalar(field: Field, random: Random): Value {
  const number = Math.floor(random.next() * 12) - 1;
  if (field === "up") return random.next() < 0.5;
  if (field === "host") return `h${number}`;
  if (field === "tags" || field === "config") return ["x", "y", "z", "none"][number & 3] ?? "x";
  return field === "seen" ? Date.UTC(2024, 0, 1 + number) : number;
}

class ConditionGenerator {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  condition(depth: number): Condition {
    const roll = this.#random.next();
    if (depth === 0 || roll < 0.3) return this.#leaf();
    if (roll < 0.4) return { kind: "not", operand: this.condition(depth - 1), span };
    const items = Array.from({ length: 2 + Math.floor(this.#random.next() * 2) }, () => this.condition(depth - 1));
    return { kind: roll < 0.8 ? "and" : "or", items, span };
  }

  #leaf(): Condition {
    const field = this.#pick(FIELDS);
    const operand = { kind: "field" as const, parts: [field], span };
    const value = () => node(field, scalar(field, this.#random));
    const negated = this.#random.next() < 0.3;
    const holdsSeveral = field === "tags" || field === "config";
    const roll = this.#random.next();
    if (roll < 0.15) return { kind: "isNull", operand, negated, span };
    if (roll < 0.35) return { kind: "in", operand, values: [value(), value(), value()], negated, span };
    if (holdsSeveral) {
      if (roll < 0.6) return { kind: "contains", operand, value: value(), negated, span };
      return { kind: "compare", operator: this.#pick(["=", "!="]), left: operand, right: value(), span };
    }
    if (roll < 0.5) return { kind: "between", operand, low: value(), high: value(), negated, span };
    return { kind: "compare", operator: this.#pick(["=", "!=", "<", "<=", ">", ">="]), left: operand, right: value(), span };
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random.next() * choices.length)] as T;
  }
}

/** Numbers bare, times as text. */
function node(field: Field, value: Value): ValueNode {
  if (typeof value === "boolean") return { kind: "constant", value, span };
  if (field === "seen") return { kind: "text", value: new Date(Number(value)).toISOString().slice(0, 19).replace("T", " "), span };
  return typeof value === "number" ? { kind: "number", text: String(value), span } : { kind: "text", value: String(value), span };
}

/** True, false, or undefined for unknown. */
function truth(condition: Condition, row: Plain): boolean | undefined {
  switch (condition.kind) {
    case "and":
    case "or": {
      const decided = condition.kind === "or";
      const truths = condition.items.map((item) => truth(item, row));
      return truths.includes(decided) ? decided : truths.includes(undefined) ? undefined : !decided;
    }
    case "not":
      return opposite(truth(condition.operand, row));
    default:
      return leafTruth(condition, row);
  }
}

function leafTruth(condition: Exclude<Condition, { kind: "and" | "or" | "not" }>, row: Plain): boolean | undefined {
  const operand = condition.kind === "compare" ? condition.left : condition.operand;
  const field = operand.kind === "field" ? (operand.parts[0] as Field) : "host";
  if (field === "slots" && !row.isRack) return undefined;
  const own = row.values[field];
  if (condition.kind === "isNull") return (own === undefined) !== condition.negated;
  if (own === undefined || own === null) return undefined;
  const held: readonly Value[] = Array.isArray(own) ? (own as Value[]) : field === "config" ? Object.keys(own as object) : [own];
  const holds = (value: ValueNode) => held.includes(plainValue(field, value));
  switch (condition.kind) {
    case "in":
      return condition.values.some(holds) !== condition.negated;
    case "contains":
      return holds(condition.value) !== condition.negated;
    case "between":
      return (plainValue(field, condition.low) <= own && own <= plainValue(field, condition.high)) !== condition.negated;
    case "compare":
      if (condition.operator === "=" || condition.operator === "!=") return holds(condition.right) === (condition.operator === "=");
      return ordered(condition.operator, own as string | number, plainValue(field, condition.right));
    default:
      throw new Error(`not generated: ${condition.kind}`);
  }
}

function ordered(operator: string, left: string | number, right: string | number): boolean {
  const isLess = left < right;
  return operator === "<" ? isLess : operator === ">" ? right < left : operator === "<=" ? !(right < left) : !isLess;
}

function plainValue(field: Field, value: ValueNode): string | number {
  if (value.kind === "constant") return value.value as unknown as number;
  if (value.kind === "number") return Number(value.text);
  const text = value.kind === "text" ? value.value : "";
  return field === "seen" ? Date.parse(`${text.replace(" ", "T")}Z`) : text;
}

function opposite(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

async function compare(objects: Objects, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const plain = await fill(objects, random);
  const query = new QueryService({ objects, runtime });
  const generator = new ConditionGenerator(random);
  let found = 0;
  for (let round = 0; round < QUERIES; round += 1) {
    const rule = random.next() < 0.5 ? undefined : generator.condition(1);
    const wanted = generator.condition(3);
    const where = rule && printCondition(rule);
    const principal: Principal = { ...admin, data: [{ class: "/", access: "read", ...(where ? { where } : {}) }] };
    const text = `select id from /matrix/ent/box/ where ${printCondition(wanted)} limit -1`;
    const rows = await query.rows(principal, text);
    const expected = plain.filter((row) => truth(wanted, row) === true && (!rule || truth(rule, row) === true)).map((row) => row.id);
    expect(rows.map((row) => row.id).sort(), `seed ${seed} round ${round}: ${text} with the rule ${where ?? "none"}`).toEqual([...expected].sort());
    found += expected.length;
  }
  // Conditions that never match would prove nothing.
  expect(found).toBeGreaterThan(QUERIES * 3);
}

test.each(onCluster ? [] : [1, 2, 3])("over the database in memory, narrowing as far as it can (seed %i)", async (seed) => {
  await compare(new MemoryObjects({ nowMs: () => 0, narrows: true }), seed);
});

test.each([
  { seed: 11 },
  ...(onCluster ? [] : [{ seed: 12 }]),
  { seed: 13, faultySeed: 13 },
])("over an engine (%j)", async ({ seed, ...options }) => {
  await using engine = await openTestEngine(options);
  const objects = new ObjectService({ stores: engine, runtime });
  await compare(objects, seed);
  await objects.close();
});
