import { describe, expect, it, vi } from "vitest";
import { CsvReader } from "../../../../common/csv/reader.ts";
import { classView } from "../../../../test/helpers/mql/class-views.ts";
import { compileRule, missingFields } from "../definitions/compile.ts";
import { CsvRows } from "./csv.ts";
import { headingsOf } from "./csv-lines.ts";
import { readRuleText } from "../definitions/options.ts";
import { ruleWarnings } from "../definitions/warnings.ts";

const CLASS = classView("/ns/sale", { name: "varchar", n: "int", note: "text", tags: "set" });
const HEAD = "--class=/ns/sale\n--parser=csv\n";
const FIELDS = `${HEAD}--fields=name,n,note\n--fields_type=VAR,INT,VAR\n`;

function parsed(rule: string, lines: readonly string[], heading?: string): readonly unknown[] {
  const raw = lines.map((text) => ({ text, timeMs: 0, host: "h", source: "s", groups: {}, heading }));
  return compileRule(rule, CLASS)
    .parse(raw)
    .map((record) => (record.ok ? record.values : record.error));
}

describe("a heading line", () => {
  it("is left out wherever it stands, when it names the fields of the rule", () => {
    const lines = ["\uFEFFname,n,note", "a,1,x", 'name,"n" , note', "note,n,name", "name,2,x"];
    expect(parsed(`${FIELDS}--header=true\n`, lines)).toEqual([
      { name: "a", n: 1, note: "x" },
      'The field n is no INT: "n".',
      { name: "name", n: 2, note: "x" },
    ]);
    expect(parsed(`${FIELDS}--header=true\n`, ["name,n", "name,n,note,"])).toEqual([
      'The field n is no INT: "n".',
      "It has 4 columns where the rule names 3.",
    ]);
    expect(parsed(FIELDS, ["name,n,note"])).toEqual(['The field n is no INT: "n".']);
    expect(parsed(`${FIELDS}--header=false\n`, ["name,n,note"])).toEqual(['The field n is no INT: "n".']);
  });

  it("is left out however many blanks fill its columns, and a long row that is none is a row", () => {
    const filled = ["name", '"n"', "note"].map((name) => name.padEnd(1_000)).join("|");
    const rule = `${FIELDS}--header=true\n--separator=|\n`;
    expect(parsed(rule, [filled, `name|1|${"x".repeat(1_000)}`])).toEqual([
      { name: "name", n: 1, note: "x".repeat(1_000) },
    ]);
    expect(parsed(`${FIELDS}--header=true\n`, ['"name","n","note"', '"""n","",'])).toMatchObject([{ name: '"n' }]);
  });

  it("of short names in quotes, with a mark, is left out, and no other row is read for its sake", () => {
    const rule = `${HEAD}--header=true\n--fields=a,b,c\n--var_name=field a\n`;
    expect(parsed(rule, ['\uFEFF"a","b","c"', '"x",1,2'])).toEqual([{ name: "x" }]);
    const reads = vi.spyOn(CsvReader.prototype, "take");
    try {
      parsed(rule, ['"x",1,2', `"a",b,${"c".repeat(100)}`]);
      expect(reads).toHaveBeenCalledTimes(2);
    } finally {
      reads.mockRestore();
    }
  });

  it("names the fields of a rule that names none, and columns without a name are left out", () => {
    const rule = `${HEAD}--header\n--fields_type=INT,VAR,VAR\n--var_note=field Remark\n`;
    expect(parsed(rule, ["1,ignored,a,x", "n,,name,Remark", "2"], "n,,name,Remark")).toEqual([
      { n: 1, name: "a", note: "x" },
      { n: 2 },
    ]);
    expect(parsed(rule, ["1,2,3"], "n,name")).toEqual(["It has 3 columns where the heading line names 2."]);
  });

  it("that is needed and not there, or makes no sense, is the error of the record", () => {
    const rule = `${HEAD}--header\n`;
    expect(parsed(rule, ["1,2"])).toEqual([expect.stringContaining("name the fields by --fields")]);
    expect(parsed(rule, ["1,2"], "a,b,a")).toEqual(["The heading line names the field a twice."]);
    expect(parsed(rule, ["1,2"], ",")).toEqual(["The heading line names no fields."]);
    expect(parsed(rule, ["1,2"], '"a')).toEqual(["The heading line: Value 1: its quotes are not closed."]);
  });

  it("of many names is not searched through for each value", () => {
    const heading = [...Array.from({ length: 2_000 }, (_, at) => `c${at}`), "name"].join(",");
    const searches = vi.spyOn(Array.prototype, "indexOf");
    try {
      expect(parsed(`${HEAD}--header\n`, [`${",".repeat(2_000)}a`], heading)).toEqual([{ name: "a" }]);
      expect(searches.mock.calls.length).toBeLessThan(100);
    } finally {
      searches.mockRestore();
    }
  });

  it("stands in for columns of a class that has none", () => {
    const none = classView("/ns/none", { tags: "set" });
    expect(missingFields(readRuleText(`${HEAD}--header\n`), none)).toBeUndefined();
    expect(missingFields(readRuleText(HEAD), none)).toContain("--fields");
  });
});

describe("a heading line of W3C", () => {
  const RULE = `${HEAD}--header=w3c\n--var_name=field cs(User-Agent)\n--var_n=field sc-status\n--var_note=field cs-uri-stem\n`;
  const IIS = "#Fields: date time cs-uri-stem sc-status cs(User-Agent)";

  it("names the fields, and `-` is no value", () => {
    const lines = [
      "#Software: Microsoft Internet Information Services 10.0",
      IIS,
      "2026-11-23 10:15:02 /cart 200 Mozilla/5.0+(X11)",
    ];
    expect(parsed(RULE, [...lines, "2026-11-23 10:15:03 - 404 -"], IIS)).toEqual([
      { name: "Mozilla/5.0+(X11)", n: "200", note: "/cart" },
      { n: "404" },
    ]);
  });

  it.each([
    ["with tabs between the values", "", "2026-11-23\t10:15:02\t/cart\t200\tcurl"],
    ["with several blanks between them", "", "2026-11-23 10:15:02  /cart   200 curl "],
    ["with another separator", "--separator=,\n", "2026-11-23,10:15:02,/cart,200,curl"],
    ["with quotes", '--quote="\n', '2026-11-23 10:15:02 /cart 200 "curl"'],
  ])("stands before rows %s", (_, options, row) => {
    expect(parsed(`${RULE}${options}`, [row], IIS)).toEqual([{ name: "curl", n: "200", note: "/cart" }]);
  });

  it("has commas between its names, or a mark of UTF-8 before it", () => {
    const heading = "\uFEFF#fields: cs-uri-stem,sc-status, cs(User-Agent)";
    expect(parsed(`${RULE}--separator=,\n--quote="\n`, [heading, '"/a,b",200,curl'], heading)).toEqual([
      { name: "curl", n: "200", note: "/a,b" },
    ]);
  });

  it("need not stand before comments", () => {
    expect(parsed(RULE, ["#Software: IIS", "", IIS])).toEqual([]);
    expect(parsed(`${HEAD}--header\n--comment_sign=#\n`, ["# by x"])).toEqual([]);
  });

  it("that is not there, or of the other kind, is the error of the record", () => {
    expect(parsed(RULE, ["/cart 200 curl"])).toEqual([expect.stringContaining("without the line #Fields:")]);
    expect(parsed(RULE, ["/cart 200 curl"], "a b c")).toEqual([expect.stringContaining("--header=w3c")]);
    expect(parsed(`${HEAD}--header\n`, ["a,1"], IIS)).toEqual([expect.stringContaining("--header=w3c")]);
    expect(parsed(RULE, ["a b c d e f"], IIS)).toEqual(["It has 6 columns where the heading line names 5."]);
    expect(parsed(RULE, ["a"], "#Fields:")).toEqual(["The heading line names no fields."]);
  });

  it.each(["--fields=a,b", "--fields_type=INT,VAR"])("leaves no room for %s", (option) => {
    expect(() => parsed(`${HEAD}--header=w3c\n${option}\n`, [])).toThrow("leave out --fields");
  });

  it("holds until the next one", () => {
    const { csv } = compileRule(RULE, CLASS);
    const texts = ["x", IIS, "y", "#Fields: a", "z"];
    expect(headingsOf(texts, { csv, first: "#Fields: b" })).toEqual([
      "#Fields: b",
      IIS,
      IIS,
      "#Fields: a",
      "#Fields: a",
    ]);
    expect(headingsOf(texts, { csv: undefined, first: undefined })).toEqual(texts.map(() => undefined));
  });

  it("is the first line of a record that has several", () => {
    const { csv } = compileRule(RULE, CLASS);
    expect(headingsOf([`${IIS}\r\n#Date: now`, "y"], { csv, first: undefined })).toEqual([IIS, IIS]);
  });

  it("that names no fields is read once for all records behind it", () => {
    const read = vi.spyOn(CsvRows.prototype, "headingNames");
    expect(parsed(RULE, ["a", "b", "c"], "#Fields: d d")).toEqual(Array(3).fill(expect.stringContaining("d twice")));
    expect(read).toHaveBeenCalledTimes(1);
    read.mockRestore();
  });
});

describe("separators, quotes and escapes", () => {
  it.each([
    ["--separator=;", "a;1;x,y"],
    ["--separator=\\t", "a\t1\tx,y"],
    ["--separator=tab", "a\t1\tx,y"],
    ["--separator=space", 'a 1 "x,y"'],
    ["--quote='", "a,1,'x,y'"],
    ["--separator=|\n--quote=none", "a|1|x,y"],
  ])("are those that the rule names: %s", (option, line) => {
    expect(parsed(`${FIELDS}${option}\n`, [line])).toEqual([{ name: "a", n: 1, note: "x,y" }]);
  });

  it("escape a quote within quotes, and no quotes are characters as others", () => {
    expect(parsed(`${FIELDS}--escape=\\\n`, ['a,1,"say \\"hi\\" \\\\ \\n"'])).toEqual([
      { name: "a", n: 1, note: 'say "hi" \\ \\n' },
    ]);
    expect(parsed(`${FIELDS}--quote=none\n`, ['"a,1,""'])).toEqual([{ name: '"a', n: 1, note: '""' }]);
  });

  it.each([
    ["--separator=", "--separator is one character, or the word tab or space"],
    ["--separator=;;", 'not ";;"'],
    ["--separator=😀", "--separator is one character"],
    ["--quote=''", "tab, space or none"],
    ["--comment_sign=//", "--comment_sign is one character"],
    ['--separator="', "--separator and --quote are the same character."],
    ["--comment_sign=,", "--separator and --comment_sign are the same character."],
    ["--separator=\\\n--escape=\\", "--separator and --escape are the same character."],
    ["--quote=none\n--escape=\\", "--escape is for values in quotes"],
    ["--header=names", "--header is on, off or w3c, not names"],
    ["--separator=;\n--separator=,", "stands twice"],
  ])("are refused when they are none: %s", (option, message) => {
    expect(() => parsed(`${FIELDS}${option}\n`, [])).toThrow(message);
  });
});

describe("values and lines that stand for none", () => {
  it("are an empty value without quotes, told from an empty text, or the text that the rule names", () => {
    expect(parsed(FIELDS, [",1,", '"",1,""'])).toEqual([
      { name: "", n: 1, note: "" },
      { name: "", n: 1, note: "" },
    ]);
    expect(parsed(`${FIELDS}--null=\n`, [",1,", '"",1,""'])).toEqual([{ n: 1 }, { name: "", n: 1, note: "" }]);
    expect(parsed(`${FIELDS}--null=-\n`, ["-,-,x", '"-",1,'])).toEqual([{ note: "x" }, { name: "-", n: 1, note: "" }]);
  });

  it("are lines of comments", () => {
    expect(parsed(`${FIELDS}--comment_sign=#\n`, ["#Version: 1.0", "a,1,#x", '"#b",2,x'])).toEqual([
      { name: "a", n: 1, note: "#x" },
      { name: "#b", n: 2, note: "x" },
    ]);
  });
});

it("rows of several lines, with a mark, or with broken quotes", () => {
  expect(parsed(FIELDS, ['\uFEFFa,1,"x\r\ny"', "a,1\nb,2", "a,1\rb,2", '"a,1,x', '"a"b,1,x', '"a" ,1,x'])).toEqual([
    { name: "a", n: 1, note: "x\r\ny" },
    "It has more than one line outside quotes.",
    "It has more than one line outside quotes.",
    "Value 1: its quotes are not closed.",
    "Value 1: text follows its closing quote; a quote inside of quotes is written twice.",
    { name: "a", n: 1, note: "x" },
  ]);
});

describe("options of csv", () => {
  it("leave the comments of earlier rules what they were, and say so where they look like options", () => {
    const comments =
      "-- null values are kept\n-- header: the first line\n--separator ;\n-- quote=x\n-- comment\n--time\n--quote\n--null\n";
    expect(parsed(comments + FIELDS, ["a,1,x"])).toEqual([{ name: "a", n: 1, note: "x" }]);
    expect(ruleWarnings(comments + FIELDS)).toEqual([
      "Line 3: --separator is an option only as --separator=…, and was ignored.",
      "Line 4: --quote is an option only as --quote=…, and was ignored.",
    ]);
    expect(ruleWarnings(`--see below\n// --time when\n${FIELDS}`)).toEqual([
      "Line 2: --time is an option only as --time=…, and was ignored.",
    ]);
    expect(ruleWarnings(`${FIELDS}--separator: ;\n`)).toEqual([
      "Line 5: --separator is an option only as --separator=…, and was ignored.",
    ]);
  });

  it("are in vain with other parsers, which a warning says", () => {
    const rule = "--class=/ns/sale\n--parser=json\n--header=true\n--null=\n";
    expect(ruleWarnings(rule)).toEqual([
      "Line 3: --header has no effect: the parser is not csv.",
      "Line 4: --null has no effect: the parser is not csv.",
    ]);
    expect(ruleWarnings(`${FIELDS}--header=true\n--null=\n`)).toEqual([]);
  });
});
