import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { parseScript, printStatement, StatementSplitter, type StatementText } from "./index.ts";

function split(
  text: string,
  pieces: (rest: string) => number = (rest) => rest.length,
): readonly (readonly [string, number, number])[] {
  const splitter = new StatementSplitter();
  const found: (StatementText | undefined)[] = [];
  for (let at = 0; at < text.length; ) {
    const size = Math.max(1, pieces(text.slice(at)));
    found.push(...splitter.take(text.slice(at, at + size)));
    at += size;
  }
  found.push(...splitter.end());
  return found.flatMap((one) => (one ? [[one.text, one.start.line, one.start.column] as const] : []));
}

const AWKWARD = [
  "insert into /a b='x;y''；', c=\"q\\\";\\\\\"",
  "\n-- a; comment\n# b;\n/* c; 'd */ select * from /a//e;\n",
  "select `a;b` from /x/end/begin where `begin`=1",
  "begin batch insert into /a b=1; begin; select `end` from /a; end; insert into /a end='z' END",
  "begin select case when a = 1 then case b when 2 then 3 end else 4 end, c from /a; select `case` from /a end",
  "select case when a = 1 then 2 end as b, lower(c) from /a where case = 1 and end = 2",
  "update /a set b = '中文；😀\n' where id = 'a:1'",
];

test("separators in texts, comments, names and batches do not cut, however the script comes in pieces", () => {
  const script = AWKWARD.join(";");
  const whole = split(script);
  expect(whole.map(([text]) => text)).toEqual(AWKWARD);
  const random = seededRandom(7);
  for (let round = 0; round < 200; round += 1)
    expect(split(script, () => Math.floor(random.next() * 9))).toEqual(whole);
});

test("the statements of the pieces are those that the parser finds in the whole", () => {
  const script = `${AWKWARD.slice(0, 1).join(";")} ；; select edge type;;begin insert into /a b=1; insert into /a b=2 end; drop class /x;`;
  const found = split(script).flatMap(([text]) => parseScript(text).statements.map(printStatement));
  expect(found).toEqual(parseScript(script).statements.map(printStatement));
  expect(found).toHaveLength(4);
});

test("every statement knows where it begins", () => {
  expect(split("select * from /a;\n\nselect * from /b;select * from /c")).toEqual([
    ["select * from /a", 1, 1],
    ["\n\nselect * from /b", 1, 18],
    ["select * from /c", 3, 18],
  ]);
});

test("a statement that does not end is refused when it is too long, and not kept whole", () => {
  const splitter = new StatementSplitter();
  expect([...splitter.take("select * from /a;\ninsert into /a b='")]).toHaveLength(0);
  const piece = "x".repeat(1024 * 1024);
  expect(() => {
    for (let count = 0; count < 10; count += 1) Array.from(splitter.take(piece));
  }).toThrow("at line 1 column 18 has more than");
});

test("a statement is handed on before the one behind it is looked for", () => {
  const splitter = new StatementSplitter();
  const taken = splitter.take(`select * from /a;select * from /b;${" ".repeat(200)}`);
  expect(taken.next().value).toMatchObject({ text: "select * from /a" });
  taken.return(undefined);
  expect(Array.from(splitter.end(), (found) => found?.text)).toEqual(["select * from /b"]);
});

test.each([";", "--\n", "''", "/**/", "case when "])(
  "who reads a text without statements has a turn now and then: %j",
  (mark) => {
    const splitter = new StatementSplitter();
    const turns = [...splitter.take(mark.repeat(20_000))];
    expect(turns.length).toBeGreaterThanOrEqual(50);
    expect(new Set(turns)).toEqual(new Set([undefined]));
  },
);
