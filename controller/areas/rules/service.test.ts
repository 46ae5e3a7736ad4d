import { afterAll, beforeAll, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { KV_PAGE_MAX_ENTRIES } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { DataRule } from "../permissions/index.ts";
import { RuleService } from "./service.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const other = testPrincipal("administrator", "second");
/** Calls of etcd that a busy machine answers within their deadline. */
const PUTS_AT_ONCE = 16;
const RAW = { timeMs: 0, host: "h", source: "s", groups: {} };

let engine: TestEngine;
let objects: ObjectService;
let rules: RuleService;
beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  await objects.createClass(admin, {
    path: "/matrix/line",
    kind: "record",
    columns: [
      { name: "name", type: "varchar" },
      { name: "n", type: "int" },
    ],
  });
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const text = (fields: string) => `--class=/matrix/line\n--parser=csv\n--fields=${fields}\n`;

test("a rule is used as it was last written, and gone when it was removed", async () => {
  const key = "/matrix/rules/a";
  await rules.put(admin, key, text("name,n"));
  expect((await rules.load(admin, key)).parse([{ ...RAW, text: "x,1" }])).toMatchObject([
    { ok: true, values: { name: "x", n: "1" } },
  ]);
  await rules.put(admin, key, text("n,name"));
  expect((await rules.load(admin, key)).parse([{ ...RAW, text: "1,x" }])).toMatchObject([
    { ok: true, values: { name: "x", n: "1" } },
  ]);
  await rules.remove(admin, key);
  await expect(rules.load(admin, key)).rejects.toMatchObject({ code: "not_found" });
  await expect(rules.remove(admin, key)).rejects.toMatchObject({ code: "not_found" });
});

test("the removal of a rule names the policies that need it", async () => {
  const neededBy = (_by: unknown, rule: string) =>
    Promise.resolve(rule === "/matrix/rules/needed" ? ["tick", "tock"] : []);
  const known = new RuleService({ stores: engine, entries: testEntries(engine), objects, neededBy });
  for (const name of ["needed", "other"]) await known.put(admin, `/matrix/rules/${name}`, text("name,n"));
  expect(await known.remove(admin, "/matrix/rules/needed")).toEqual([
    "The rule /matrix/rules/needed is removed, and policies need it: tick, tock; their records wait on their hosts until it is stored again.",
  ]);
  expect(await known.remove(admin, "/matrix/rules/other")).toEqual([]);
});

test("a pinned text is there after the rule has changed and gone", async () => {
  const key = "/matrix/rules/pinned";
  await rules.put(admin, key, text("name,n"));
  const first = await rules.load(admin, key);
  await rules.pin(admin, first, Date.now() + 60_000);
  await rules.pin(admin, first, Date.now() + 60_000);
  await rules.put(admin, key, text("n,name"));
  await rules.remove(admin, key);
  const pinned = await rules.pinned(admin, key, first.digest);
  expect(pinned.parse([{ ...RAW, text: "x,1" }])).toMatchObject([{ ok: true, values: { name: "x", n: "1" } }]);
  await expect(rules.pinned(admin, key, "0".repeat(64))).rejects.toMatchObject({ code: "not_found" });
});

test("a list holds every rule of the tenant, however many pages they fill, in the order of keys", async () => {
  const keys = Array.from(
    { length: onCluster ? 40 : KV_PAGE_MAX_ENTRIES + 20 },
    (_, at) => `/matrix/rules/many/${String(at).padStart(5, "0")}`,
  );
  await mapLimited(keys, PUTS_AT_ONCE, (key) => rules.put(admin, key, text("name,n")));
  const listed = await rules.list(admin, "/matrix/line");
  expect(listed.map(({ key }) => key).filter((key) => key.startsWith("/matrix/rules/many/"))).toEqual(keys);
  expect(await rules.list(other)).toEqual([]);
  expect(await rules.list(admin, "/matrix/elsewhere")).toEqual([]);
});

test("a rule follows its class when that is made anew", async () => {
  const key = "/matrix/rules/renewed";
  const renewed = { path: "/matrix/renewed", kind: "record" as const };
  await rules.put(admin, key, "--class=/matrix/renewed\n--parser=text\n--fields=value\n");
  await expect(rules.load(admin, key)).rejects.toMatchObject({ code: "not_found" });
  await objects.createClass(admin, { ...renewed, columns: [{ name: "value", type: "varchar" }] });
  expect((await rules.load(admin, key)).parse([{ ...RAW, text: "5" }])).toMatchObject([{ values: { value: "5" } }]);
  await objects.dropClass(admin, renewed.path);
  await expect(rules.load(admin, key)).rejects.toMatchObject({ code: "not_found" });
});

test("a rule is stored without option lines, and is an error when it is used", async () => {
  const key = "/matrix/rules/later";
  for (const [value, missing] of [
    ["", "no option --class"],
    ["-- to be written\n", "no option --class"],
    ["--class=/matrix/line\n", "no option --parser"],
    ["--parser=csv\n", "no option --class"],
    ["--class=/matrix/line\n--parser=grok\n", "no pattern"],
  ] as const) {
    expect((await rules.put(admin, key, value)).warnings, value).toEqual([expect.stringContaining(missing)]);
    await expect(rules.load(admin, key), value).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(missing) as string,
    });
  }
  for (const value of ["--parser=xml\n", "--class=/a\n--class=/b\n", "--parser=grok\n--pattern_1=%{NOPE:a}\n"]) {
    await expect(rules.put(admin, key, value), value).rejects.toMatchObject({ message: expect.any(String) as string });
  }
  expect((await rules.list(admin)).find((rule) => rule.key === key)?.value).toContain("--parser=grok");
});

test("what a rule says without effect is told with its line when it is stored", async () => {
  const value = `-- Access log: the shop's\n${text("name,n")}--nonsense=1\n--feilds=a\n-- pasrer = csv\n--retry\n`;
  expect((await rules.put(admin, "/matrix/rules/told", value)).warnings).toEqual([
    "Line 8: --retry has no effect: the rule has no body.",
    "Line 5: --nonsense is no option and was ignored.",
    "Line 6: --feilds is no option and was ignored; did you mean --fields?",
    "Line 7: --pasrer is no option and was ignored; did you mean --parser?",
  ]);
  expect((await rules.put(admin, "/matrix/rules/told", text("name,n"))).warnings).toEqual([]);
});

test("a rule names the nearest parser, column and class, and the place of its line", async () => {
  const key = "/matrix/rules/mistyped";
  for (const [value, message, details] of [
    ["--class=/matrix/line\r\n--parser=scv\r\n", /did you mean csv\?$/, { nearest: "csv", line: 2 }],
    [`${text("name,n")}--var_nmae=field n\n`, /no column nmae; did you mean name\?$/, { nearest: "name", line: 4 }],
    [`${text("name,n")}--var_name=map a\n`, /^Line 4: expected key:field/, { line: 4 }],
  ] as const)
    await expect(rules.put(admin, key, value)).rejects.toMatchObject({
      message: expect.stringMatching(message) as string,
      details: { ...details, column: 1 },
    });
  const { warnings } = await rules.put(admin, key, "--class=/matrix/lien\n--parser=csv\n--fields=name\n");
  const [said, ...others] = warnings;
  expect([said, ...others]).toEqual([
    "There is no class /matrix/lien now; did you mean /matrix/line? Until there is, records of the rule are errors.",
  ]);
});

test("a rule does not name a column or a class that its author may not see", async () => {
  const author = { ...admin, data: [{ class: "/matrix/line", access: "write", hidden: ["name"] }] } as const;
  const column = rules.put(author, "/matrix/rules/unseen", `${text("n")}--var_nmae=field n\n`);
  await expect(column).rejects.toMatchObject({ message: expect.not.stringContaining("did you mean") as string });
  const closed = { ...admin, data: [{ class: "/matrix/other", access: "write" }] } as const;
  const value = "--class=/matrix/lien\n--parser=csv\n--fields=name\n";
  await expect(rules.put(closed, "/matrix/rules/unseen", value)).rejects.toMatchObject({ code: "denied" });
});

test("a rule removed as configuration leaves its table, as the text can be brought back; its own interface takes both", async () => {
  const key = "/matrix/rules/tabled";
  const table = "key:a\tval:1";
  await rules.put(admin, key, text("name,n"));
  await rules.putExtension(admin, key, table);
  await testEntries(engine).write("matrix", [key], () => () => "delete", { by: "administrator" });
  await expect(rules.extension(admin, key)).rejects.toMatchObject({ code: "not_found" });
  await rules.put(admin, key, text("name,n"));
  expect(await rules.extension(admin, key)).toBe(table);
  await rules.remove(admin, key);
  await rules.put(admin, key, text("name,n"));
  expect(await rules.extension(admin, key)).toBe("");
});

test("rules that stop with a user are told to who deletes him, as far as they may be seen", async () => {
  const ann = { ...admin, user: "ann" };
  await rules.put(ann, "/matrix/rules/body", `${text("name,n")}_n = 1`);
  await rules.put(ann, "/matrix/rules/passes", `${text("name,n")}--forward=/matrix/rules/body\n`);
  await rules.put(ann, "/matrix/rules/options", text("name,n"));
  expect(await rules.endsWith(admin, "ann")).toEqual([
    "Rules stop until another user saves them: /matrix/rules/body, /matrix/rules/options, /matrix/rules/passes.",
  ]);
  expect(await rules.endsWith(admin, "other")).toEqual([]);
  expect(await rules.endsWith(other, "ann")).toEqual([]);
  expect(await rules.endsWith({ ...admin, grants: ["users:write"] }, "ann")).toEqual([]);
  expect(await rules.endsWith({ ...admin, data: [] }, "ann")).toEqual([]);
  await expect(rules.endsWith({ ...admin, grants: ["rules:read"] }, "ann")).rejects.toMatchObject({ code: "denied" });
  // Who saves one takes it over.
  for (const key of ["body", "options", "passes"]) await rules.put(admin, `/matrix/rules/${key}`, text("name,n"));
  expect(await rules.endsWith(admin, "ann")).toEqual([]);
});

async function made(path: string, rule: Parameters<RuleService["create"]>[1], line: string) {
  const loaded = await rules.load(admin, (await rules.create(admin, rule)).key);
  const [record] = loaded.parse([{ ...RAW, text: line }]);
  return record?.ok ? record.values : record?.error;
}

test("without fields, csv and text take the columns that the class and those above it define, none of the platform's", async () => {
  const above = {
    path: "/matrix/above",
    columns: [
      { name: "id", type: "varchar" },
      { name: "first", type: "varchar" },
    ],
  } as const;
  await objects.createClass(admin, above);
  await objects.createClass(admin, { path: "/matrix/above/below", columns: [{ name: "second", type: "int" }] });
  await objects.createClass(admin, { path: "/matrix/above/below/bare", columns: [] });
  await objects.createClass(admin, { path: "/matrix/nothing", columns: [] });
  for (const path of ["/matrix/above/below", "/matrix/above/below/bare"]) {
    expect(await made(path, { class: path, type: "csv" }, "a,1")).toEqual({ first: "a", second: "1" });
    expect(await made(path, { class: path, type: "text" }, "a,1")).toEqual({ first: "a,1" });
    const stored = `--class=${path}\n--parser=csv\n`;
    expect((await rules.given(admin, "/matrix/rules/given", stored)).parse([{ ...RAW, text: "a,1,x" }])).toEqual([
      { ok: false, ordinal: 0, error: "It has 3 columns where the rule names 2." },
    ]);
  }
  for (const type of ["csv", "text"] as const)
    await expect(rules.create(admin, { class: "/matrix/nothing", type }), type).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(`A ${type} rule needs --fields`) as string,
    });
  // The class may get columns later, so storing such a rule is no error.
  const key = "/matrix/rules/early";
  expect((await rules.put(admin, key, "--class=/matrix/nothing\n--parser=csv\n")).warnings).toEqual([
    expect.stringContaining("A csv rule needs --fields"),
  ]);
  await expect(rules.load(admin, key)).rejects.toMatchObject({ code: "invalid" });
});

test("a grok rule whose mapping names several of its fields is one line of these patterns, others are tried in order", async () => {
  const path = "/matrix/line";
  const grok = (fields: readonly string[], mapping: Readonly<Record<string, string>>, line: string) =>
    made(path, { class: path, type: "grok", fields, mapping }, line);
  const both = { name: "WORD", n: "INT" };
  expect(await grok(["WORD", "INT"], both, "a 17")).toEqual({ name: "a", n: "17" });
  expect(await grok(["WORD", "INT"], both, "  a \t 17 and more")).toEqual({ name: "a", n: "17" });
  expect(await grok(["WORD", "INT"], both, "a-17")).toBe("No pattern of the rule matches it.");
  expect(await grok(["WORD", "INT"], both, "a")).toBe("No pattern of the rule matches it.");
  // Their order is that of fields, and a pattern that no column takes has its place in the line.
  expect(await grok(["INT", "IP", "WORD"], both, "17 10.0.0.1 a")).toEqual({ name: "a", n: "17" });
  expect(await grok(["INT:count", "WORD:who"], { name: "who", n: "count" }, "17 a")).toEqual({ name: "a", n: "17" });
  for (const [line, values] of [
    ["10.0.0.1", { name: "10.0.0.1" }],
    ["a", "It holds no field of the rule's class."],
  ] as const)
    expect(await grok(["IP", "WORD"], { name: "IP" }, line)).toEqual(values);
  // Named twice, it is one pattern; the names that a pattern captures inside are none of the rule's fields.
  expect(await grok(["WORD", "INT"], { name: "WORD", n: "WORD" }, "17")).toEqual({ name: "17", n: "17" });
  expect(await grok(["SYSLOGPROG", "INT"], { name: "program", n: "pid" }, "sshd[17]")).toEqual({
    name: "sshd",
    n: "17",
  });
});

test("a data rule on the class of configuration itself hides rules, one on a class above does not", async () => {
  const key = "/matrix/rules/ruled";
  await rules.put({ ...admin, user: "ruler" }, key, text("name,n"));
  const access = "write";
  const seenUnder = async (...data: readonly DataRule[]) => {
    const who = { ...admin, data: [{ class: "/", access }, ...data] as const };
    const listed = (await rules.list(who)).some((rule) => rule.key === key);
    const stops = (await rules.endsWith(who, "ruler")).join().includes(key);
    const table = await rules.extension(who, key).then(
      () => true,
      ({ code }: { code: string }) => code !== "not_found",
    );
    return { listed, stops, table };
  };
  const config = "/matrix/system/config";
  const [all, none] = [
    { listed: true, stops: true, table: true },
    { listed: false, stops: false, table: false },
  ];
  expect(await seenUnder()).toEqual(all);
  expect(await seenUnder({ class: "/matrix/system", access: "none" })).toEqual(all);
  expect(await seenUnder({ class: config, access, hidden: ["author"] })).toEqual(all);
  for (const hidden of ["value", "key"])
    expect(await seenUnder({ class: config, access, hidden: [hidden] })).toEqual(none);
  expect(await seenUnder({ class: config, access: "none" })).toEqual(none);
  expect(await seenUnder({ class: config, access: "none" }, { class: "/", access, group: "other" })).toEqual(all);
});

test("a condition on a rule that a data rule hides is refused, and tells no revision", async () => {
  const key = "/matrix/rules/ruled";
  await rules.put(admin, key, text("name,n"));
  const config = { class: "/matrix/system/config", access: "none" as const };
  const who = { ...admin, data: [{ class: "/", access: "write" as const }, config] };
  const refused = { code: "denied", message: `The rule ${key} is not among the rules that this user may change.` };
  for (const expected of [{ isAbsent: true }, { revisions: ["0"], isAbsent: false }]) {
    await expect(rules.put(who, key, text("name"), expected)).rejects.toMatchObject(refused);
    await expect(rules.remove(who, key, expected)).rejects.toMatchObject(refused);
  }
});
