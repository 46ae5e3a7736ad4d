import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { QUERY_CURSOR_MAX_CHARACTERS } from "../../../../common/limits.ts";
import {
  type Condition,
  mapCondition,
  mapOperand,
  NOWHERE,
  type Operand,
  printStatement,
  type Select,
  valueNode,
} from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { isOfGroup } from "../expressions/bind.ts";
import { type Arguments, isList, literal } from "../expressions/literal.ts";
import type { PseudoField } from "../expressions/fields.ts";
import { packedKey, type SortKey, unpackedKey } from "../expressions/sort.ts";
import type { OrderPlan, Paging, Shape } from "./outputs.ts";
import type { Scope } from "./names/scope.ts";

const STATEMENT_HASH_CHARACTERS = 16;

/**
 * Undefined for a SELECT without a cursor. `AppError("invalid")` for a cursor of another statement, and for a statement
 * whose rows cannot be told apart by class and id.
 */
export function pagingOf(
  select: Select,
  order: { readonly by: readonly OrderPlan[]; readonly stored: boolean },
  values: Arguments,
): Paging | undefined {
  if (!select.cursor) return undefined;
  if (
    select.joins.length > 0 ||
    select.distinct ||
    select.groupBy.length > 0 ||
    select.items.some((item) => item.kind === "item" && isOfGroup(item.value))
  ) {
    throw pagingRefused();
  }
  if (select.offset)
    throw new AppError("invalid", "[Valid] CURSOR and OFFSET exclude each other: the cursor says where to go on.");
  const statement = statementHash(select, values, order.by);
  const cursor = literal(select.cursor, values);
  return {
    statement,
    stored: order.stored,
    after: cursor === "" ? undefined : keysOf(cursor, { statement, length: order.by.length }),
  };
}

export function pagingRefused(): AppError {
  return new AppError(
    "invalid",
    "[Valid] CURSOR needs a SELECT of single objects: without JOIN, UNION, DISTINCT, GROUP BY and aggregates.",
  );
}

/**
 * Order of the rows of pages: as asked for, then by class and id. Records without an order come newest first. If the
 * order names a time of the rows, rows of one time in several classes are ordered by arrival before class and id.
 */
export function pagedOrder(orderBy: readonly OrderPlan[], scope: Scope): readonly OrderPlan[] {
  const areRecords = scope.classes.every((view) => view.kind === "record");
  const own = orderBy.length === 0 && areRecords ? [byColumn("vtime", true, scope)] : orderBy;
  const time = timeOrder(own);
  const arrival = time && scope.classes.length > 1 ? [byArrival(time.descending, scope)] : [];
  return [...own, ...arrival, byColumn("class", false, scope), byColumn("id", time?.descending ?? false, scope)];
}

/** Adds the order of arrival, which ids have, to an order by a time of the rows. It is not shown to users. */
export function withArrival(
  { orderBy, grouping, distinct }: Pick<Shape<never>, "orderBy" | "grouping" | "distinct">,
  scope: Scope,
): readonly OrderPlan[] {
  const time = timeOrder(orderBy);
  if (time === undefined || grouping !== undefined || distinct) return orderBy;
  const { descending } = time;
  const places =
    scope.classes.length > 1
      ? [byArrival(descending, scope), byColumn("class", false, scope)]
      : [byColumn("id", descending, scope)];
  return [...orderBy, ...places.map((place) => ({ ...place, isHidden: true as const }))];
}

function byArrival(descending: boolean, scope: Scope): OrderPlan {
  const id = scope.bind({ kind: "field", parts: ["id"], span: NOWHERE });
  const isMixed = new Set(scope.classes.map(({ kind }) => kind)).size > 1;
  const label = isMixed ? ARRIVAL_OF_KINDS : ARRIVAL;
  const field = { ...id, label, name: label, pseudo: undefined, isArrival: true as const };
  return { label, value: { kind: "field", field }, descending };
}

const ARRIVAL = "arrival";
/** Label of the order of arrival among records and entities together: their ids are compared in another form. */
const ARRIVAL_OF_KINDS = "arrival of several kinds";

function timeOrder(orderBy: readonly OrderPlan[]): OrderPlan | undefined {
  return orderBy.find(({ value }) => value.kind === "field" && isTimeOfRow(value.field.pseudo));
}

/** `vtime`, `mtime` or `ctime`. */
export function isTimeOfRow(pseudo: PseudoField | undefined): boolean {
  return TIMES_OF_ROWS.has(pseudo ?? "");
}

const TIMES_OF_ROWS: ReadonlySet<string> = new Set(["vtime", "mtime", "ctime"]);

function byColumn(name: string, descending: boolean, scope: Scope): OrderPlan {
  const field = scope.bind({ kind: "field", parts: [name], span: NOWHERE });
  return { label: name, value: { kind: "field", field }, descending };
}

/** Text from which the next page begins. `AppError("too_large")` beyond `QUERY_CURSOR_MAX_CHARACTERS`. */
export function cursorAfter({ statement }: Paging, keys: readonly SortKey[]): string {
  const cursor = Buffer.from(JSON.stringify([statement, keys.map(packedKey)])).toString("base64url");
  if (cursor.length <= QUERY_CURSOR_MAX_CHARACTERS) return cursor;
  throw new AppError(
    "too_large",
    `[Exec] CURSOR takes at most ${QUERY_CURSOR_MAX_CHARACTERS} characters: order the pages by shorter values.`,
    {
      details: { limit: "QUERY_CURSOR_MAX_CHARACTERS" },
    },
  );
}

/** A condition that all rows of the page fulfil. It only narrows the read; the rows themselves are compared again. */
export function pageCondition(paging: Paging, [first]: readonly OrderPlan[]): Condition | undefined {
  const key = paging.after?.[0];
  if (first?.value.kind !== "field" || typeof key !== "number") return undefined;
  const { name, members, pseudo, computed, relation } = first.value.field;
  if (computed || relation) return undefined;
  // In a descending order, rows without a value come last, and no range contains them.
  if (first.descending && !pseudo) return undefined;
  const left = { kind: "field" as const, parts: [name, ...members], span: NOWHERE };
  const right = { kind: "number" as const, text: String(key), span: NOWHERE };
  return { kind: "compare", operator: first.descending ? "<=" : ">=", left, right, span: NOWHERE };
}

function statementHash(select: Select, values: Arguments, order: readonly OrderPlan[]): string {
  const changing = [select.cursor, select.limit].flatMap((node) => (node?.kind === "placeholder" ? [node.index] : []));
  const text = printStatement(withZones({ ...select, cursor: undefined, limit: undefined }));
  const given = values.filter((_, index) => !changing.includes(index));
  // Earlier versions ordered ids of one time ascending, and rows of one time by class. With their cursors, rows would
  // be missed. So the hash contains the order.
  const arrivals = order.flatMap(({ value }) =>
    value.kind === "field" && value.field.isArrival ? value.field.label : [],
  );
  const places = [...arrivals, ...(order.at(-1)?.descending ? ["id desc"] : [])];
  return createHash("sha256")
    .update(JSON.stringify([text, given, ...places]))
    .digest("base64url")
    .slice(0, STATEMENT_HASH_CHARACTERS);
}

/**
 * The statement with the zone of the call, the user or the class written into it. In another zone, rows have other
 * places.
 */
function withZones(select: Select): Select {
  const operand = (node: Operand): Operand => mapOperand(node, map);
  return {
    ...select,
    items: select.items.map((item) => (item.kind === "item" ? { ...item, value: operand(item.value) } : item)),
    where: select.where && mapCondition(select.where, map),
    orderBy: select.orderBy.map((order) => ({ ...order, value: operand(order.value) })),
  };
}

const map = {
  operand: (node: Operand): Operand =>
    node.kind === "computed" && node.zone !== undefined
      ? { ...node, operands: [...node.operands, valueNode(node.zone)] }
      : node,
};

function keysOf(cursor: Value, expected: { readonly statement: string; readonly length: number }): readonly SortKey[] {
  const decoded = decodedCursor(cursor);
  const [statement, keys] = isList(decoded) ? decoded : [];
  const found = isList(keys) ? keys.map(unpackedKey) : [];
  const known = found.filter((key) => key !== undefined);
  if (statement !== expected.statement || found.length !== expected.length || known.length !== found.length)
    throw wrongCursor();
  return known;
}

function decodedCursor(cursor: Value): Value {
  if (typeof cursor !== "string" || cursor.length > QUERY_CURSOR_MAX_CHARACTERS) throw wrongCursor();
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString()) as Value;
  } catch {
    throw wrongCursor();
  }
}

function wrongCursor(): AppError {
  return new AppError(
    "invalid",
    "[Valid] The cursor is none of this statement: give what its answer had as meta.cursor, or '' for the first page.",
  );
}
