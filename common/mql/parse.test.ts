import { expect, test } from "vitest";
import { AppError } from "../errors.ts";
import { MQL_BLANKS_MAX, MQL_CONDITIONS_MAX, MQL_NESTING_MAX, MQL_WORD_MAX_CHARACTERS } from "../limits.ts";
import { parseConditionText, parseScript, printCondition, printStatement } from "./index.ts";

function parsed(text: string): string[] {
  return parseScript(text).statements.map(printStatement);
}

function failure(text: string): AppError {
  try {
    parseScript(text);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}

test("separators, full-width too, and comments of all four kinds part statements", () => {
  const script =
    "# console\nselect * from /a; -- one\n;；select a from /b/ // two\n；/* three\n; */ select `end` from /c # four";
  expect(parsed(script)).toEqual(["SELECT * FROM /a", "SELECT a FROM /b/", "SELECT `end` FROM /c"]);
});

test("a path ends where a comment begins", () => {
  expect(parsed("select * from /ns//rest\n where a=1")).toEqual(["SELECT * FROM /ns WHERE a = 1"]);
  expect(parsed("select * from /ns/ /* all */ limit -1")).toEqual(["SELECT * FROM /ns/ LIMIT -1"]);
});

test("backslashes escape in double quotes only, doubled single quotes are one", () => {
  const [node] = parseScript(String.raw`insert into /a set f='C:\x''y', g="q\"\n中"`).statements;
  expect(node).toMatchObject({ rows: [[{ value: String.raw`C:\x'y` }, { value: 'q"\n中' }]] });
});

test("a mark ends the text unless an odd number of backslashes stands before it", () => {
  const [node] = parseScript(String.raw`insert into /a set f="a\\\"b\\", g="\"", h="", i="\\"`).statements;
  const values = [String.raw`a\"b${"\\"}`, '"', "", "\\"].map((value) => ({ value }));
  expect(node).toMatchObject({ rows: [values] });
  for (const open of [String.raw`"a\\\"`, '"a', '"'])
    expect(failure(`insert into /a set f=${open}`).message).toContain("closing");
});

test("escapes of Unicode have four hexadecimal digits; with others a u stands for itself", () => {
  const [node] = parseScript(String.raw`insert into /a set f="\u4e2D\u4g00\u12\ud83d\ude00\x\0"`).statements;
  expect(node).toMatchObject({ rows: [[{ value: "中u4g00u12😀x\0" }]] });
});

test("names may be Chinese, quoted, or keywords where nothing else fits", () => {
  expect(parsed("select 主机, `a b`, key, limit, class from /库/主机_1 where status=1 and group = 2")).toEqual([
    "SELECT 主机, `a b`, key, `limit`, class FROM /库/主机_1 WHERE status = 1 AND `group` = 2",
  ]);
});

test("AND binds stronger than OR, NOT stronger than both", () => {
  const print = (text: string) => printCondition(parseConditionText(text));
  expect(print("a=1 or b=2 and not c=3 or d=4")).toBe("a = 1 OR (b = 2 AND NOT c = 3) OR d = 4");
  expect(print("not (a=1 or b=2) and c is not null")).toBe("NOT (a = 1 OR b = 2) AND c IS NOT NULL");
  expect(print("1=1 and size<-10 and x not in ('a',?) and y not like 'z*' and m['k'].n between 1 and 2")).toBe(
    "1 = 1 AND size < -10 AND x NOT IN ('a', ?) AND y NOT LIKE 'z*' AND m.k.n BETWEEN 1 AND 2",
  );
  expect(print("x in (1, n + 1, 2) and x not in (lower(y))")).toBe("(x IN (1, 2) OR x = n + 1) AND NOT x = lower(y)");
});

test.each([
  "insert into /a f='v', g=1",
  "insert into /a set f = 'v'",
  "insert into /a (f,g) values (?,?), ('x', {\"k\":[1,2.5,null,true]}) at ?",
  'insert json \'{"class":"/a"}\'',
  'insert version into /a set id=\'a:1\', vtime=\'2026-01-01\' until \'2026-01-02\' added {"near":["a:2"]} dropped {"near":["a:3"]} lost {"near":{"a:2":"2026-01-03"}}',
  "insert removal into /a set id='a:1', vtime='2026-01-01'",
  "update /a f = f + 'x', g = g - {\"k\":\"v\"}, h = -1 where id='a:1' refresh",
  "update /a set set = 'v'",
  "delete from /ns/ where id in ('box:1') limit -1 with version",
  "delete f from /a",
  "delete * from /a",
  'create class if not exists /a (host varchar \'Host\', s enum {"1":["up","x"]}, t set<varchar>, m map<varchar,int>, keys(host), index(host,s),) with ttl=30 day, key=manu, autosearch=true',
  "drop class if exists /a",
  "alter class /a add column c list<varchar> 'C'",
  "alter class /a drop index c text",
  "alter class /a set ttl=-1, alias='b'",
  "create edgetype if not exists net.link 'remark'",
  "create edge type contain",
  "drop edge type if exists contain",
  "select edge type",
  "explain select count(*), max(f) as m from /a group by g having count(*) > 1 order by m desc, g limit 5 offset 2",
  "select a.x, b.y from /c1 a join (b:/c2) on b.k = a.k where a.f='x'",
  "select a.x, b.y from /c1 a left join (b:/c2) on b.k = a.k join (c:/c3) on c.k = b.k left outer join (d:/c4) on d.k = c.k",
  "select a.x from /c1 `left` join (b:/c2) on b.k = left.k",
  "select left, outer from /c1 left where left = 1 or outer = 2",
  "select a from /x where b in (select c from /y where d not in (select e from /z limit 3) order by c desc limit 5) or f = 1",
  "select count(*) from /x group by a having max(b) in (select c from /y as of '2020-01-01')",
  "select distinct a from /x as of '2020-01-01' union all select b from /y",
  "select a.*, b.y from /c1 as of '2020-01-01' a join (b:/c2) on b.k = a.k",
  "select load['2026-01-01':'2026-01-02'], avg(load[:?], '5 minute') as a, config['os'] from /x where load['2026-01-01':] is not null",
  "select a from /x cursor '' ",
  "select a from /x cursor where b = 1 order by a limit 5 cursor ? as of '2020-01-01'",
  "select a from /x union select b from /y order by a desc limit 5 offset 1 as of '2020-01-01'",
  "begin batch insert into /a f=1; begin select * from /b end; end",
  "match short path m, p (a:/ns/x where h='1' limit 5)-[:contain*2]->()<-[*]-('b:1','b:2')-[:net.link]-(:box) union () -[*1]-> (m:\"x\") return f,g until 'b:*' diff '2020-01-01'",
  "match (m:/ns/x/) <- [:t] - (p) where m.size > 1 and p.host = 'h' return f all path as of '2020-01-01'",
])("prints so that it parses to the same again: %s", (text) => {
  const once = parsed(text);
  expect(once).toHaveLength(1);
  expect(parsed(once.join(";"))).toEqual(once);
});

test("edges without brackets are one step of any type", () => {
  expect(parsed("match (a) -> (b) <- (c) <-- (d) - (e)")).toEqual(["MATCH (a)-[]->(b)<-[]-(c)<-[]-(d)-[]-(e)"]);
});

test.each([
  ["select * form /x", 1, 10, 'expected "," or FROM but found form'],
  ["select *\nfrom /x\n where a = b", 3, 12, "expected a value, or a column in brackets, but found b"],
  ["select * from /x where a like", 1, 30, "expected a value but found the end"],
  ["select 'abc", 1, 8, "expected a closing ' for the text that begins here but found the end"],
  ["select a b from /x", 1, 10, 'expected AS, "," or FROM but found b'],
  ["selec", 1, 1, 'expected ";", a statement or the end but found selec'],
  ["insert into /a (f,g) values (1)", 1, 29, "expected 2 values but found 1"],
  ["begin select * from /a", 1, 23, "END"],
  [
    "select a from /x limit 1 union select a from /y",
    1,
    26,
    "ORDER BY, LIMIT, OFFSET and CURSOR stand after the last SELECT of a UNION",
  ],
  ["select a from /x union select a from /y union all select a from /z", 1, 1, "UNION and UNION ALL cannot be mixed"],
  ["select load['a' from /x", 1, 17, 'expected ":" but found from'],
  ["select * from /x where a @ 1", 1, 26, 'the character "@"'],
  ["select * from /x /* never ends", 1, 18, "*/"],
])("a text that does not parse is an error with its place: %s", (text, line, column, complaint) => {
  const error = failure(text);
  expect(error.code).toBe("syntax");
  expect(error.details).toMatchObject({ line, column });
  expect(error.message).toContain(complaint);
  expect(error.message).toMatch(/^\[Parser\] at line \d+ column \d+: /);
});

test.each([
  ["slect a from /x", "SELECT", 1],
  ["select a from /x; udpate /x set a=1", "UPDATE", 19],
  ["select a form /x", "FROM", 10],
  ["select a from /x b wher a = 1", "WHERE", 20],
])("a misspelt keyword is told with the nearest that is expected: %s", (text, nearest, column) => {
  const error = failure(text);
  expect(error.message.endsWith(`; did you mean ${nearest}?`)).toBe(true);
  expect(error.details).toMatchObject({ line: 1, column, nearest });
});

test("a keyword in a wrong place is no misspelt one", () => {
  expect(failure("batch select a from /x").details).toEqual({ line: 1, column: 1 });
});

test("lines and columns count as an editor does, in UTF-16 units", () => {
  const place = (text: string) => failure(text).details;
  expect(place("select a\r\nfrom /x\r\n\twhere ==")).toEqual({ line: 3, column: 8 });
  expect(place("-- \u{1F600}\nselect '\u{1F600}' frm")).toMatchObject({ line: 2, column: 13 });
  expect(place("select a from /x;\n\nselect 名 ==")).toMatchObject({ line: 3, column: 11 });
});

test("a statement cut off anywhere is a syntax error or a shorter statement, never anything else", () => {
  const text =
    "select a, max(b) as c from /x/ where (a in ('1', 2) and b >= {\"k\":[1]}) group by a order by a desc limit 10";
  for (let end = 0; end < text.length; end += 1) {
    try {
      parseScript(text.slice(0, end));
    } catch (error) {
      expect(error, text.slice(0, end)).toMatchObject({ code: "syntax" });
    }
  }
});

test.each([
  ["parentheses", (n: number) => `select * from /a where ${"(".repeat(n)}a=1${")".repeat(n)}`],
  ["NOT", (n: number) => `select * from /a where ${"not ".repeat(n)} a=1`],
  ["lists", (n: number) => `insert into /a f=${"[".repeat(n)}${"]".repeat(n)}`],
  ["maps", (n: number) => `insert into /a f=${'{"k":'.repeat(n)}1${"}".repeat(n)}`],
  ["batches", (n: number) => `${"begin ".repeat(n)}select * from /a;${" end".repeat(n)}`],
  ["EXPLAIN", (n: number) => `${"explain ".repeat(n)}select * from /a`],
])("%s nest up to the limit and are refused cleanly beyond it", (_, make) => {
  expect(parseScript(make(MQL_NESTING_MAX)).statements).toHaveLength(1);
  for (const depth of [MQL_NESTING_MAX + 1, 3_000, 100_000]) expect(failure(make(depth)).code).toBe("too_large");
});

test("long flat texts do not nest, and one comparison too many is told", () => {
  const conditions = (count: number): string =>
    Array.from({ length: count }, (_, index) => `a = ${index}`).join(" or ");
  const condition = parseConditionText(conditions(MQL_CONDITIONS_MAX));
  expect(condition).toMatchObject({ kind: "or" });
  expect(printCondition(condition).length).toBeGreaterThan(MQL_CONDITIONS_MAX * 5);
  expect(() => parseConditionText(conditions(MQL_CONDITIONS_MAX + 1))).toThrow(
    `at most ${MQL_CONDITIONS_MAX} comparisons`,
  );
});

test("what is read in one piece is bounded, and told by its place", () => {
  const select = "select name from /m/item where name = 1 ";
  expect(failure(`${select}\nand ${"主".repeat(MQL_WORD_MAX_CHARACTERS + 1)} = 1`)).toMatchObject({
    code: "too_large",
    details: { limit: "MQL_WORD_MAX_CHARACTERS", line: 2, column: 5 },
  });
  for (const blank of ["\n", "\u3000", "/**/"]) {
    expect(failure(`${select}${blank.repeat(MQL_BLANKS_MAX + 1)} limit 1`)).toMatchObject({
      code: "too_large",
      details: { limit: "MQL_BLANKS_MAX", line: 1 },
    });
  }
  expect(parsed(`${select}${"\n".repeat(MQL_BLANKS_MAX - 2)} limit 1`)).toHaveLength(1);
  expect(parsed(`select ${"主".repeat(MQL_WORD_MAX_CHARACTERS)} from /m/item`)).toHaveLength(1);
});
