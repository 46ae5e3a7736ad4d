import { describe, expect, it } from "vitest";
import { RECORD_MAX_BYTES } from "../../../../common/limits.ts";
import { classView } from "../../../../test/helpers/mql/class-views.ts";
import { searchesOf } from "../../../../test/helpers/mql/searches.ts";
import { expectWithin } from "../../../../test/helpers/time/times.ts";
import { checkRuleText, compileRule, ruleClass } from "./compile.ts";
import type { ParsedRecord, RawRecord } from "../types.ts";

const access = classView("/ns/access", {
  client: "varchar",
  verb: "varchar",
  path: "varchar",
  status: "int",
  bytes: "bigint",
  host: "varchar",
  note: "map",
});

function raw(text: string): RawRecord {
  return { text, timeMs: 1_000, host: "web-1", source: "/var/log/a.log", groups: { site: "shop" } };
}

function parse(rule: string, ...lines: readonly string[]): readonly ParsedRecord[] {
  return compileRule(rule, access).parse(lines.map(raw));
}

function values(rule: string, line: string): unknown {
  const [parsed] = parse(rule, line);
  return parsed?.ok ? parsed.values : parsed;
}

describe("option lines", () => {
  it.each(["--class=/ns/access", "--class /ns/access", "--class: /ns/access", "  -- class = /ns/access/"])(
    "are read as %j",
    (line) => {
      expect(ruleClass(`-- my rule\n${line}\n--parser=json`)).toBe("/ns/access");
    },
  );

  it("must name a class", () => {
    expect(() => ruleClass("--parser=json")).toThrow(/no option --class/);
  });

  it("must not stand twice", () => {
    expect(() => ruleClass("--class=/a\n--class=/b")).toThrow(/line 2: the option --class stands twice/);
  });

  it("name the class by a prepared INSERT, too, and never two", () => {
    const insert = "--mqltmpl=insert into /ns/access (client) values (?)\n--mqltmpl_fields=a\n";
    expect(ruleClass(insert)).toBe("/ns/access");
    expect(ruleClass(`--class=/ns/access/\n${insert}`)).toBe("/ns/access");
    expect(() => ruleClass(`--class=/ns/other\n${insert}`)).toThrow(/Line 2: --mqltmpl is for \/ns\/access, --class/);
  });

  it("end where a body begins, whose lines keep their numbers; with --direct there is none", () => {
    const text = '--class=/ns/access\n\n--parser=json\nsetvar("a", 1)\n-- class=/x';
    const compiled = compileRule(text, access);
    expect(compiled.body).toEqual({ language: "lua", script: '\n\n\nsetvar("a", 1)\n-- class=/x', isIgnored: false });
    expect(compileRule(`--direct\n${text}`, access).body).toBeUndefined();
    const javascript = compileRule("// --class: /ns/access\n//--language=js\nvar a = 1;", access);
    expect(javascript.body).toMatchObject({ language: "javascript", script: "\n\nvar a = 1;" });
  });

  it.each([
    ["--class=/ns/access", /no option --parser/],
    ["--class=/ns/access\n--parser=xml", /no parser named xml/],
    ["--class=/ns/access\n--parser=csv\n--fields=a\n--fields_type=NUMBER", /knows INT, FLOAT, BOOL, VAR, not NUMBER/],
    ["--class=/ns/access\n--parser=grok", /no pattern/],
    ["--class=/ns/access\n--parser=grok\n--pattern_1=%{NOPE:a}", /no grok pattern named NOPE/],
    ["--class=/ns/access\n--parser=grok\n--pattern_1=(?<client>(a+)", /not usable/],
    ["--class=/ns/access\n--parser=json\n--var_nope=field a", /no column nope/],
    [
      "--parser=json\n--mqltmpl=insert into /ns/access (nope) values (?)\n--mqltmpl_fields=a",
      /Line 2: .*no column nope/,
    ],
    ["--class=/ns/access\n--parser=bitlog\n--fields=client,path", /three fields/],
    ["--class=/ns/access\n--parser=bitlog\n--fields=client,path,path", /three fields/],
    ["--class=/ns/access\n--parser=bitlog\n--fields_type=VAR,VAR,VAR", /no --fields_type/],
    ["--class=/ns/access\n--parser=json\n--var_client=a b c", /expected field f/],
  ])("that make no sense are refused: %j", (rule, message) => {
    expect(() => parse(rule)).toThrow(message);
  });

  it.each([
    ["--class=/ns/later\n--parser=xml", /no parser named xml/],
    ["--class=/ns/later\n--parser=grok\n--pattern_1=%{NOPE:a}", /no grok pattern named NOPE/],
    ["--class=/ns/later\n--parser=json\n--language=perl\nreturn 1", /lua or javascript, not in perl/],
    ["--parser=json\n--mqltmpl=insert of what", /Line 2: --mqltmpl: .*line 1 column 8/],
    ["--parser=json\n--mqltmpl=select a from /ns/later", /Line 2: --mqltmpl is one INSERT/],
    ["--mqltmpl=insert into /ns/later (a) values (?); insert into /ns/later (a) values (?)", /one INSERT/],
    ["--mqltmpl=insert into /ns/later (a) values (?), (?)\n--mqltmpl_fields=a,b", /one row/],
    [
      "--mqltmpl=insert into /ns/later (a, b) values (?, ?)\n--mqltmpl_fields=a",
      /has 2 \?, and --mqltmpl_fields names 1/,
    ],
    ["--class=/ns/later\n--mqltmpl_fields=a", /Line 2: --mqltmpl_fields stands without --mqltmpl/],
    ["--class=/ns/later\n--retry=3\nreturn 1", /--retry is on or off, not 3/],
    ["--class=/ns/later\n--retry_total=0\nreturn 1", /from 1 to 100, not 0/],
    ["--class=/ns/later\n--retry_total=many\nreturn 1", /from 1 to 100, not many/],
    ["--class=/ns/later\n--raw_bytes=none", /--raw_bytes is on or off, not none/],
    ["--class=/ns/later\n--retry_interval=0s\nreturn 1", /a time such as 30s, 1 min or 2h, not 0s/],
    ["--class=/ns/later\n--retry_interval=5 days\nreturn 1", /a time such as/],
    ["--class=/ns/later\n--retry_total=100\n--retry_interval=2 hours\nreturn 1", /at most 7 days/],
    ["--class=/ns/later\n--cache_classes=later\nreturn 1", /paths of classes, not later/],
    ["--class=/ns/later\n--cache_classes=/ns/a WHERE x\nreturn 1", /paths of classes, not \/ns\/a WHERE x/],
    [
      `--class=/ns/later\n--cache_classes=${Array.from({ length: 9 }, (_, at) => `/ns/a${at}`).join()}\nreturn 1`,
      /more than 8/,
    ],
  ])("are looked at before their class is there: %j", (rule, message) => {
    expect(() => checkRuleText(rule)).toThrow(message);
    expect(() => checkRuleText("--class=/ns/later\n--parser=text")).not.toThrow();
  });
});

describe("a json rule", () => {
  it.each([
    ["field user.name", '{"user":{"name":"ann"}}', "ann"],
    ["OBJECT.user.name", '{"user":{"name":"ann"}}', "ann"],
    ["user.name.first", '{"user":{"name":{"first":"ann"}}}', "ann"],
    ["field user.name", '{"user":{"name":"ann"},"user.name":"whole"}', "whole"],
    ["field user.name", '{"user.name":null,"user":{"name":"ann"},"status":1}', undefined],
    ["field a.b.c", '{"a":{"b":1},"a.b":{"c":"named with a point"}}', "named with a point"],
    ["field a.b.c", '{"a":{"b":"text"},"status":1}', undefined],
    ["field a.length", '{"a":[1,2],"status":1}', undefined],
    ["field a.constructor", '{"a":{},"status":1}', undefined],
    ["join user.name,'@',user.host", '{"user":{"name":"ann","host":"web-1"}}', "ann@web-1"],
  ])("takes nested members: %s of %s", (source, line, client) => {
    const found = values(`--class=/ns/access\n--parser=json\n--var_client=${source}\n`, line);
    expect((found as { client?: unknown }).client).toBe(client);
  });

  it("does not call a member unused of which a path takes something", () => {
    const unused: string[] = [];
    const rule = compileRule("--class=/ns/access\n--parser=json\n--var_client=field user.name\n", access);
    rule.parse([raw('{"user":{"name":"ann"},"other":1}')], (field) => unused.push(field));
    expect(unused).toEqual(["other"]);
  });

  const rule = "--class=/ns/access\n--parser=json\n";

  it("takes the members that the class has, and nothing else", () => {
    expect(values(rule, '{"client":"1.2.3.4","status":200,"unknown":1,"note":{"a":"b"}}')).toEqual({
      client: "1.2.3.4",
      status: 200,
      note: { a: "b" },
    });
  });

  it("never takes a member of the language for a member of the record", () => {
    expect(values(rule, '{"client":"a","__proto__":{"status":1},"constructor":1}')).toEqual({ client: "a" });
  });

  it("says what is wrong with a record and goes on with the next", () => {
    const parsed = parse(rule, '{"status":1}', "not json", "[1]", "", '{"other":1}', '{"status":2}');
    expect(parsed.map((record) => (record.ok ? record.values : record.error))).toEqual([
      { status: 1 },
      'Not valid JSON: unexpected "n" at line 1 column 1.',
      "It is no JSON object.",
      "It holds no field of the rule's class.",
      { status: 2 },
    ]);
    expect(parsed.map((record) => record.ordinal)).toEqual([0, 1, 2, 4, 5]);
  });
});

describe("a csv rule", () => {
  const rule = "--class=/ns/access\n--parser=csv\n--fields=client,status,path\n--fields_type=VAR,INT,VAR\n";

  it("takes the columns in the order of its fields, with their types", () => {
    expect(values(rule, "1.2.3.4,200,/a")).toEqual({ client: "1.2.3.4", status: 200, path: "/a" });
  });

  it("knows quotes, line breaks inside them, and empty columns", () => {
    expect(values(rule, '"a,b",,"say ""hi""\nthere"')).toEqual({ client: "a,b", path: 'say "hi"\nthere' });
  });

  it("takes no characters for the empty text, in quotes or not", () => {
    for (const line of [",200,", '"",200,""'])
      expect(values(rule, line)).toEqual({ client: "", status: 200, path: "" });
  });

  it("refuses a record that does not fit", () => {
    expect(values(rule, "a,b,c")).toMatchObject({ ok: false, error: 'The field status is no INT: "b".' });
    expect(values(rule, "a,1,c,d")).toMatchObject({ ok: false, error: "It has 4 columns where the rule names 3." });
  });

  it("takes the order of the class without fields", () => {
    expect(values("--class=/ns/access\n--parser=csv", "c,GET,/p,200")).toEqual({
      client: "c",
      verb: "GET",
      path: "/p",
      status: "200",
    });
  });
});

describe("a rule with a prepared INSERT", () => {
  it("fills the columns that this names, by its fields in their order, and no others", () => {
    const insert = "insert into /ns/access (path, client, status, note) values (?, 'fixed', 200, {'k': ?})";
    const rule = `--parser=json\n--mqltmpl=${insert}\n--mqltmpl_fields=url, OBJECT.who\n`;
    expect(values(rule, '{"url":"/a","who":"ann","verb":"GET","client":"x"}')).toEqual({
      path: "/a",
      client: "fixed",
      status: 200,
      note: { k: "ann" },
    });
    expect(values(`${rule}--var_verb=field verb\n`, '{"verb":"GET"}')).toMatchObject({ verb: "GET", note: {} });
    expect(values(rule, "{}")).toEqual({ client: "fixed", status: 200, note: {} });
  });
});

describe("a bitlog rule", () => {
  it("has the file's name under hosts, its path, and the lines of the record", () => {
    const rule = "--class=/ns/access\n--parser=bitlog\n--fields=client,path,note\n";
    expect(values(rule, "ERROR one\r\n  at two")).toEqual({
      client: `${raw("").host}:${raw("").source}`,
      path: raw("").source,
      note: ["ERROR one", "  at two"],
    });
    expect(values(`${rule}--var_verb=field path\n`, "x")).toMatchObject({ verb: raw("").source });
  });
});

describe("a text rule", () => {
  it("puts the whole line into the first of its fields", () => {
    expect(values("--class=/ns/access\n--parser=text\n--fields=path", "a, b; c")).toEqual({ path: "a, b; c" });
  });
});

describe("a grok rule", () => {
  const line = '10.0.0.1 - bob [21/Nov/2026:13:55:36 +0000] "GET /index.html HTTP/1.1" 200 2326';

  it("takes named patterns", () => {
    const rule =
      '--class=/ns/access\n--parser=grok\n--pattern_1=%{IP:client} .*"%{WORD:verb} %{NOTSPACE:path}[^"]*" %{INT:status:int} %{INT:bytes:int}';
    expect(values(rule, line)).toEqual({
      client: "10.0.0.1",
      verb: "GET",
      path: "/index.html",
      status: 200,
      bytes: 2326,
    });
  });

  it("maps what an ordinary pattern captures to the fields of the class", () => {
    const rule =
      "--class=/ns/access\n--parser=grok\n--pattern_1=%{COMMONAPACHELOG}\n--var_client=field clientip\n--var_status=response\n--var_path=request";
    expect(values(rule, line)).toEqual({
      client: "10.0.0.1",
      verb: "GET",
      path: "/index.html",
      status: "200",
      bytes: "2326",
    });
  });

  it("gives numbers as they are written, and leaves what is none to the column", () => {
    const captured = (type: string, text: string): unknown => {
      const rule = `--class=/ns/access\n--parser=grok\n--pattern_1=^%{GREEDYDATA:path:${type}}$`;
      return (values(rule, text) as { readonly path?: unknown }).path;
    };
    for (const type of ["int", "float"]) {
      expect(captured(type, "9007199254740991")).toBe(9007199254740991);
      expect(captured(type, "-9007199254740993")).toBe("-9007199254740993");
      expect(captured(type, "many")).toBe("many");
      expect(captured(type, "1e999")).toBe("1e999");
    }
    expect(captured("int", "12.7")).toBe(12);
    expect(captured("int", "9007199254740993.7")).toBe("9007199254740993");
    expect(captured("float", "0.25")).toBe(0.25);
  });

  it("tries its patterns in their order", () => {
    const rule = "--class=/ns/access\n--parser=grok\n--pattern_1=^%{INT:status:int}$\n--pattern_2=^%{WORD:verb}$";
    expect(values(rule, "12")).toEqual({ status: 12 });
    expect(values(rule, "ab")).toEqual({ verb: "ab" });
    expect(values(rule, "a b")).toMatchObject({ ok: false, error: "No pattern of the rule matches it." });
  });

  it("takes the expression in --fields, and groups written as such", () => {
    expect(values("--class=/ns/access\n--parser=grok\n--fields=%{IP:client} (?<verb>\\w+)", "::1 PUT")).toEqual({
      client: "::1",
      verb: "PUT",
    });
    expect(
      values("--class=/ns/access\n--parser=grok\n--fields=(a|b) %{IP:client} (x) %{WORD:verb}", "b ::1 x PUT"),
    ).toEqual({ client: "::1", verb: "PUT" });
  });
});

describe("var lines", () => {
  it("say where a column gets its value from", () => {
    const rule = [
      "--class=/ns/access",
      "--parser=json",
      "--direct=true",
      "--var_client=field ip",
      "--var_verb='fixed'",
      "--var_path=join a,'/',b",
      "--var_note=map first:a,second:OBJECT.b",
      "--var_host=field _host",
      "--var_status=_time",
    ].join("\n");
    expect(values(rule, '{"ip":"x","a":"1","b":2}')).toEqual({
      client: "x",
      verb: "fixed",
      path: "1/2",
      note: { first: "1", second: 2 },
      host: "web-1",
      status: 1_000,
    });
  });

  it("make a map with any names, __proto__ too", () => {
    const rule = "--class=/ns/access\n--parser=json\n--direct=true\n--var_note=map __proto__:a,second:b";
    const { note } = values(rule, '{"a":"1","b":"2"}') as { note: object };
    expect(Object.entries(note).join()).toBe("__proto__,1,second,2");
  });

  it("see the groups of the file's match as fields", () => {
    expect(values("--class=/ns/access\n--parser=text\n--fields=path\n--var_client=field site", "x")).toEqual({
      path: "x",
      client: "shop",
    });
  });
});

it("a rule with --ignore stores nothing", () => {
  expect(parse("--class=/ns/access\n--parser=json\n--ignore", '{"status":1}')).toEqual([]);
});

describe("lines that a host logs to slow the controller down", () => {
  const LINE = '203.0.113.7 - frank [10/Oct/2025:13:55:36 +0000] "GET /a HTTP/1.1" 200 2326 "-" "curl/8"';
  const grok = (...patterns: readonly string[]): string =>
    `--class=/ns/access\n--parser=grok\n${patterns.map((pattern, at) => `--pattern_${at + 1}=${pattern}\n`).join("")}--var_client=field clientip`;

  it.each([
    ["%{COMBINEDAPACHELOG}", "a"],
    ["%{COMBINEDAPACHELOG}", LINE.slice(0, 60)],
    ["%{COMBINEDAPACHELOG}", "1:"],
    ["%{IP:clientip} x", "1:"],
    ["%{IP:clientip} x", "1"],
    ["%{SYSLOGLINE}", "Oct 11 22:14:15 a"],
    ["%{URI:clientip} x", "http://a:b"],
    ["%{EMAILADDRESS:clientip} x", "a.@"],
    ["%{PATH:clientip} x", "/a"],
  ])("are looked through at most once, in a linear engine, and kept as errors: %s, 256 KB of %j", (pattern, piece) => {
    const line = raw(piece.repeat(RECORD_MAX_BYTES / piece.length));
    let parsed: ParsedRecord | undefined;
    const { characters, backtracking } = searchesOf(() => {
      const rule = compileRule(grok(pattern), access);
      const before = process.cpuUsage();
      [parsed] = rule.parse([line]);
      expectWithin(process.cpuUsage(before).user, 1_000_000);
    });
    expect(backtracking).toEqual([]);
    expect(characters).toBeLessThan(2 * line.text.length);
    expect(parsed).toMatchObject({
      ok: false,
      error: expect.stringMatching(
        /No pattern of the rule matches it|regular expression searches at most \d+|too many/,
      ) as string,
    });
  });

  it("are not tried with all patterns of a rule when that is too much, and say so", () => {
    const rule = grok(...Array.from({ length: 60 }, (_, at) => `%{COMBINEDAPACHELOG} ${at}`));
    expect(parse(rule, "a".repeat(4_000))).toMatchObject([
      { ok: false, error: expect.stringContaining("too many to try all patterns") as string },
    ]);
    expect(parse(rule, `${LINE} 59`)).toMatchObject([{ ok: true, values: { client: "203.0.113.7" } }]);
  });

  it("long and honest ones are parsed as short ones are", () => {
    const long = LINE.replace("/a", `/${"abc/%20".repeat(2_000)}`);
    expect(parse(grok("%{COMBINEDAPACHELOG}"), LINE, long)).toMatchObject([
      { ok: true, values: { client: "203.0.113.7" } },
      { ok: true, values: { client: "203.0.113.7" } },
    ]);
  });
});
