import type {
  AlterClass,
  Call,
  Case,
  Chain,
  ClassOption,
  ClassRef,
  ColumnDefinition,
  Computed,
  Condition,
  CreateClass,
  Delete,
  Field,
  Fill,
  GraphNode,
  GraphStep,
  Insert,
  Match,
  Operand,
  OrderItem,
  PastInsert,
  Select,
  SelectItem,
  Source,
  Statement,
  Tail,
  Update,
  ValueNode,
  WindowItem,
} from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import { isPlainWord } from "./lex.ts";

/** The text of a statement. Parsing it gives the same tree except for the spans. */
export function printStatement(node: Statement): string {
  switch (node.kind) {
    case "select":
      return select(node);
    case "union":
      return `${node.selects.map(select).join(node.all ? " UNION ALL " : " UNION ")}${tail(node)}`;
    case "selectEdgeTypes":
      return "SELECT EDGE TYPE";
    case "insert":
      return insert(node);
    case "insertJson":
      return `INSERT JSON ${printValue(node.json)}`;
    case "update":
      return update(node);
    case "delete":
      return remove(node);
    case "createClass":
      return createClass(node);
    case "dropClass":
      return `DROP CLASS ${node.ifExists ? "IF EXISTS " : ""}${classRef(node.class)}`;
    case "alterClass":
      return alterClass(node);
    case "createEdgeType":
      return `CREATE EDGE TYPE ${node.ifNotExists ? "IF NOT EXISTS " : ""}${text(node.name)}${optional(" ", node.remedy, text)}`;
    case "dropEdgeType":
      return `DROP EDGE TYPE ${node.ifExists ? "IF EXISTS " : ""}${text(node.name)}`;
    case "match":
      return match(node);
    case "batch":
      return `BEGIN ${node.statements.map((statement) => `${printStatement(statement)}; `).join("")}END`;
    case "explain":
      return `EXPLAIN ${node.analyzes ? "ANALYZE " : ""}${printStatement(node.statement)}`;
  }
}

function printValue(node: ValueNode): string {
  switch (node.kind) {
    case "text":
      return text(node.value);
    case "number":
      return node.text;
    case "constant":
      return String(node.value);
    case "placeholder":
      return "?";
    case "list":
      return `[${node.items.map(printValue).join(", ")}]`;
    case "map":
      return `{${node.entries.map((entry) => `${text(entry.key)}: ${printValue(entry.value)}`).join(", ")}}`;
  }
}

export function printCondition(node: Condition): string {
  switch (node.kind) {
    case "and":
      return node.items.map(nested).join(" AND ");
    case "or":
      return node.items.map(nested).join(" OR ");
    case "not":
      return `NOT ${nested(node.operand)}`;
    case "compare":
      return `${compared(node.left)} ${node.operator} ${printValue(node.right)}`;
    case "relate":
      return `${compared(node.left)} ${node.operator} ${node.right.kind === "field" ? `(${printField(node.right)})` : compared(node.right)}`;
    case "in":
      return `${compared(node.operand)} ${not(node)}IN (${node.foundBy ? select(node.foundBy) : node.values.map(printValue).join(", ")})`;
    case "inSelect":
      return `${compared(node.operand)} ${not(node)}IN (${select(node.select)})`;
    case "like":
      return `${compared(node.operand)} ${not(node)}LIKE ${printValue(node.pattern)}`;
    case "between":
      return `${compared(node.operand)} ${not(node)}BETWEEN ${printValue(node.low)} AND ${printValue(node.high)}`;
    case "isNull":
      return `${compared(node.operand)} IS ${not(node)}NULL`;
    case "contains":
      return `${compared(node.operand)} ${not(node)}CONTAINS ${printValue(node.value)}`;
    case "textMatch":
      return `${compared(node.operand)} ${not(node)}${node.operator} ${printValue(node.value)}`;
  }
}

export function printField(node: Field): string {
  const window =
    node.window && `[${optional("", node.window.from, printValue)}:${optional("", node.window.to, printValue)}]`;
  return `${node.parts.map(name).join(".")}${window ?? ""}`;
}

export function printCall(node: Call): string {
  const argument = node.argument ? printOperand(node.argument) : "*";
  return `${node.name}(${node.distinct ? "DISTINCT " : ""}${argument}${optional(", ", node.step, printValue)})`;
}

function not(node: { readonly negated: boolean }): string {
  return node.negated ? "NOT " : "";
}

function nested(node: Condition): string {
  const isJoined = node.kind === "and" || node.kind === "or";
  return isJoined ? `(${printCondition(node)})` : printCondition(node);
}

export function printOperand(node: Operand): string {
  switch (node.kind) {
    case "field":
      return printField(node);
    case "call":
      return printCall(node);
    case "computed":
      return printComputed(node);
    case "case":
      return printCase(node);
    case "truth":
      return printCondition(node.condition);
    default:
      return printValue(node);
  }
}

/** Binding strength of the operators. */
const RANKS: ReadonlyMap<string, number> = new Map([
  ["+", 1],
  ["-", 1],
  ["||", 1],
  ["*", 2],
  ["/", 2],
]);

function printComputed({ name: sign, operands }: Computed): string {
  const rank = RANKS.get(sign);
  const [first, second] = operands;
  if (rank !== undefined && first && second) return `${inside(first, rank)} ${sign} ${inside(second, rank + 1)}`;
  if (sign === "-" && first) return `-(${printOperand(first)})`;
  if (sign === "cast" && first && second?.kind === "text")
    return `cast(${printOperand(first)} AS ${name(second.value)})`;
  return `${sign}(${operands.map(printOperand).join(", ")})`;
}

/** Adds brackets if the node binds more weakly than its context. */
function inside(node: Operand, rank: number): string {
  const own = node.kind === "truth" ? 0 : isSigned(node) ? (RANKS.get(node.name) ?? 0) : rank;
  return own < rank ? `(${printOperand(node)})` : printOperand(node);
}

function isSigned(node: Operand): node is Computed {
  return node.kind === "computed" && RANKS.has(node.name) && node.operands.length === 2;
}

function printCase({ branches, otherwise }: Case): string {
  const parts = branches.map(({ when, then }) => `WHEN ${printCondition(when)} THEN ${printOperand(then)}`);
  return `CASE ${parts.join(" ")}${optional(" ELSE ", otherwise, printOperand)} END`;
}

/** Prints an operand on a side of a comparison. */
function compared(node: Operand): string {
  return node.kind === "truth" ? `(${printOperand(node)})` : printOperand(node);
}

/** Adds back-ticks if the bare word would have another meaning. */
function name(value: string): string {
  const isBare = isPlainWord(value) && !RESERVED.has(value.toUpperCase());
  return isBare ? value : `\`${value.replaceAll("`", "``")}\``;
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

function optional<T>(lead: string, value: T | undefined, print: (value: T) => string): string {
  return value === undefined ? "" : `${lead}${print(value)}`;
}

function listed<T>(lead: string, values: readonly T[], print: (value: T) => string): string {
  return values.length === 0 ? "" : `${lead}${values.map(print).join(", ")}`;
}

function classRef(node: ClassRef): string {
  const slash = node.subtree && node.path !== "/" ? "/" : "";
  return `${node.path}${slash}${optional(" ", node.alias, name)}`;
}

function select(node: Select): string {
  const joins = node.joins.map(
    (join) =>
      `${join.outer ? " LEFT" : ""} JOIN ${joinedSource(join.class)} ON ${printField(join.left)} = ${printField(join.right)}`,
  );
  return [
    `SELECT ${node.distinct ? "DISTINCT " : ""}${node.items.map(item).join(", ")} FROM ${from(node)}`,
    ...joins,
    optional(" WHERE ", node.where, printCondition),
    listed(" GROUP BY ", node.groupBy, printOperand),
    optional(" ", node.fill, printFill),
    optional(" HAVING ", node.having, printCondition),
    tail({ ...node, asOf: undefined }),
  ].join("");
}

function from(node: Select): string {
  return `${source(node.from)}${optional(" AS OF ", node.asOf, printValue)}${optional(" ", node.from.alias, aliasName)}`;
}

function printFill({ value }: Fill): string {
  return `FILL (${value === "previous" ? value : printValue(value)})`;
}

/** Prints the source without its alias. */
function source(node: Source): string {
  return node.kind === "class" ? classRef({ ...node, alias: undefined }) : `(${printStatement(node.select)})`;
}

function joinedSource(node: Source): string {
  const alias = name(node.alias ?? "");
  return node.kind === "class" ? `(${alias}:${source(node)})` : `${source(node)} ${alias}`;
}

/** LEFT before JOIN would not be read as an alias. */
function aliasName(value: string): string {
  return value.toUpperCase() === "LEFT" ? `\`${value}\`` : name(value);
}

function tail(node: Tail & { readonly asOf: ValueNode | undefined }): string {
  return [
    listed(" ORDER BY ", node.orderBy, printOrder),
    optional(" LIMIT ", node.limit, printValue),
    optional(" OFFSET ", node.offset, printValue),
    optional(" CURSOR ", node.cursor, printValue),
    optional(" AS OF ", node.asOf, printValue),
  ].join("");
}

/** Prints the window function without its alias. */
export function printWindow({ name: called, operands, partitionBy, orderBy }: WindowItem): string {
  const isRows = called === "count" && operands.length === 0;
  const parts = [
    ...(partitionBy.length > 0 ? [`PARTITION BY ${partitionBy.map(printOperand).join(", ")}`] : []),
    ...(orderBy.length > 0 ? [`ORDER BY ${orderBy.map(printOrder).join(", ")}`] : []),
  ];
  return `${called}(${isRows ? "*" : operands.map(printOperand).join(", ")}) OVER (${parts.join(" ")})`;
}

function printOrder({ value, descending }: OrderItem): string {
  return `${printOperand(value)}${descending ? " DESC" : ""}`;
}

function item(node: SelectItem): string {
  if (node.kind === "window") return `${printWindow(node)}${optional(" AS ", node.alias, name)}`;
  return node.kind === "star"
    ? `${optional("", node.alias, (alias) => `${name(alias)}.`)}*`
    : `${printOperand(node.value)}${optional(" AS ", node.alias, name)}`;
}

function insert(node: Insert): string {
  const at = optional(" AT ", node.at, printValue);
  if (node.form === "values") {
    const rows = node.rows.map((row) => `(${row.map(printValue).join(", ")})`);
    return `INSERT INTO ${classRef(node.class)} (${node.columns.map(name).join(", ")}) VALUES ${rows.join(", ")}${at}`;
  }
  const values = node.rows[0] ?? [];
  const pairs = node.columns.map((column, index) => `${name(column)} = ${optional("", values[index], printValue)}`);
  const set = `INTO ${classRef(node.class)} SET ${pairs.join(", ")}${at}`;
  return node.past === undefined
    ? `INSERT ${set}`
    : `INSERT ${node.past.kind.toUpperCase()} ${set}${pastClauses(node.past)}`;
}

function pastClauses({ until, added, dropped, lost }: PastInsert): string {
  const clauses = [
    [" UNTIL ", until],
    [" ADDED ", added],
    [" DROPPED ", dropped],
    [" LOST ", lost],
  ] as const;
  return clauses.map(([word, value]) => optional(word, value, printValue)).join("");
}

function update(node: Update): string {
  const signs = { set: "", add: " + ", take: " - " };
  const pairs = node.assignments.map(({ column, operation, value, repeated = column }) => {
    const again = operation === "set" ? "" : name(repeated);
    return `${name(column)} = ${again}${signs[operation]}${printOperand(value)}`;
  });
  const tail = `${optional(" WHERE ", node.where, printCondition)}${node.refresh ? " REFRESH" : ""}`;
  return `UPDATE ${classRef(node.class)} SET ${pairs.join(", ")}${tail}`;
}

function remove(node: Delete): string {
  const limit = optional(" LIMIT ", node.limit, printValue);
  const tail = `${optional(" WHERE ", node.where, printCondition)}${limit}${node.withVersion ? " WITH VERSION" : ""}`;
  return `DELETE${optional(" ", node.column, name)} FROM ${classRef(node.class)}${tail}`;
}

function createClass(node: CreateClass): string {
  const members = node.columns.map(column);
  if (node.keys.length > 0) members.push(`KEYS(${node.keys.map(name).join(", ")})`);
  if (node.indexes.length > 0) members.push(`INDEX(${node.indexes.map(name).join(", ")})`);
  const head = `CREATE CLASS ${node.ifNotExists ? "IF NOT EXISTS " : ""}${classRef(node.class)}`;
  return `${head} (${members.join(", ")})${listed(" WITH ", node.options, option)}`;
}

function column(node: ColumnDefinition): string {
  const elements = node.elements.length === 0 ? "" : `<${node.elements.join(", ")}>`;
  return `${name(node.name)} ${node.type}${elements}${optional(" ", node.details, printValue)}${optional(" ", node.title, text)}`;
}

function option(node: ClassOption): string {
  return `${name(node.name)} = ${printValue(node.value)}${optional(" ", node.unit, String)}`;
}

function alterClass(node: AlterClass): string {
  return `ALTER CLASS ${classRef(node.class)} ${alteration(node.alteration)}`;
}

function alteration(node: AlterClass["alteration"]): string {
  switch (node.kind) {
    case "addColumn":
      return `ADD COLUMN ${column(node.column)}`;
    case "dropColumn":
      return `DROP COLUMN ${name(node.name)}`;
    case "addKey":
      return `ADD KEY ${name(node.name)}`;
    case "dropKey":
      return `DROP KEY ${name(node.name)}`;
    case "addIndex":
      return `ADD INDEX ${name(node.name)}${optional(" ", node.type, String)}`;
    case "dropIndex":
      return `DROP INDEX ${name(node.name)}${optional(" ", node.type, String)}`;
    case "setOptions":
      return `SET ${node.options.map(option).join(", ")}`;
  }
}

function match(node: Match): string {
  const mode =
    node.pathMode === undefined ? "" : node.pathMode === "any" ? " PATH" : ` ${node.pathMode.toUpperCase()} PATH`;
  return [
    `MATCH ${node.chains.map(chain).join(" UNION ")}`,
    optional(" WHERE ", node.where, printCondition),
    listed(" RETURN ", node.returns, name),
    `${mode}${listed(" ", node.pathTags, name)}`,
    optional(" UNTIL ", node.until, text),
    optional(" DIFF ", node.diff, printValue),
    optional(" AS OF ", node.asOf, printValue),
  ].join("");
}

function chain(node: Chain): string {
  return `${graphNode(node.start)}${node.steps.map(step).join("")}`;
}

function step(node: GraphStep): string {
  const depth = node.depth === "any" ? "*" : node.depth === 1 ? "" : `*${node.depth}`;
  const type = optional(":", node.type, (value) => value.split(".").map(name).join("."));
  return `${node.direction === "in" ? "<-" : "-"}[${type}${depth}]${node.direction === "out" ? "->" : "-"}${graphNode(node.node)}`;
}

function graphNode(node: GraphNode): string {
  const label = node.class === undefined ? "" : node.class.startsWith("/") ? node.class : name(node.class);
  const colon = node.class !== undefined || (node.name !== undefined && node.ids.length > 0) ? ":" : "";
  const where = `${optional(" WHERE ", node.where, printCondition)}${optional(" LIMIT ", node.limit, printValue)}`;
  return `(${optional("", node.name, name)}${colon}${node.ids.map(text).join(", ")}${label}${where})`;
}
