import { AppError } from "../../../../common/errors.ts";
import { QUERY_PARSED_TEXT_MAX_CHARACTERS } from "../../../../common/limits.ts";
import {
  type Assignment,
  type Chain,
  type Condition,
  type Delete,
  type GraphNode,
  isAny,
  type Item,
  mapCondition,
  mapOperand,
  type Match,
  type Operand,
  partsOf,
  printOperand,
  type Select,
  type Source,
  type Span,
  type Union,
  type Update,
  valueNode,
} from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { steppingOf } from "./functions/calendar-steps.ts";
import { requireDurationMs } from "./functions/times.ts";
import { type Arguments, withValues } from "./literal.ts";
import { mentions } from "./mentions.ts";
import { about } from "./placing.ts";
import { compileOperand } from "./predicate.ts";

type Settled = Select | Union | Match | Update | Delete;

/** Values that are the same for all rows of one execution. */
export interface Present {
  readonly nowMs: number;
  readonly values: Arguments;
  /** Time zone for functions of the calendar in a statement about the class of that path; absent: UTC for all. */
  readonly zoneOf?: (path: string | undefined) => string | undefined;
}

/**
 * Puts constant values into the statement. Each function of the calendar without a zone gets one, and `now()` and
 * `ago('1 hour')` become times. A constant expression on the right of a comparison becomes its value, so that it can
 * narrow a read. Throws `AppError("invalid")` for an unknown function or wrong values in such an expression. It also
 * throws for `now()` and `ago()` in a page of a SELECT, and for a placeholder without a value. Throws `too_large` if
 * all these values together have more characters than one row may have.
 */
export function settled<S extends Settled>(statement: S, present: Present): S;
export function settled(statement: Settled, present: Present): Settled {
  switch (statement.kind) {
    case "select":
      return isSettled(statement) ? statement : settledSelect(statement, present);
    case "union":
      return { ...statement, selects: statement.selects.map((select) => settledSelect(select, present)) };
    case "match":
      return {
        ...statement,
        where: statement.where && settledCondition(statement.where, present),
        chains: statement.chains.map((chain) => settledChain(chain, present)),
      };
    case "update":
      return {
        ...statement,
        assignments: statement.assignments.map((assignment) =>
          settledAssignment(assignment, present, statement.class.path),
        ),
        where: statement.where && settledCondition(statement.where, present, statement.class.path),
      };
    case "delete":
      return statement.where
        ? { ...statement, where: settledCondition(statement.where, present, statement.class.path) }
        : statement;
  }
}

/** True if no value of the present can change the statement. Long statements are not looked through for that. */
function isSettled(select: Select): boolean {
  const { start, end } = select.span;
  if (end - start > QUERY_PARSED_TEXT_MAX_CHARACTERS) return false;
  let known = settledOnes.get(select);
  if (known === undefined) settledOnes.set(select, (known = !mentions(select, UNSETTLED)));
  return known;
}

const settledOnes = new WeakMap<Select, boolean>();

/** Kinds of nodes that may become others. */
const UNSETTLED: ReadonlySet<string> = new Set(["computed", "relate", "inSelect", "selected"]);

function settledSelect(select: Select, present: Present): Select {
  const map = settling({ select, zone: present.zoneOf?.(classOf(select.from)) }, present);
  const operand = (node: Operand): Operand => mapOperand(node, map);
  const condition = (node: Condition): Condition => folded(mapCondition(node, map), present);
  return {
    ...select,
    from: settledSource(select.from, present),
    joins: select.joins.map((join) => ({ ...join, class: settledSource(join.class, present) })),
    items: select.items.map((item) => (item.kind === "item" ? settledItem(item, operand, present) : item)),
    where: select.where && condition(select.where),
    groupBy: select.groupBy.map(operand),
    having: select.having && condition(select.having),
    orderBy: select.orderBy.map((order) => ({ ...order, value: operand(order.value) })),
  };
}

/** The class after FROM. For a SELECT there, it is the first class inside. */
function classOf(source: Source): string | undefined {
  if (source.kind === "class") return source.path;
  const { select } = source;
  const first = select.kind === "union" ? select.selects[0] : select;
  return first && classOf(first.from);
}

function settledSource(source: Source, present: Present): Source {
  return source.kind === "class" ? source : { ...source, select: settled(source.select, present) };
}

/** The item with its value changed. It keeps the name of what was written. */
function settledItem(item: Item, operand: (node: Operand) => Operand, { values }: Present): Item {
  const value = operand(item.value);
  if (value === item.value) return item;
  return isSamePrinted(value, item.value)
    ? { ...item, value }
    : { ...item, value, alias: item.alias ?? printOperand(withValues(item.value, values)) };
}

/** True if both print the same, as they do if only the zone differs. */
function isSamePrinted(one: Operand, other: Operand): boolean {
  return printOperand(one) === printOperand(other);
}

function settledChain(chain: Chain, present: Present): Chain {
  const node = (one: GraphNode): GraphNode =>
    one.where ? { ...one, where: settledCondition(one.where, present, one.class) } : one;
  return { ...chain, start: node(chain.start), steps: chain.steps.map((step) => ({ ...step, node: node(step.node) })) };
}

function settledAssignment(assignment: Assignment, present: Present, path: string): Assignment {
  const value = mapOperand(assignment.value, settling({ zone: present.zoneOf?.(path) }, present));
  return value === assignment.value ? assignment : { ...assignment, value };
}

function settledCondition(condition: Condition, present: Present, path?: string): Condition {
  return folded(mapCondition(condition, settling({ zone: present.zoneOf?.(path) }, present)), present);
}

interface Where {
  readonly select?: Select;
  readonly zone: string | undefined;
}

function settling({ select, zone }: Where, present: Present): Parameters<typeof mapOperand>[1] {
  return {
    operand: (operand) => timeOf(zonedOf(operand, zone), select, present),
    comparison: (condition) =>
      condition.kind === "inSelect" ? { ...condition, select: settledSelect(condition.select, present) } : condition,
  };
}

/** Adds the zone of the statement to a function of the calendar that names none. */
function zonedOf(operand: Operand, zone: string | undefined): Operand {
  if (zone === undefined || operand.kind !== "computed") return operand;
  const stepping = steppingOf(operand.name);
  return stepping && operand.operands.length <= stepping.zone ? { ...operand, zone } : operand;
}

function timeOf(operand: Operand, select: Select | undefined, present: Present): Operand {
  if (operand.kind !== "computed" || (operand.name !== "now" && operand.name !== "ago")) return operand;
  const { name, operands, span } = operand;
  return about(span, () => {
    if (select?.cursor)
      throw new AppError("invalid", `[Valid] ${name}() is another time on each page: with CURSOR give a time.`);
    if (name === "now" && operands.length === 0) return timeNode(present.nowMs, span);
    const [width] = operands;
    const value = name === "ago" && operands.length === 1 && width ? constantOf(width, present) : undefined;
    if (value === undefined)
      throw new AppError("invalid", "[Valid] now() takes nothing, ago() a duration such as '1 hour'.");
    return timeNode(present.nowMs - requireDurationMs(value), span);
  });
}

function timeNode(timeMs: number, span: Span): Operand {
  const operands: readonly Operand[] = [valueNode(timeMs), { kind: "text", value: "timestamp", span }];
  return { kind: "computed", name: "cast", operands, span };
}

function folded(condition: Condition, present: Present): Condition {
  switch (condition.kind) {
    case "and":
    case "or":
      return { ...condition, items: condition.items.map((item) => folded(item, present)) };
    case "not":
      return { ...condition, operand: folded(condition.operand, present) };
    case "relate": {
      const value = constantOf(condition.right, present);
      // A written null asks for values that are not set. A computed null makes the comparison unknown, as for a row.
      return value === undefined || value === null
        ? condition
        : { ...condition, kind: "compare", right: valueNode(value) };
    }
    default:
      return condition;
  }
}

/**
 * The value of an operand that needs no row; undefined for others. The work for all of these counts as the work for one
 * row.
 */
function constantOf(operand: Operand, present: Present): Value | undefined {
  if (partsOf(operand).length > 0 || isAny(operand)) return undefined;
  const source = compileOperand<Present>(operand, {
    values: present.values,
    resolve: (part) => {
      throw new RangeError(`${printOperand(part)} needs a row`);
    },
  });
  return source.read(present);
}
