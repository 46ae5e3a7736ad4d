import { afterAll, beforeAll, expect, test } from "vitest";
import { GROK_OWN_PATTERNS_MAX_BYTES, RULE_EXTENSION_ROWS_MAX } from "../../../../common/limits.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { Retry } from "../../../store/calls/retry.ts";
import { HostObjects } from "../../../scripting/index.ts";
import { ObjectService } from "../../objects/index.ts";
import { rulesArea } from "../area.ts";
import { FileParser } from "../parsing/parse-file.ts";
import { RuleMemory } from "../bodies/memory.ts";
import { readPatterns, writePatterns } from "./pattern-store.ts";
import { PatternService } from "./patterns.ts";
import { RecentRecords } from "../parsing/recent.ts";
import { SentLines } from "../parsing/sent-lines.ts";
import { RuleService } from "../service.ts";
import { RuleTrials } from "../trial/trial.ts";
import { visibleObjects } from "../../query/index.ts";

const admin = testPrincipal();
const RAW = { timeMs: 0, host: "h", source: "s", groups: {} };

let http: TestHttp;
let objects: ObjectService;
let rules: RuleService;
let patterns: PatternService;
/** The service of another controller. */
let others: PatternService;
let session: string;

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  const runtime = { ...testRuntime(realClock), random: seededRandom(1) };
  objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  rules = new RuleService({ stores, entries: testEntries(stores), objects });
  patterns = new PatternService({ stores, runtime });
  others = new PatternService({ stores, runtime: { ...runtime, random: seededRandom(2) } });
  const files = { openServed: () => Promise.reject(new Error("not asked in this test")) };
  const fileParser = new FileParser({ rules, objects, files, clock: realClock });
  const trials = new RuleTrials({ hostObjects: () => new HostObjects([]), objects, rules, runtime });
  const { random } = runtime;
  const notifications = { publish: () => undefined };
  const sentLines = new SentLines({ rules, objects, clock: realClock, notifications, random });
  const memory = new RuleMemory(realClock);
  const recent = new RecentRecords();
  const { endpoints = [] } = rulesArea({ rules, fileParser, sentLines, trials, patterns, memory, recent });
  http = await openTestHttp({ endpoints });
  session = await http.signIn("admin");
  await objects.createClass(admin, {
    path: "/matrix/line",
    columns: [
      { name: "name", type: "varchar" },
      { name: "owner", type: "varchar" },
    ],
    keys: ["name"],
  });
});
afterAll(async () => {
  await objects.close();
  await http[Symbol.asyncDispose]();
});

const put = (name: string, pattern: string, eg = "") => patterns.put(admin, { name, pattern, eg });
const form = (fields: Readonly<Record<string, string>>) => ({
  payload: new URLSearchParams(fields).toString(),
  headers: { "content-type": "application/x-www-form-urlencoded" },
});

test("patterns are written, listed, read and removed, as clients do it", async () => {
  const url = "/pattern/ORDER";
  const written = await http.call(session, {
    method: "POST",
    url,
    ...form({ name: "ORDER", pattern: "%{WORD:kind}-%{INT:number:int}", eg: "A-17" }),
  });
  expect(written).toEqual({ status: "ok", message: "", meta: { sample: { ORDER: "A-17", kind: "A", number: 17 } } });
  const revision = expect.stringMatching(/^[0-9a-f]{24}$/) as string;
  const order = { name: "ORDER", pattern: "%{WORD:kind}-%{INT:number:int}", eg: "A-17", revision };
  expect((await http.call(session, { url: "/pattern" })).message).toEqual([order]);
  expect((await http.call(session, { url })).message).toEqual(order);
  expect((await http.call(session, { url: "/pattern/INT" })).message).toMatchObject({ name: "INT", eg: "" });
  expect(await http.call(session, { method: "DELETE", url })).toEqual({ status: "ok", message: "" });
  expect(await http.call(session, { url })).toMatchObject({ code: "not_found" });
  expect(await http.call(session, { method: "DELETE", url })).toMatchObject({ code: "not_found" });
});

test("an expression is tried on lines, with users' patterns, before it is stored", async () => {
  await put("CODE", "[A-Z]{2}");
  const tried = (asked: object) =>
    http.call(session, {
      method: "POST",
      url: "/mxobject/rule/try",
      payload: JSON.stringify(asked),
      headers: { "content-type": "application/json" },
    });
  const { status, message } = await tried({ pattern: "%{CODE:code}-%{INT:n:int}", lines: ["a AB-17", "", "none"] });
  expect([status, message]).toEqual([
    "ok",
    {
      class: "",
      records: [
        { line: 1, fields: { code: "AB", n: 17 }, rows: [], errors: [] },
        { line: 2, rows: [], errors: [{ message: "The pattern does not match it." }] },
        { line: 3, rows: [], errors: [{ message: "The pattern does not match it." }] },
      ],
      log: [],
      notCalled: [],
      msPerRecord: expect.any(Number),
    },
  ]);
  expect((await tried({ pattern: "^$", lines: [""] })).message).toMatchObject({
    records: [{ fields: {}, errors: [] }],
  });
  for (const [pattern, more, text] of [
    ["%{NOPE}", {}, "There is no grok pattern named NOPE."],
    ["", {}, "The pattern is empty."],
    ["a", { key: "/matrix/rules/own" }, "Give either pattern, or the rule to try by key or text."],
    ["a", { text: "--parser=json" }, "Give either pattern, or the rule to try by key or text."],
  ] as const)
    expect(await tried({ pattern, lines: ["a"], ...more })).toMatchObject({ code: "invalid", message: text });
  expect((await patterns.list(admin)).map(({ name }) => name)).toEqual(["CODE"]);
  await patterns.remove(admin, "CODE");
});

test.each([
  ["INT", "x", "", "conflict"],
  ["a-b", "x", "", "invalid"],
  ["__proto__", "x", "", "invalid"],
  ["N".repeat(129), "x", "", "invalid"],
  ["EMPTY", "", "", "invalid"],
  ["UNKNOWN", "%{NONE}", "", "invalid"],
  ["SELF", "a%{SELF}", "", "invalid"],
  ["BROKEN", "(", "", "invalid"],
  ["BACK", "(a)\\1", "", "invalid"],
  ["LOOK", "a(?=b)", "", "invalid"],
  ["HUGE", "x".repeat(8_001), "", "invalid"],
  ["LONG", "a", "a".repeat(20_000), "too_large"],
])("the pattern %.10s with the text %.20j and the sample %.10j is refused: %s", async (name, pattern, eg, code) => {
  const before = await patterns.list(admin);
  await expect(put(name, pattern, eg)).rejects.toMatchObject({ code });
  expect(await patterns.list(admin)).toEqual(before);
});

test("a pattern is stored also when its sample does not match it, or takes too long, and warnings say so", async () => {
  const costly = `${"(?:[a-z]{0,30}x){0,20}".repeat(8)}z`;
  for (const [pattern, eg, warning] of [
    ["^a+$", "aab", /^The pattern SAMPLE does not match its sample/],
    [costly, "a".repeat(16_000), /^The pattern SAMPLE was not tried on its sample of 16000 characters/],
  ] as const) {
    const written = await http.call(session, { method: "POST", url: "/pattern/SAMPLE", ...form({ pattern, eg }) });
    expect(written).toEqual({
      status: "ok",
      message: "",
      meta: { sample: {} },
      warnings: [expect.stringMatching(warning)],
    });
    expect(await patterns.find(admin, "SAMPLE")).toMatchObject({ name: "SAMPLE", pattern, eg });
  }
  await patterns.remove(admin, "SAMPLE");
});

test("patterns that name each other never go in a circle, and what is used stays usable", async () => {
  await put("LOW", "[a-z]+");
  await put("MID", "<%{LOW}>", "<a>");
  await put("TOP", "%{MID}%{MID}", "<a><b>");
  await expect(put("LOW", "%{TOP}")).rejects.toMatchObject({ code: "invalid" });
  await expect(put("LOW", "a".repeat(7_000))).rejects.toMatchObject({ code: "conflict" });
  await expect(patterns.remove(admin, "LOW")).rejects.toMatchObject({ code: "conflict" });
  await expect(patterns.remove(admin, "INT")).rejects.toMatchObject({ code: "conflict" });
  expect(await patterns.find(admin, "LOW")).toMatchObject({ pattern: "[a-z]+" });
  for (const name of ["TOP", "MID", "LOW"]) await patterns.remove(admin, name);
  expect(await patterns.list(admin)).toEqual([]);
});

test("two controllers that write at once lose nothing, and cannot close a circle together", async () => {
  const names = Array.from({ length: 6 }, (_, at) => `P${at}`);
  await Promise.all(names.map((name, at) => (at % 2 ? patterns : others).put(admin, { name, pattern: "a", eg: "" })));
  expect((await patterns.list(admin)).map(({ name }) => name)).toEqual(names);
  const outcomes = await Promise.allSettled([
    patterns.put(admin, { name: "P0", pattern: "x%{P1}", eg: "" }),
    others.put(admin, { name: "P1", pattern: "x%{P0}", eg: "" }),
  ]);
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  for (const name of ["P0", "P1", "P0", ...names.slice(2)]) await patterns.remove(admin, name).catch(() => undefined);
  expect(await others.list(admin)).toEqual([]);
});

test("all patterns of a tenant have a bound", async () => {
  const count = Math.floor(GROK_OWN_PATTERNS_MAX_BYTES / 7_900) - 1;
  for (let at = 0; at < count; at++) await put(`BIG${at}`, "a".repeat(7_900));
  await expect(put("MORE1", "a".repeat(7_900)).then(() => put("MORE2", "a".repeat(7_900)))).rejects.toMatchObject({
    code: "too_large",
  });
  for (const { name } of await patterns.list(admin)) await patterns.remove(admin, name);
});

test("a rule uses users' patterns; a change holds for what is loaded then, and pinned rules keep theirs", async () => {
  const key = "/matrix/rules/own";
  const text = "--class=/matrix/line\n--parser=grok\n--pattern_1=^%{OUTER:name}$\n";
  await expect(rules.put(admin, key, text)).rejects.toMatchObject({ code: "invalid" });
  await put("INNER", "a+");
  await put("OUTER", "<%{INNER}>");
  await put("UNUSED", "z");
  await rules.put(admin, key, text);
  const parse = (rule: Awaited<ReturnType<RuleService["load"]>>) =>
    ["<aa>", "<bb>"].map((line) => rule.parse([{ ...RAW, text: line }])[0]?.ok);
  const first = await rules.load(admin, key);
  expect([parse(first), Object.keys(first.supplements.patterns).sort()]).toEqual([
    [true, false],
    ["INNER", "OUTER"],
  ]);
  await rules.pin(admin, first, Date.now() + 60_000);
  await others.put(admin, { name: "UNUSED", pattern: "y", eg: "" });
  expect((await rules.load(admin, key)).digest).toBe(first.digest);
  await others.put(admin, { name: "INNER", pattern: "b+", eg: "" });
  const second = await rules.load(admin, key);
  expect([parse(second), second.digest === first.digest]).toEqual([[false, true], false]);
  const pinned = await rules.pinned(admin, key, first.digest);
  expect([parse(pinned), pinned.digest]).toEqual([[true, false], first.digest]);
  await patterns.remove(admin, "OUTER");
  await expect(rules.load(admin, key)).rejects.toMatchObject({ code: "invalid" });
  expect(parse(await rules.pinned(admin, key, first.digest))).toEqual([true, false]);
});

test("a rule made for a class takes users' patterns", async () => {
  await put("PAIR", "%{WORD:left}=%{WORD:right}");
  const mapping = { name: "left", owner: "right" };
  const { key } = await rules.create(admin, { class: "/matrix/line", type: "grok", fields: ["PAIR"], mapping });
  const parsed = (await rules.load(admin, key)).parse([{ ...RAW, text: "a=b" }]);
  expect(parsed).toMatchObject([{ ok: true, values: { name: "a", owner: "b" } }]);
});

test("a rule joins its extension table, which clients read and write as LTSV", async () => {
  const key = "/matrix/rules/joined/deep";
  const url = `/monitoring/policy/extend${key}`;
  const post = (payload: string, contentType = "application/x-www-form-urlencoded") =>
    http.call(session, { method: "POST", url, payload, headers: { "content-type": contentType } });
  expect(await post("key:a\tval:1")).toMatchObject({ code: "not_found" });
  await rules.put(admin, key, "--class=/matrix/line\n--parser=text\n--fields=name\n--var_owner=lookup name,who\n");
  const owner = async (line: string) => {
    const [parsed] = (await rules.load(admin, key)).parse([{ ...RAW, text: line }]);
    return parsed?.ok ? parsed.values["owner"] : parsed;
  };
  expect([await owner("web-1"), (await http.call(session, { url })).message]).toEqual([undefined, ""]);
  const before = await rules.load(admin, key);
  await rules.pin(admin, before, Date.now() + 60_000);
  const table = "key:web-1\tval:x\twho:ann: of a=b&c\r\n\nkey:web-2\twho:bob\nkey:web-3\n";
  expect(await post(table)).toEqual({ status: "ok", message: "" });
  expect((await http.call(session, { url })).message).toBe(table);
  expect([await owner("web-1"), await owner("web-2"), await owner("web-3"), await owner("none")]).toEqual([
    "ann: of a=b&c",
    "bob",
    undefined,
    undefined,
  ]);
  expect((await rules.load(admin, key)).digest).not.toBe(before.digest);
  expect((await rules.pinned(admin, key, before.digest)).supplements).toEqual(before.supplements);
  expect(await post("key:web-1\twho:carol", "text/plain")).toEqual({ status: "ok", message: "" });
  expect([await owner("web-1"), await owner("web-2")]).toEqual(["carol", undefined]);
  for (const [text, code] of [
    ["no pair", "syntax"],
    ["val:1", "syntax"],
    ["key:a\t\tval:1", "syntax"],
    ["key:a\tval:\u0001", "syntax"],
    [`key:a\tval:${"x".repeat(200_000)}`, "too_large"],
    [Array.from({ length: RULE_EXTENSION_ROWS_MAX + 1 }, (_, at) => `key:${at}`).join("\n"), "too_large"],
  ] as const)
    expect(await post(text)).toMatchObject({ code });
  expect(await owner("web-1")).toBe("carol");
  await rules.remove(admin, key);
  await rules.put(admin, key, "--class=/matrix/line\n--parser=text\n--fields=name\n--var_owner=lookup name,who\n");
  expect(await owner("web-1")).toBeUndefined();
  const lookup = (line: string) =>
    rules.put(admin, key, `--class=/matrix/line\n--parser=text\n--fields=name\n--var_owner=${line}\n`);
  await expect(lookup("lookup name,a,b")).rejects.toMatchObject({ code: "syntax" });
});

test("viewers, neighbours and readers of other classes change and see nothing", async () => {
  const viewer = testPrincipal("viewer");
  const neighbour = testPrincipal("administrator", "second");
  const restricted = { ...admin, data: [{ class: "/matrix/other", access: "write" as const }] };
  const key = "/matrix/rules/apart";
  await rules.put(admin, key, "--class=/matrix/line\n--parser=text\n--fields=name\n");
  await put("APART", "a");
  await expect(patterns.put(viewer, { name: "X", pattern: "a", eg: "" })).rejects.toMatchObject({ code: "denied" });
  await expect(patterns.remove(viewer, "APART")).rejects.toMatchObject({ code: "denied" });
  await expect(rules.putExtension(viewer, key, "")).rejects.toMatchObject({ code: "denied" });
  expect(await patterns.list(neighbour)).toEqual([]);
  await expect(rules.extension(neighbour, key)).rejects.toMatchObject({ code: "invalid" });
  for (const call of [() => rules.extension(restricted, key), () => rules.putExtension(restricted, key, "key:a")])
    await expect(call()).rejects.toMatchObject({ code: "not_found" });
});

test("a pattern that was there before the standard set had its name stays the user's, is changed and removed", async () => {
  const { kv } = await http.engine.tenant("matrix");
  const { revision, patterns: before } = await readPatterns(kv);
  const earlier = new Map(before).set("GOLOG", { pattern: "mine", eg: "" });
  const parts = { retry: new Retry(testRuntime(realClock)), random: seededRandom(3) };
  expect(await writePatterns(kv, { revision, patterns: earlier }, parts)).toBe(true);
  expect(await patterns.find(admin, "GOLOG")).toMatchObject({ pattern: "mine" });
  await put("GOLOG", "our(?:s)?", "ours");
  const key = "/matrix/rules/golog";
  await rules.put(admin, key, "--class=/matrix/line\n--parser=grok\n--pattern_1=^%{GOLOG:name}$");
  const rule = await rules.load(admin, key);
  expect(rule.parse([{ text: "ours", ...RAW }])).toMatchObject([{ ok: true, values: { name: "ours" } }]);
  await patterns.remove(admin, "GOLOG");
  expect((await patterns.find(admin, "GOLOG")).pattern).toContain("DATESTAMP_SLASH");
  await expect(put("GOLOG", "x")).rejects.toMatchObject({ code: "conflict" });
  await expect(patterns.remove(admin, "GOLOG")).rejects.toMatchObject({ code: "conflict" });
});
