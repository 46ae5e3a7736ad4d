import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AppError } from "../../../common/errors.ts";
import { SCRIPT_MACHINES_KEPT_MAX } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { scriptEngineContract } from "../contract/engine.ts";
import { threadScripts } from "../contract/threads.ts";
import type { ScriptHost, ThreadScripts } from "../index.ts";

const open = await threadScripts("javascript");
/** Each of several tenants has its machine taken away and made anew some times. */
const RUNS = 210 * TIMES;
const BY = { kind: "serverjs", user: "anna" } as const;

scriptEngineContract(open, {
  language: "javascript",
  echo: "OUT = IN",
  leak: `OUT = typeof leak !== "undefined" || Object.prototype.leak === 1 || _.leak === 1 || [].map === 1;
    leak = 1; Object.prototype.leak = 1; _.leak = 1; Array.prototype.map = 1;`,
  add: "OUT = host.add(IN[0], IN[1])",
  refused: "var a;\nhost.refuse()",
  caught: "try { host.refuse() } catch (error) { OUT = error.message }",
  nested: "OUT = host.nested(IN)",
  waiting: "for (;;) try { host.wait() } catch (error) {}",
  goesOn: "try { host.wait() } catch (error) {} try { host.add(1, 1) } catch (error) {} OUT = 'done'",
  pretending: ["throw new InternalError('interrupted')", "throw { message: 'interrupted' }"],
  mistake: "var a = 1;\n\nOUT = a + missing;",
  unparsable: "var a = 1;\nvar = 2;",
  endless: [
    "for (;;);",
    "for (;;) try { for (;;); } catch (error) {} finally { continue }",
    "(function again() { return Promise.resolve().then(again) })()",
    "OUT = { toJSON: function () { for (;;); } }",
    "OUT = new Proxy({}, { ownKeys: function () { for (;;); } })",
    "/(a+)+$/.test('a'.repeat(60) + 'b')",
    "function* g() { for (;;) yield 1 } for (var x of g());",
  ],
  stuck: "new Array(1e9).join('x')",
  greedy: [
    "var a = [], s = 'x'.repeat(1e6); for (;;) a.push(s + a.length)",
    "var s = 'x'; for (;;) s += s",
    "var a = []; for (;;) a.push(new ArrayBuffer(1e6))",
    "new Uint8Array(1 << 30)",
    "(function f() { f() })()",
  ],
  long: "OUT = 'x'.repeat(IN)",
  deep: "var o = []; for (var n = 1; n < IN; n++) o = [o]; OUT = o",
  many: "OUT = new Array(IN).fill(1)",
  handing: "try { host.add(new Array(IN).fill(1)) } catch (error) { OUT = error.message }",
  shouting: "throw new Error('x'.repeat(IN))",
  calls: "for (var n = 0; n < IN; n++) host.add(1, 1);",
  asTold: `if (IN === "throw") throw new Error("no"); if (IN === "endless") for (;;);
    if (IN === "greedy") { var a = [], s = "x".repeat(1e6); for (;;) a.push(s + a.length); }
    if (IN === "refused") host.refuse();
    OUT = IN;`,
});

describe("JavaScript", () => {
  let engine: ThreadScripts;
  beforeAll(() => {
    engine = open({ clock: new TestClock(), threads: 1 });
  });
  afterAll(() => engine.close());

  const FILES: Readonly<Record<string, string>> = {
    "/lib/twice.js": "var count = (exports.count = 0); module.exports = function (x) { return 2 * x }",
    "/lib/counter.js": "exports.n = 0; exports.next = function () { return ++exports.n }",
    "/lib/outer.js": "exports.twice = require('/lib/twice.js')",
    "/lib/broken.js": "undefinedThing.x",
    "/lib/units.js": "var s = 'äé€\u{1F600}';  x",
    "/lib/later.js": "'ä';\nexports.f = function () { '€'; x }",
    "/lib/unparsable.js": "var a;\nvar = 1",
    "/lib/round.js": "exports.first = 1; exports.again = require('/lib/round.js').first",
  };
  const host: ScriptHost = {
    call: async ({ name, args, at }) => {
      if (name === "host.where") return at ?? "";
      if (name !== "require") return [...args];
      const path = String(args[0]);
      const source = FILES[path];
      if (source === undefined) throw new Error(`There is no file ${path}.`);
      return { name: path, source };
    },
  };
  const run = async (source: string, input: Value = null): Promise<Value | undefined> => {
    const call = {
      tenant: "t",
      ...BY,
      language: "javascript",
      name: "/ns/a.js",
      source,
      globals: { INPUT: input },
    } as const;
    return (await engine.run({ ...call, results: ["OUTPUT"], timeoutMs: 3_600_000 }, host)).results["OUTPUT"];
  };
  const refused = (source: string): Promise<AppError> =>
    run(source).then(
      (value) => expect.fail(`It answered ${JSON.stringify(value)}.`),
      (error: unknown) => error as AppError,
    );

  const ANSWERS: readonly (readonly [string, Value])[] = [
    ["var OUTPUT = 1", 1],
    ["let OUTPUT = 2", 2],
    ["const OUTPUT = 3", 3],
    ["OUTPUT = _.map([1, 2], function (x) { return x * 2 })", [2, 4]],
    ["OUTPUT = _.chain([3, 1, 2]).sortBy().first().value()", 1],
    ["OUTPUT = Promise.resolve(4)", 4],
    ["(async () => { await null; OUTPUT = 5 })()", 5],
    ["OUTPUT = (async () => { await null; return [6] })()", [6]],
    ["OUTPUT = new Date(0)", "1970-01-01T00:00:00.000Z"],
    ["class A { #x = 7; get x() { return this.#x } }; OUTPUT = new A().x", 7],
    ["OUTPUT = [...new Set([1, 1])].map((x) => ({ x, ...{ y: 2 } }))", [{ x: 1, y: 2 }]],
    ["OUTPUT = require('/lib/twice.js')(4)", 8],
    ["OUTPUT = require('/lib/outer.js').twice(5)", 10],
    ["require('/lib/counter.js').next(); OUTPUT = require('/lib/counter.js').next()", 2],
    ["OUTPUT = require('/lib/round.js').again", 1],
    ["host.add(1, function (answer) { OUTPUT = answer })", [1]],
    ["host.add(1, undefined, null, 'x'); OUTPUT = host.add({ a: undefined })", [{}]],
    ["try { require('/none') } catch (e) { OUTPUT = e.message }", "There is no file /none."],
    ["\n  OUTPUT = host.where()", "/ns/a.js:2:17"],
    ["var r = []; for (var i = 0; i < 3; i++) r.push(Math.random()); OUTPUT = _.uniq(r).length", 3],
  ];
  test.each(ANSWERS)("%s", async (source, answer) => {
    expect(await run(source)).toEqual(answer);
  });

  test("each run draws other random numbers", async () => {
    expect(await run("OUTPUT = Math.random()")).not.toBe(await run("OUTPUT = Math.random()"));
  });

  const FAILURES: readonly (readonly [string, object])[] = [
    ["x", { message: "/ns/a.js:1:1: ReferenceError: 'x' is not defined" }],
    ["var a = {};\na.b.c", { message: expect.stringContaining("Cannot access member 'c' of undefined") }],
    ["throw new Error('no')", { message: "/ns/a.js:1:11: no", code: "invalid" }],
    ["var s = 'äé€\u{1F600}';  x", { details: { file: "/ns/a.js", line: 1, column: 19 } }],
    ["var s;\r\n\t'\u{1F600}' + x", { details: { line: 2, column: 9 } }],
    ["'\u{1F600}\u{1F600}'; f(;", { code: "syntax", details: { line: 1, column: 11 } }],
    ["var e = new Error('no'); e.stack = ' at /ns/a.js:999999999:7'; throw e", { details: { column: 7 } }],
    ["throw 'text'", { message: "text" }],
    ["throw { a: 1 }", { message: '{"a":1}' }],
    ["throw null", { message: "null" }],
    ["throw new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })", { code: "invalid" }],
    ["OUTPUT = 10n", { code: "invalid" }],
    ["var o = {}; o.o = o; OUTPUT = o", { code: "invalid" }],
    ["require('/lib/broken.js')", { details: { file: "/lib/broken.js", line: 1, column: 1 } }],
    ["require('/lib/units.js')", { details: { file: "/lib/units.js", line: 1, column: 19 } }],
    ["require('/lib/later.js').f()", { details: { file: "/lib/later.js", line: 2, column: 32 } }],
    ["require('/lib/unparsable.js')", { code: "syntax", details: { file: "/lib/unparsable.js", line: 2 } }],
    ["(async () => { throw new Error('later') })()", { message: expect.stringContaining("later") }],
    ["Promise.reject(new Error('later'))", { message: expect.stringContaining("later") }],
    ["return 1", { code: "syntax" }],
    ["var e = new Error('no'); e.code = 'constructor'; throw e", { code: "invalid" }],
    ["var e = new Error('no'); e.details = { a: 'x'.repeat(1e5) }; throw e", { details: { cut: expect.anything() } }],
    ["var e = new Error('no'); e.name = 'N'.repeat(1e6); throw e", { message: expect.stringMatching(/^.{0,5000}$/) }],
    ["var e = new Error('no'); e.stack = '\\n at ' + 'f'.repeat(1e6) + ':1:1'; throw e", { details: {} }],
    ["var d = {}; for (var i = 0; i < 1e5; i++) d = { d }; throw d", { code: "invalid" }],
  ];
  test.each(FAILURES)("%s fails", async (source, error) => {
    expect(await refused(source)).toMatchObject(error);
  });

  test("many runs, of more tenants than machines are kept, that fail or grow, each find all as new", async () => {
    const LEAK = `OUTPUT = typeof leak + Object.keys(Object.prototype) + typeof _.leak + typeof host.leak;
      leak = 1; Object.prototype.leak = _.leak = host.leak = Array.prototype.map = JSON.parse = 1;`;
    const ENDS = ["", "throw new Error('no')", "Promise.reject(1)", "grown = new ArrayBuffer(4e6)", "host.add = null"];
    const tenants = Array.from({ length: SCRIPT_MACHINES_KEPT_MAX + 2 }, (_, at) => `t${at}`);
    for (let at = 0; at < RUNS; at++) {
      const source = `${LEAK}\n${ENDS[at % ENDS.length]}`;
      const tenant = tenants[Math.floor(at / 7) % tenants.length] ?? "";
      const call = { tenant, ...BY, language: "javascript", name: "/ns/a.js", source, globals: {} } as const;
      const ran = await engine.run({ ...call, results: ["OUTPUT"], timeoutMs: 3_600_000 }, host).catch(() => undefined);
      if (ran) expect(ran.results["OUTPUT"]).toBe("undefinedundefinedundefined");
    }
    expect([engine.threads, engine.ended]).toEqual([1, 0]);
  });

  test("an error that is caught in time is none", async () => {
    expect(await run("Promise.reject(1).catch(() => { OUTPUT = 'caught' })")).toBe("caught");
  });
});
