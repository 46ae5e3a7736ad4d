import { describe, expect, test } from "vitest";
import { LUA_LAYOUT_MAX_CHARACTERS, SCRIPT_MEMORY_MAX_BYTES } from "../../../common/limits.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { LUA_LIBRARY_OBJECTS } from "./declared.ts";
import { LuaVm } from "./vm.ts";

const vm = await LuaVm.open(SCRIPT_MEMORY_MAX_BYTES, { objects: '{"log":["info"]}' });
let texts = 0;

interface Ran {
  readonly answer?: unknown;
  readonly error?: string;
  readonly said: readonly unknown[];
}

/** The global `answer` after a text that has the global `given`, or its error, and its messages. */
function ran(text: string, given: unknown = null): Ran {
  const name = `t${texts++}`;
  const said: unknown[] = [];
  expect(vm.compile(name, text)).toBeUndefined();
  const [report] = vm.run(name, {
    each: [JSON.stringify({ given })],
    results: ["answer"],
    outputMaxCharacters: 1_000_000,
    host: (_, args) => {
      said.push(...(JSON.parse(args) as unknown[]));
      return "";
    },
    isOver: () => false,
  });
  if (report && "results" in report) return { ...(JSON.parse(report.results) as { answer?: unknown }), said };
  return { error: report?.message ?? "", said };
}

test.each(
  LUA_LIBRARY_OBJECTS.flatMap(({ name, functions }) =>
    functions.map((one) => [`${name}.${one.name}`, one.example] as const),
  ),
)("%s does what its example shows", (name, example) => {
  const shown: Readonly<Record<string, unknown>> = {
    "strings.split": "b",
    "strings.replace": "a+b-c",
    "strings.trim": "a",
    "strings.join": "a+b",
    "strings.fields": "b",
    "json.parse": 2,
    "json.string": "[1,true]",
    "time.parse": Date.parse("2026-03-01T10:04:59.250Z"),
    "time.format": "Sun, 1 Mar 2026 10:04",
    "csv.parse": "b,c",
    "csv.string": 'a,"b,c"\n1,true',
  };
  expect(ran(example)).toEqual({ said: [shown[name]] });
});

test("every function of the libraries is declared, and nothing else", () => {
  const declared = LUA_LIBRARY_OBJECTS.flatMap(({ name, functions }) => functions.map((one) => `${name}.${one.name}`));
  const text = `answer = {} for _, name in ipairs(given) do
    local library, member = name:match("(.*)%.(.*)") if type(_G[library][member]) == "function" then table.insert(answer, name) end end`;
  expect(ran(text, declared).answer).toEqual(declared);
});

describe("a time", () => {
  const READ = "\nanswer = time.parse(given[1], given[2])";

  test.each([
    ["2026-03-01 10:04:59.250", "yyyy-MM-dd HH:mm:ss.SSS", "2026-03-01T10:04:59.250Z"],
    ["20260301100459", "yyyyMMddHHmmss", "2026-03-01T10:04:59Z"],
    ["01/Mar/2026:10:04:59 +0130", "dd/MMM/yyyy:HH:mm:ss Z", "2026-03-01T08:34:59Z"],
    ["2026-03-01T10:04:59.5-02:00", "yyyy-MM-dd'T'HH:mm:ss.SXXX", "2026-03-01T12:04:59.500Z"],
    ["2026-03-01T10:04:59Z", "yyyy-MM-dd'T'HH:mm:ssXXX", "2026-03-01T10:04:59Z"],
    ["Sun, 1 mar 26 12:00 am", "EEE, d MMM yy h:mm a", "2026-03-01T00:00:00Z"],
    ["12:05 PM", "hh:mm a", "1970-01-01T12:05:00Z"],
    ["1/3/1969", "d/M/yyyy", "1969-03-01T00:00:00Z"],
    ["Nov  7 10:15", "MMM d HH:mm", "1970-11-07T10:15:00Z"],
    ["2016-12-31 23:59:60", "yyyy-MM-dd HH:mm:ss", "2017-01-01T00:00:00Z"],
    ["69 o'clock", "yy' o''clock'", "1969-01-01T00:00:00Z"],
    ["2024-02-29 23:59:59.123456", "yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-02-29T23:59:59.123Z"],
    ["0000-01-01", "yyyy-MM-dd", "0000-01-01T00:00:00Z"],
  ])("%s is read by %s", (text, layout, time) => {
    expect(ran(READ, [text, layout]).answer).toBe(Date.parse(time));
  });

  test.each([
    ["2026-02-29", "yyyy-MM-dd"],
    ["2026-13-01", "yyyy-MM-dd"],
    ["2026-00-01", "yyyy-MM-dd"],
    ["2026-01-01 24:00", "yyyy-MM-dd HH:mm"],
    ["2026-01-01 10:60", "yyyy-MM-dd HH:mm"],
    ["13:00 AM", "hh:mm a"],
    ["2026-1-01", "yyyy-MM-dd"],
    ["2026-01-01 ", "yyyy-MM-dd"],
    ["2026-01", "yyyy-MM-dd"],
    ["1 Mai 2026", "d MMM yyyy"],
    ["10:00 +99:00", "HH:mm XXX"],
    ["", "yyyy"],
  ])("%s is none of %s", (text, layout) => {
    expect(ran(READ, [text, layout]).error).toBe(`lua:2: time.parse: ${text} is no time of the layout ${layout}`);
  });

  test.each([
    ["time.parse(5, 'yyyy')", "reads a text, not a number"],
    ["time.parse('x')", "a layout is a text"],
    ["time.parse('x', 'QQ')", "a layout knows no QQ"],
    ["time.parse('x', 'yyyyy')", "a layout knows no yyyyy"],
    ["time.parse('x', \"d 'x\")", "without another"],
    [`time.parse('x', ('-'):rep(${LUA_LAYOUT_MAX_CHARACTERS + 1}))`, `at most ${LUA_LAYOUT_MAX_CHARACTERS} characters`],
    ["time.parse('1', 'M', 'now')", "near is a time in milliseconds"],
    ["time.parse('1', 'M', 0 / 0)", "near is a time in milliseconds"],
    ["time.format('x', 'yyyy')", "shows milliseconds"],
    ["time.format(0 / 0, 'yyyy')", "shows milliseconds"],
    ["time.format(1e300, 'yyyy')", "shows milliseconds"],
    ["time.format(0, {})", "a layout is a text"],
  ])("%s is refused with its reason and line", (text, reason) => {
    expect(ran(`\n${text}`).error).toMatch(new RegExp(`^lua:2: .*${reason}`));
  });

  test.each([
    ["Dec 31 23:59", "2027-01-01T00:00:05Z", "2026-12-31T23:59:00Z"],
    ["Jan  1 00:01", "2026-12-31T23:59:00Z", "2027-01-01T00:01:00Z"],
    ["Feb 29 10:00", "2025-06-01T00:00:00Z", "2024-02-29T10:00:00Z"],
    ["Feb 29 10:00", "2103-06-01T00:00:00Z", "2104-02-29T10:00:00Z"],
  ])("%s, near %s, is of the nearest year", (text, near, time) => {
    const script = 'answer = time.parse(given[1], "MMM d HH:mm", given[2])';
    expect(ran(script, [text, Date.parse(near)]).answer).toBe(Date.parse(time));
  });

  test("without a date is of the nearest day", () => {
    const script = "answer = time.parse(given[1], given[3], given[2])";
    const read = (text: string, near: string) => ran(script, [text, Date.parse(near), "HH:mm"]).answer;
    expect(read("23:59", "2026-11-30T00:01:00Z")).toBe(Date.parse("2026-11-29T23:59:00Z"));
    expect(read("00:01", "2026-11-29T23:59:00Z")).toBe(Date.parse("2026-11-30T00:01:00Z"));
    expect(ran(script, ["24:00", 0, "HH:mm"]).error).toContain("is no time of the layout HH:mm");
  });

  test("is shown as it is read, whatever the day", () => {
    const random = seededRandom(1);
    const [first, last] = [Date.parse("0000-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")];
    const days = Array.from({ length: 2_000 }, () => first + Math.floor(random.next() * (last - first + 1)));
    const given = [first, last, 0, -1, Date.parse("2000-02-29T00:00:00Z"), ...days];
    const layout = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX";
    const shown = ran(
      `answer = {} for at, ms in ipairs(given) do answer[at] = time.format(ms, "${layout}") end`,
      given,
    );
    expect(shown.answer).toEqual(given.map((ms) => new Date(ms).toISOString()));
    const read = ran(
      `answer = {} for at, t in ipairs(given) do answer[at] = time.parse(t, "${layout}") end`,
      shown.answer,
    );
    expect(read.answer).toEqual(given);
  });

  test("is shown by every letter", () => {
    const text = `answer = time.format(given, "EEE d.M.yy h:m:s a MMM hh SS Z 'of' ''")`;
    expect(ran(text, Date.parse("2026-03-01T00:04:09.25Z")).answer).toBe("Sun 1.3.26 12:4:9 AM Mar 12 25 +0000 of '");
  });
});

describe("CSV", () => {
  test.each<[text: string, rows: unknown, separator?: string]>([
    ["", []],
    ["a,b", [["a", "b"]]],
    ["a,,b,\n", [["a", "", "b", ""]]],
    ["a\r\nb\rc", [["a"], ["b"], ["c"]]],
    ['"a,""b""\n",c', [['a,"b"\n', "c"]]],
    ['"",\n\n""\n', [["", ""], [""]]],
    [",", [["", ""]]],
    ["a;b,c", [["a", "b,c"]], ";"],
    ["a.b|c", [["a.b", "c"]], "|"],
    ["a^b", [["a", "b"]], "^"],
    ["a]b%c", [["a]b", "c"]], "%"],
    ['a"b,c', [['a"b', "c"]]],
    ["ü,\0", [["ü", "\0"]]],
  ])("%j is read", (text, rows, separator = ",") => {
    const read = ran("answer = csv.parse(given[1], given[2]) if #answer == 0 then answer = nil end", [text, separator]);
    expect(read.answer ?? []).toEqual(rows);
  });

  test.each([
    ["csv.parse(5)", "reads a text, not a number"],
    ["csv.parse('a,\"b')", "quotes that begin at character 3 do not end"],
    ["csv.parse('\"a\"b')", "text stands behind quotes at character 4"],
    ["csv.parse('a', '--')", "a separator is one character"],
    ["csv.parse('a', '\"')", "a separator is one character"],
    ["csv.string('a')", "takes a list of rows"],
    ["csv.string({{1}, {{}}})", "row 2 has what is no text"],
    ["csv.string({{1}, 2})", "row 2 has what is no text"],
    ["csv.string({{0 / 0}})", "row 1 has what is no text"],
    ["csv.string({{print}})", "row 1 has what is no text"],
    ["csv.string({}, '')", "a separator is one character"],
  ])("%s is refused with its reason and line", (text, reason) => {
    expect(ran(`\n${text}`).error).toMatch(new RegExp(`^lua:2: .*${reason}`));
  });

  test("is read as it is written, whatever the texts", () => {
    const random = seededRandom(2);
    const below = (most: number): number => Math.floor(random.next() * most);
    const character = (): string => ["a", ",", ";", "\t", '"', "\n", "\r", " ", "ü", "%"][below(10)] ?? "";
    const list = <T>(least: number, most: number, make: () => T): T[] =>
      Array.from({ length: least + below(most) }, make);
    const tables = list(300, 1, () => list(1, 4, () => list(1, 4, () => list(0, 6, character).join(""))));
    for (const separator of [",", ";", "\t", "%"]) {
      const text = `answer = {} for at, rows in ipairs(given[1]) do answer[at] = csv.parse(csv.string(rows, given[2]), given[2]) end`;
      expect(ran(text, [tables, separator]).answer).toEqual(tables);
    }
  });

  test("is written of one row, too, and of none", () => {
    expect(ran("answer = csv.string({1, true, 'a'})").answer).toBe("1,true,a");
    expect(ran("answer = csv.string({})").answer).toBe("");
  });
});
