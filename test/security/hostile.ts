import type { Value } from "../../common/value.ts";
import { ITEM, LETTERS, TEXTS, WIDE } from "./objects.ts";

/**
 * A request designed to block the thread or to use much memory, sent by the user with the fewest rights that it needs:
 * reads by a viewer, writes by a user who may write.
 */
export interface HostileRequest {
  readonly name: string;
  readonly language: "mql" | "search";
  /** Created when it is sent, because some have megabytes. */
  readonly text: () => string;
  readonly values?: () => readonly (readonly Value[])[];
  readonly cursor?: () => string;
  readonly by?: "writer";
  /** True if most of its work leaves no rows, so that it ends within a few pauses. */
  readonly isShort?: true;
}

const MANY = 100_000;

/** One for each bound of the parsers, of the planner and of the execution. */
export const HOSTILE_REQUESTS: readonly HostileRequest[] = [
  // Parsers.
  mql("200,000 OR", () => `select host from ${ITEM} where ${repeated(200_000, (n) => `size=${n}`, " or ")}`),
  mql("20,000 OR", () => `select host from ${ITEM} where ${repeated(20_000, (n) => `size=${n}`, " or ")}`),
  mql(
    "5,000 OR of different fields",
    () =>
      `select host from ${ITEM} where ${repeated(5_000, (n) => (n % 2 ? `size=${n}` : `grp='${n}'`), " or ")} limit -1`,
  ),
  mql("100,000 AND NOT", () => `select host from ${ITEM} where ${repeated(MANY, (n) => `not size=${n}`, " and ")}`),
  mql("300,000 order keys", () => `select host from ${ITEM} order by ${repeated(300_000, () => "size", ",")}`),
  mql("1,000 order keys", () => `select host from ${ITEM} order by ${repeated(1_000, () => "size", ",")}`),
  mql("100,000 statements", () => repeated(MANY, () => `select host from ${ITEM}`, ";")),
  mql("a batch of 100,000 statements", () => `begin ${repeated(MANY, () => `select host from ${ITEM}`, ";")} end`),
  mql("IN of 400,000 numbers", () => `select host from ${ITEM} where size in (${repeated(400_000, String)})`),
  mql(
    "IN of 10,000 texts",
    () => `select host from ${ITEM} where grp in (${repeated(10_000, (n) => `'v${n}'`)}) limit -1`,
  ),
  mql("IN of 100,000 ids", () => `select host from ${ITEM} where id in (${repeated(MANY, (n) => `'item:${n}'`)})`),
  mql("a list of 400,000 values", () => `select host from ${ITEM} where tags = [${repeated(400_000, String)}]`),
  mql(
    "a map of 100,000 entries",
    () => `select host from ${ITEM} where conf contains {${repeated(MANY, (n) => `'k${n}':${n}`)}}`,
  ),
  mql("4,000,000 opening parentheses", () => `select host from ${ITEM} where ${"(".repeat(4_000_000)}`),
  mql("4,000,000 opening brackets", () => `select host from ${ITEM} where size in ${"[".repeat(4_000_000)}`),
  mql("2,000,000 dots in a name", () => `select host${".a".repeat(1_000_000)} from ${ITEM}`),
  mql("an identifier of 4,000,000 letters", () => `select ${"x".repeat(4_000_000)} from ${ITEM}`),
  mql("a text of 4,000,000 signs", () => `select host from ${ITEM} where host = '${"x".repeat(4_000_000)}'`),
  mql("4,000,000 escapes", () => `select host from ${ITEM} where host = "${"\\n".repeat(2_000_000)}"`),
  mql("600,000 escapes of Unicode", () => `select host from ${ITEM} where host = "${"\\u00e4".repeat(600_000)}"`),
  mql("a name of 4,000,000 Chinese letters", () => `select ${"主机".repeat(2_000_000)} from ${ITEM}`),
  mql("4,000,000 wide blanks", () => `select host ${"\u3000".repeat(4_000_000)} from ${ITEM}`),
  mql("4,000,000 blanks and comments", () => `select host from ${ITEM} ${"/**/ ".repeat(800_000)}`),
  mql("4,000,000 lines and a mistake in the last", () => `${"\n".repeat(4_000_000)} selec`),
  mql("4,000,000 semicolons", () => ";".repeat(4_000_000)),
  mql("a class path of 1,000,000 parts", () => `select host from ${"/a".repeat(1_000_000)}`),
  mql("100,000 ids in a MATCH", () => `match (${repeated(MANY, (n) => `'item:${n}'`)})`),
  mql("5,000 id patterns in a MATCH", () => `match (${repeated(5_000, (n) => `'item:*${n}*[1-5]'`)})`),
  mql("100,000 steps in a MATCH", () => `match (:item)${"->()".repeat(MANY)}`),
  mql("10,000 chains in a MATCH", () => `match ${repeated(10_000, () => "(:item)", " union ")}`),
  mql("100,000 names behind RETURN", () => `match (:item) return ${repeated(MANY, () => "host")}`),
  mql("100,000 names behind PATH", () => `match (a:/matrix/h/item) all path ${repeated(MANY, () => "a")}`),
  // Planner.
  mql("60,000 fields grouped by the same, reversed", () => {
    const names = Array.from({ length: 60_000 }, (_, n) => `conf.k${n}`);
    return `select ${names.join(",")} from ${ITEM} group by ${names.toReversed().join(",")}`;
  }),
  mql("100,000 fields", () => `select ${repeated(MANY, () => "host")} from ${ITEM}`),
  mql(
    "1,000 different fields of all rows",
    () => `select ${repeated(1_000, (n) => `conf.k${n} as f${n}`)} from ${ITEM} limit -1`,
  ),
  mql("1,000 group keys", () => `select count(*) from ${ITEM} group by ${repeated(1_000, (n) => `conf.k${n}`)}`),
  mql("100,000 aggregates", () => `select ${repeated(MANY, (n) => `max(conf.k${n})`)} from ${ITEM}`),
  mql("1,000 aggregates", () => `select ${repeated(1_000, (n) => `max(conf.k${n})`)} from ${ITEM} group by host`),
  mql(
    "50,000 aliases and 50,000 group keys",
    () =>
      `select ${repeated(50_000, (n) => `conf.k${n} as a${n}`)} from ${ITEM} group by ${repeated(50_000, (n) => `a${n}`)}`,
  ),
  mql(
    "100,000 conditions in HAVING",
    () => `select count(*) from ${ITEM} group by host having ${repeated(MANY, (n) => `count(*)=${n}`, " or ")}`,
  ),
  mql(
    "100 joins with an order",
    () => `select ${repeated(100, (n) => `t${n}.host as h${n}`)} from ${ITEM} t ${joins(100)} order by t.size limit -1`,
  ),
  mql(
    "10 joins that match everything, with an order",
    () => `select ${repeated(10, (n) => `t${n}.host as h${n}`)} from ${ITEM} t ${joins(10)} order by t.size limit -1`,
  ),
  mql("3 joins that match everything, counted", () => `select count(*) from ${ITEM} t ${joins(3)}`),
  mql(
    "3 joins that match everything, different rows",
    () => `select distinct t0.host as a, t1.host as b, t2.host as c from ${ITEM} t ${joins(3)} limit -1`,
  ),
  mql("a UNION of 10,000 selects", () => repeated(10_000, () => `select host from ${ITEM}`, " union ")),
  mql(
    "a UNION ALL of 100 selects, sorted",
    () => `${repeated(100, () => `select * from ${ITEM}`, " union all ")} order by host limit -1`,
  ),
  mql(
    "IN of 20,000 numbers, made 10,000 times",
    () => `select host from ${ITEM} where size = ? and size in (${repeated(20_000, String)})`,
    () => executions(10_000),
  ),
  mql(
    "a select made 10,000 times",
    () => `select host from ${ITEM} where size = ?`,
    () => executions(10_000),
  ),
  mql("EXPLAIN of 60,000 fields", () => `explain select ${repeated(60_000, () => "host")} from ${ITEM}`),
  mql(
    "EXPLAIN of a batch of 20,000 selects",
    () => `explain begin ${repeated(20_000, () => `select host from ${ITEM}`, ";")} end`,
  ),
  mql(
    "EXPLAIN of 20,000 OR",
    () => `explain select host from ${ITEM} where ${repeated(20_000, (n) => `size=${n}`, " or ")}`,
  ),
  // Execution.
  mql("groups of long keys", () => `select note, count(*), min(note), first(note) from ${TEXTS} group by id, note`),
  mql("different rows with long texts", () => `select distinct id, note from ${TEXTS} limit -1`),
  mql("long texts, sorted", () => `select * from ${TEXTS} order by note limit -1`),
  mql("long texts, sorted, as a page", () => `select * from ${TEXTS} order by note limit 100000 cursor ''`),
  mql(
    "long texts, joined",
    () => `select a.note, b.note as other from ${TEXTS} a join (b:${TEXTS}) on a.grp = b.grp order by b.note limit -1`,
  ),
  mql("all rows of 500 columns", () => `select * from ${WIDE} order by c0 limit -1`),
  mql(
    "pages of 500 columns, ordered by 50",
    () => `select * from ${WIDE} order by ${repeated(50, (n) => `c${n}`)} limit -1`,
  ),
  mql(
    "FUZZY of 16 words, 50 times",
    () =>
      `select id from ${TEXTS} where ${repeated(50, () => `note fuzzy '${repeated(16, letters, " ")}'`, " or ")} limit -1`,
  ),
  mql("FUZZY of 200 words", () => `select id from ${TEXTS} where note fuzzy '${repeated(200, letters, " ")}'`),
  mql(
    "50 MATCH conditions",
    () => `select id from ${TEXTS} where ${repeated(50, (n) => `note match '*${letters(n)}*s*'`, " or ")} limit -1`,
  ),
  mql(
    "1,000 MATCH conditions",
    () => `select id from ${TEXTS} where ${repeated(1_000, (n) => `note match '${letters(n)}*'`, " or ")} limit -1`,
  ),
  mql("LIKE with 100,000 stars", () => `select id from ${TEXTS} where note like '${"a*".repeat(MANY)}b' limit -1`),
  mql("LIKE with a long piece", () => `select id from ${TEXTS} where note like '*${"a".repeat(50_000)}b*' limit -1`),
  mql(
    "CONTAINS with a long piece",
    () => `select id from ${TEXTS} where note contains '${"a".repeat(50_000)}b' limit -1`,
  ),
  mql(
    "a cursor of 4,000,000 signs",
    () => `select host from ${ITEM} limit 10`,
    undefined,
    () => "A".repeat(4_000_000),
  ),
  mql(
    "a forged cursor of 500,000 keys",
    () => `select host from ${ITEM} limit 10`,
    undefined,
    () => Buffer.from(JSON.stringify(["x", Array.from({ length: 500_000 }, () => 1)])).toString("base64url"),
  ),
  mql(
    "a forged cursor, 1,000,000 deep",
    () => `select host from ${ITEM} limit 10`,
    undefined,
    () => Buffer.from("[".repeat(1_000_000)).toString("base64url"),
  ),
  // Writes.
  writing(
    "INSERT of 100,000 rows",
    () => `insert into ${ITEM} (host, size) values ${repeated(MANY, (n) => `('w${n}',${n})`)}`,
  ),
  writing(
    "INSERT of 400,000 columns",
    () => `insert into ${ITEM} (${repeated(400_000, () => "host")}) values (${repeated(400_000, () => "1")})`,
  ),
  writing(
    "INSERT of 10,000 columns, made 100 times",
    () => `insert into ${ITEM} (${repeated(10_000, () => "host")}) values (${repeated(10_000, () => "'a'")})`,
    () => executions(100, 0),
  ),
  writing(
    "INSERT made 10,000 times",
    () => `insert into ${ITEM} (host, size) values ('x', ?)`,
    () => executions(10_000),
  ),
  writing(
    "INSERT JSON of 60,000 objects",
    () => `insert json '[${repeated(60_000, (n) => `{"class":"${ITEM}","host":"j${n}"}`)}]'`,
  ),
  writing("INSERT JSON, 4,000,000 deep", () => `insert json '${"[".repeat(4_000_000)}'`),
  writing(
    "INSERT JSON, 500,000 deep and whole",
    () => `insert json '{"class":"${ITEM}","host":${"[".repeat(500_000)}${"]".repeat(500_000)}}'`,
  ),
  writing(
    "UPDATE of 100,000 assignments",
    () => `update ${ITEM} set ${repeated(MANY, () => "size=1")} where host='nothing'`,
  ),
  writing("20,000 INSERT statements", () =>
    repeated(20_000, (n) => `insert into ${ITEM} (host, size) values ('s${n % 10}', ${n})`, ";\n"),
  ),
  writing(
    "a batch of 20,000 INSERT statements",
    () => `begin ${repeated(20_000, (n) => `insert into ${ITEM} (host, size) values ('b${n % 10}', ${n})`, ";\n")} end`,
  ),
  writing(
    "CREATE CLASS of 100,000 columns",
    () => `create class /matrix/h/made (${repeated(MANY, (n) => `c${n} varchar`)})`,
  ),
  writing(
    "CREATE CLASS with 100,000 keys",
    () => `create class /matrix/h/made (a varchar, keys(${repeated(MANY, () => "a")}))`,
  ),
  writing(
    "CREATE CLASS with 100,000 options",
    () => `create class /matrix/h/made (a varchar) with ${repeated(MANY, () => "alias='a'")}`,
  ),
  // Search.
  search("30,000 names behind PRINT", () => `#${ITEM}: | print ${repeated(30_000, () => "id")}`),
  search("30,000 names behind SORT", () => `#${ITEM}: | sort ${repeated(30_000, () => "id")}`),
  search("30,000 names behind GROUP", () => `#${ITEM}: | group ${repeated(30_000, () => "id")}`),
  search("30,000 names behind UNIQ", () => `#${ITEM}: | uniq ${repeated(30_000, () => "id")}`),
  search("30,000 segments", () => `#${ITEM}: ${"|a".repeat(30_000)}`),
  { ...search("1,000 segments", () => `#${ITEM}: ${repeated(1_000, (n) => `| x${n}`, "")}`), isShort: true },
  search("1,000 alternatives of words", () => `#${TEXTS}: ${repeated(1_000, letters, ";")} | top -1`),
  search(
    "1,000 alternatives of words and fields",
    () => `#${ITEM}: ${repeated(500, (n) => `size=${n};${letters(n)}`, ";")} | top -1`,
  ),
  search("1,000 alternatives in every class", () => `${repeated(1_000, letters, ";")} | top -1`),
  search("30,000 parts of a name", () => `#${ITEM}: a${".a".repeat(30_000)}=1`),
  search("60,000 blanks and dots", () => `#${ITEM}: x=${"a . ".repeat(15_000)}`),
  search("60,000 stars", () => `#${TEXTS}: ${"a*".repeat(30_000)}b`),
  search("options 30,000 deep", () => `#${ITEM}: x | call tree ${'{"a":'.repeat(12_000)}1${"}".repeat(4_000)}`),
  search("options that do not end", () => `#${ITEM}: x | call tree ${'{"'.repeat(30_000)}`),
  search("10,000 types behind call tree", () => `#${ITEM}: x | call tree {"ftype":[${repeated(10_000, () => '"a"')}]}`),
  search(
    "10,000 fields behind call tree",
    () => `#${ITEM}: x | call tree {"fields":[${repeated(9_000, (n) => `"k${n}"`)}]}`,
  ),
];

function mql(
  name: string,
  text: () => string,
  values?: HostileRequest["values"],
  cursor?: HostileRequest["cursor"],
): HostileRequest {
  return { name, language: "mql", text, ...(values ? { values } : {}), ...(cursor ? { cursor } : {}) };
}

function writing(name: string, text: () => string, values?: HostileRequest["values"]): HostileRequest {
  return { ...mql(name, text, values), by: "writer" };
}

function search(name: string, text: () => string): HostileRequest {
  return { name: `search: ${name}`, language: "search", text };
}

function repeated(count: number, part: (n: number) => string, between = ","): string {
  return Array.from({ length: count }, (_, n) => part(n)).join(between);
}

function executions(count: number, length = 1): readonly (readonly Value[])[] {
  return Array.from({ length: count }, (_, n) => (length === 0 ? [] : [n]));
}

/** A different word for each number. */
function letters(n: number): string {
  return `w${String(n).replaceAll(/\d/g, (digit) => LETTERS[Number(digit)] ?? "")}`;
}

/** Joins in which every condition has the same value for all objects. */
function joins(count: number): string {
  return repeated(count, (n) => `join (t${n}:${ITEM}) on t.grp = t${n}.grp`, " ");
}
