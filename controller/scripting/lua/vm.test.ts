import { describe, expect, test } from "vitest";
import { SCRIPT_MEMORY_MAX_BYTES } from "../../../common/limits.ts";
import { LuaVm, type LuaReport } from "./vm.ts";

interface Options {
  readonly globals?: object;
  readonly host?: (name: string, args: string) => string;
  /** Number of `isOver` checks before the run is over. */
  readonly steps?: number;
}

/** The global `answer` after the text has run. */
function run(vm: LuaVm, text: string, { globals = {}, host = noHost, steps = 100_000 }: Options = {}): LuaReport {
  let asked = 0;
  const name = `t${texts++}`;
  const error = vm.compile(name, text);
  if (error !== undefined) return { kind: "thrown", message: error };
  const [report] = vm.run(name, {
    each: [JSON.stringify(globals)],
    results: ["answer"],
    outputMaxCharacters: 100_000,
    host,
    isOver: () => asked++ > steps,
  });
  return report ?? expect.fail("It answered nothing.");
}

const open = (): Promise<LuaVm> => LuaVm.open(SCRIPT_MEMORY_MAX_BYTES, { objects: OBJECTS });

let texts = 0;
const OBJECTS = '{"odb":["mql"],"log":["info"]}';
const SMALL_BYTES = 2_000_000;
const noHost = (): string => "!nobody is there";

async function answerOf(text: string, options?: Options): Promise<unknown> {
  const report = run(await open(), text, options);
  if (!("results" in report)) throw new Error(report.message);
  return (JSON.parse(report.results) as { answer?: unknown }).answer;
}

async function errorOf(text: string, options?: Options): Promise<string> {
  const report = run(await open(), text, options);
  if ("results" in report) throw new Error(`It answered ${report.results}.`);
  return report.message;
}

describe("a text of Lua 5.1", () => {
  test.each<[text: string, answer: unknown]>([
    ["answer = 10 / 2", 5],
    ["answer = {unpack({1, 2.5, 0.1})}", [1, 2.5, 0.1]],
    ["answer = tostring(10 / 2)", "5"],
    ["answer = ('x'):rep(3) .. #'abc'", "xxx3"],
    ["answer = {a = {b = {}}, c = true}", { a: { b: {} }, c: true }],
    ["given.x = 'ü\\n\\0'; answer = given", { list: [1, "ü"], x: "ü\n\0" }],
    ["answer = strings.split('a,b,,c', ',')", ["a", "b", "", "c"]],
    [
      "answer = strings.join(strings.fields(' a  b '), '+') .. strings.trim('  x ') .. strings.replace('aXbX', 'X', '-', 1)",
      "a+bxa-bX",
    ],
    ["answer = strings.trim('--x-', '-')", "x"],
    [
      "answer = {strings.trim(''), strings.trim(' \\n '), strings.trim((' '):rep(1e5) .. 'x' .. (' '):rep(1e5))}",
      ["", "", "x"],
    ],
    ['answer = json.parse(\'{"a":[1,"\\\\u00fc\\\\ud83d\\\\ude00"]}\').a', [1, "ü😀"]],
    ["answer = json.string({a = 1e20, b = 0.1})", undefined],
    ["local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) answer = b end) answer = co(1)", 2],
    ["local ok, err = pcall(error, 'no') answer = {ok, err}", [false, "no"]],
  ])("%s", async (text, answer) => {
    if (answer === undefined) expect(JSON.parse((await answerOf(text)) as string)).toEqual({ a: 1e20, b: 0.1 });
    else expect(await answerOf(text, { globals: { given: { list: [1, "ü"] } } })).toEqual(answer);
  });

  test("hands over texts of every character, and refuses bytes that are none by name", async () => {
    const all = "a\u0000 ü€𐀀\ud7ff\ue000\u{10ffff}";
    expect(await answerOf("answer = given", { globals: { given: { [all]: all } } })).toEqual({ [all]: all });
    const refused = "a text that is not UTF-8 cannot be handed over";
    for (const bytes of [
      "\\237\\160\\128",
      "\\192\\128",
      "\\244\\144\\128\\128",
      "\\224\\159\\191",
      "é\\169",
      "\\226\\130",
      "\\255",
    ]) {
      expect(await errorOf(`answer = "${bytes}"`), bytes).toBe(refused);
      expect(await errorOf(`answer = {["${bytes}"] = 1}`), bytes).toBe(refused);
      expect(await answerOf(`answer = {pcall(odb.mql, "${bytes}")}`, { host: () => "" }), bytes).toEqual([
        false,
        expect.stringContaining(refused),
      ]);
    }
    expect(await errorOf("answer = given", { globals: { given: "half \ud800" } })).toBe(refused);
    expect(await errorOf('error("é\\255")')).toBe("lua:1: ???");
    expect(await errorOf('error("é")')).toBe("lua:1: é");
  });

  test("calls its host where it stands, and is told its errors with the line", async () => {
    const host = (name: string, args: string): string => (args === "[1]" ? `={"name":"${name}"}` : "!it is too much");
    expect(await answerOf("answer = odb.mql(1).name", { host })).toBe("odb.mql");
    expect(await errorOf("local x\nodb.mql(2)", { host })).toMatch(/^lua:2: it is too much$/);
    expect(await answerOf("local ok, e = pcall(odb.mql, 2) answer = e", { host })).toContain("it is too much");
  });

  test.each([
    ["x = (", /^lua:1: unexpected symbol near '<eof>'$/],
    ["local x\nx.y = 1", /^lua:2: attempt to index local 'x' \(a nil value\)$/],
    ["error({code = 5})", /^\{"code":5\}$/],
    ["answer = function() end", /a function has no JSON/],
    ["answer = {} answer[1] = answer", /nested more than 100 deep/],
    ["answer = 0 / 0", /has no JSON/],
    ["\u001bLua", /no bytecode/],
    ["answer = 1\nanswer = 2 \u0000 answer = 3", /^lua:2: a text has no character of the code 0$/],
    ["json.parse('[1,')", /no JSON at character/],
  ])("%s is refused with its reason", async (text, reason) => {
    expect(await errorOf(text)).toMatch(reason);
  });
});

describe("out of its VM", () => {
  test.each([
    "answer = os or io or debug or package or load or loadstring or loadfile or dofile or require or module",
    "answer = newproxy or collectgarbage or gcinfo or setfenv or getfenv",
    "answer = string.dump or string.gfind or __host or ('x').dump",
    "answer = getmetatable('') or getmetatable(string) or getmetatable(_G)",
    "answer = rawget(string, 'rep')",
    "local ok = pcall(setmetatable, string, {}) answer = ok or nil",
    "local ok = pcall(setmetatable, _G, {}) answer = ok or nil",
    "answer = next(time) or next(csv) or getmetatable(time) or getmetatable(csv)",
    "string.rep = 1",
    "time.parse = 1",
    "csv.string = nil",
    "log.info = 1",
  ])("nothing is reached by: %s", async (text) => {
    const report = run(await open(), text);
    if ("results" in report) expect(["{}", '{"answer":false}']).toContain(report.results);
    else expect(report.message).toContain("cannot be changed");
  });

  test("a run leaves nothing for the next one", async () => {
    const vm = await open();
    const hostile = `mine = 1; rawset(string, 'rep', function() return 'mine' end); rawset(_G, 'type', 'mine')
      table.insert(string, 'mine'); pcall(function() getmetatable('').__index = {} end); _G.pairs = 'mine'`;
    expect(run(vm, hostile)).toMatchObject({ results: "{}" });
    const text = "answer = {tostring(mine), type(pairs), type(type), ('x'):rep(2), string.rep('x', 2), #string}";
    expect(run(vm, text)).toEqual({ results: '{"answer":["nil","function","function","xx","xx",0]}' });
  });
});

describe("a text that does not end is ended", () => {
  test.each([
    ["while true do end"],
    ["while true do pcall(function() while true do end end) end"],
    ["while true do xpcall(function() while true do end end, function(e) while true do end end) end"],
    ["while true do coroutine.resume(coroutine.create(function() while true do end end)) end"],
    ["local function f() return f() end f()"],
    ["local t = setmetatable({}, {__index = function(t, k) while true do end end}) local x = t.a"],
    ["error(setmetatable({}, {__tostring = function() while true do end end}))"],
    ["for i = 1, 1e12 do local s = ('x'):find('y') end"],
    ["while true do pcall(time.parse, '10', 'HH') pcall(csv.parse, 'a,b') end"],
    ["csv.string(setmetatable({}, {__index = function() while true do end end}))"],
    ["csv.parse((','):rep(1e6))"],
    ["csv.parse(('a\\n'):rep(1e6))"],
    ["csv.parse('\"' .. ('\"\"'):rep(1e6))"],
    ["for i = 1, 1e9 do strings.split('a,b', ',') end"],
  ])("%s", async (text) => {
    const vm = await open();
    const report = run(vm, text, { steps: 50 });
    if (!text.startsWith("error(")) expect(report).toMatchObject({ kind: "stopped" });
    expect(run(vm, "answer = 1")).toEqual({ results: '{"answer":1}' });
  });
});

describe("a text that takes all memory breaks its VM and nothing else", () => {
  test.each([
    ["local t = {} for i = 1, 1e7 do t[i] = {i} end"],
    ["local t = {} while true do pcall(function() for i = 1, 1e7 do t[#t + 1] = {i} end end) end"],
    ["local s = 'x' while true do s = s .. s end"],
    ["local s = 'x' while true do pcall(function() s = s .. s end) end"],
  ])("%s", async (text) => {
    const vm = await LuaVm.open(SMALL_BYTES, { objects: OBJECTS });
    expect(run(vm, text)).toMatchObject({ kind: "memory" });
    expect(vm.isBroken).toBe(true);
  });
});

describe("the globals of a run", () => {
  /** Results of the runs, all made together with these globals. */
  async function seen(globals: readonly object[]): Promise<readonly unknown[]> {
    const vm = await open();
    expect(vm.compile("a", "answer = given")).toBeUndefined();
    const reports = vm.run("a", {
      each: globals.map((given) => JSON.stringify(given)),
      results: ["answer"],
      outputMaxCharacters: 1_000_000,
      host: noHost,
      isOver: () => false,
    });
    return reports.map((report) =>
      "results" in report ? (JSON.parse(report.results) as { answer?: unknown }).answer : report.message,
    );
  }

  const all = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code)).join("");
  const nested = (depth: number, value: unknown): unknown =>
    depth === 0 ? value : [...Array.from({ length: 49 }, () => 1), nested(depth - 1, value)];

  test.each<[what: string, value: unknown, as?: unknown]>([
    ["every character", all],
    ["characters outside the first plane", "😀x𐀀"],
    ["but halves of one, which are refused", "😀\ud800x\udc00", "a text that is not UTF-8 cannot be handed over"],
    ["what would end a text of Lua", `"}} os.exit() -- ]] \\" \\\\" \r\n \0`],
    ["names that would", { '"]=1}': 1, "a\nb": 2, "\\": 3, __index: 4, __proto: 5, end: 6 }],
    ["numbers", [0.1, -5, 1e21, 1e-7, 2 ** 53, -1.5e300]],
    ["truths and nothing", { a: true, b: false, c: null }, { a: true, b: false }],
    ["lists in lists as deep as one function of Lua holds them", nested(2, [1])],
    ["and deeper", nested(12, { a: 1 })],
    ["many constants", Array.from({ length: 8_000 }, (_, at) => `v${at}`)],
  ])("are what they were: %s", async (_, value, as = value) => {
    const others = [{ given: "before" }, { given: value }, { given: value }, { given: "after" }];
    expect(await seen(others)).toEqual(["before", as, as, "after"]);
  });

  test("are those of that run, also where there are more than are read at once", async () => {
    const numbers = Array.from({ length: 100 }, (_, at) => at);
    expect(await seen(numbers.map((given) => ({ given })))).toEqual(numbers);
  });
});
