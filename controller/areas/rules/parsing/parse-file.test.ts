import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { PARSE_FILE_MAX_BYTES, RULE_FAILURES_LOGGED_MAX } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { CONSOLE_LOG_CLASSES, ConsoleLogService, levelOf, RunLogs, SCRIPT_LOG_BOUNDS } from "../../consolelog/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { FileParser, RuleService, SentLines } from "../index.ts";
import { visibleObjects } from "../../query/index.ts";

const ADMIN = testPrincipal();
const RULE = "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";

let engine: TestEngine;
let objects: ObjectService;
let rules: RuleService;
let logs: ConsoleLogService;
let parser: FileParser;
let sentLines: SentLines;
/** Content of the file that is parsed; an error in its place is thrown. */
let content: string | Buffer | AppError;
let size: number | undefined;
let key = "";
let count = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  for (const definition of CONSOLE_LOG_CLASSES) objects.registerSystemClass(definition);
  logs = new ConsoleLogService({ objects, clock: realClock });
  rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const runLogs = new RunLogs({ kind: "rule", logs, runtime }, SCRIPT_LOG_BOUNDS);
  const parts = { rules, objects, clock: realClock, logs: runLogs };
  const openServed = (_by: Principal, _name: unknown) => {
    if (content instanceof AppError) return Promise.reject(content);
    const bytes = Buffer.from(content);
    const pieces = (async function* () {
      yield await Promise.resolve(bytes);
    })();
    return Promise.resolve({
      digest: `${key}${bytes.toString("hex")}`,
      size: size ?? bytes.length,
      modifiedMs: 0,
      bytes: pieces,
    });
  };
  parser = new FileParser({ ...parts, files: { openServed } });
  sentLines = new SentLines({ ...parts, notifications: { publish: () => undefined }, random: runtime.random });
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  await objects.createClass(ADMIN, { path: "/matrix/line", kind: "record", columns });
});
beforeEach(async () => {
  key = `/matrix/rules/r${(count += 1)}`;
  size = undefined;
  await rules.put(ADMIN, key, RULE);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const { signal } = new AbortController();

async function parsed(text: string | Buffer | AppError, { by = ADMIN, rule = key, encoding = "utf-8" } = {}) {
  content = text;
  return parser.parse(by, { rule, filename: "/a.csv", space: "user", encoding, signal });
}

async function said(name = key) {
  return (await logs.read(ADMIN, { kind: "rule", name, levels: [] }, { limit: 1_000 })).logs;
}

const failures = async (name?: string) => (await said(name)).map(({ msg }) => msg);

test("each line that fails is an entry of the rule's console log, with its text", async () => {
  expect(await parsed("a,1\nb,many\n\nc,3\nd,x,y,z")).toMatchObject({ records: 2, failed: 2 });
  const common = { level: levelOf("error"), source: "/a.csv", count: 1 };
  expect(await said()).toMatchObject([
    { ...common, msg: 'Line 2: The field n is no INT: "many".', raw: "b,many" },
    { ...common, msg: "Line 5: It has 4 columns where the rule names 2.", raw: "d,x,y,z" },
  ]);
});

test("a file is read in the encoding that is named, and in another one its rows are others", async () => {
  const names = async (): Promise<readonly unknown[]> => {
    const found: unknown[] = [];
    for await (const page of objects.unrestricted.read(ADMIN, { class: "/matrix/line", subtree: false }))
      found.push(...page.map(({ values }) => values["name"]));
    return found;
  };
  const gbk = Buffer.from("b1e02c310ac2eb2c32", "hex");
  expect(await parsed(gbk, { encoding: "latin1" })).toMatchObject({ records: 2 });
  expect(await parsed(gbk, { encoding: "gbk" })).toMatchObject({ records: 2 });
  expect(await names()).toEqual(expect.arrayContaining(["编", "码"]));
  expect(await parsed(Buffer.from("\ufeff编,1\r\n", "utf16le"), { encoding: "utf-16le" })).toMatchObject({
    records: 1,
  });
});

test("bytes that are no text are refused with their place before a row is stored, and so is no encoding", async () => {
  await expect(parsed(Buffer.from("a,1\nb\xb1,2\n", "latin1"))).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("/a.csv is no utf-8 text at byte 6: name its encoding by encoding=") as string,
  });
  await expect(parsed("a,1", { encoding: "klingon" })).rejects.toThrow('encoding="klingon" is no encoding');
});

test("a file whose records all fail is an error that names the first, and one with a good, a blank or a dropped one is none", async () => {
  await expect(parsed("\na,x\n\nb,y\n")).rejects.toMatchObject({
    code: "invalid",
    message: `No record of /a.csv could be parsed and stored by the rule ${key}; 2 failed. Line 2: The field n is no INT: "x".`,
    details: {
      failed: 2,
      errors: [
        { line: 2, error: 'The field n is no INT: "x".' },
        { line: 4, error: 'The field n is no INT: "y".' },
      ],
    },
  });
  expect(await failures()).toEqual([
    'Line 2: The field n is no INT: "x".',
    'Line 4: The field n is no INT: "y".',
    `No record of /a.csv could be parsed and stored by the rule ${key}; 2 failed. Line 2: The field n is no INT: "x".`,
  ]);
  for (const [text, result] of [
    ["a,1\nb,y", { records: 1, failed: 1 }],
    ["", { records: 0, failed: 0 }],
    ["\n \n", { records: 0, failed: 0 }],
  ] as const)
    expect(await parsed(text), text).toMatchObject(result);
  await rules.put(ADMIN, key, `${RULE}--ignore\n`);
  expect(await parsed("a,x")).toMatchObject({ records: 0, failed: 0 });
});

test("records that were removed after an earlier run are no failures", async () => {
  await parsed("removed,1\nb,y");
  for await (const page of objects.unrestricted.read(ADMIN, { class: "/matrix/line", subtree: false }))
    await objects.unrestricted.remove(
      ADMIN,
      page.filter(({ values }) => values["name"] === "removed").map(({ id }) => ({ id, class: "/matrix/line" })),
    );
  expect(await parsed("removed,1\nb,y")).toMatchObject({ records: 0, removed: 1, failed: 1 });
});

test("a call that fails as a whole is an entry of the rule's console log", async () => {
  await expect(parsed(new AppError("not_found", "There is no file /a.csv."))).rejects.toMatchObject({
    code: "not_found",
  });
  size = PARSE_FILE_MAX_BYTES + 1;
  await expect(parsed("a,1")).rejects.toMatchObject({ code: "too_large" });
  size = undefined;
  await rules.put(ADMIN, key, "--parser=csv\n");
  await expect(parsed("a,1")).rejects.toMatchObject({ code: "invalid" });
  await rules.put(ADMIN, key, "--class=/matrix/none\n--parser=csv\n--fields=a\n");
  await expect(parsed("a,1")).rejects.toMatchObject({ code: "not_found" });
  await rules.put(ADMIN, key, RULE);
  await expect(parsed("a,1", { by: { ...ADMIN, data: [{ class: "/matrix", access: "read" }] } })).rejects.toMatchObject(
    {
      code: "denied",
    },
  );
  const entries = await said();
  expect(entries.map(({ msg }) => msg)).toEqual([
    "There is no file /a.csv.",
    expect.stringContaining("A file to parse has at most"),
    expect.stringContaining("no option --class"),
    "class : /matrix/none not find !",
    expect.stringContaining("may not write"),
  ]);
  for (const entry of entries) expect(entry).toMatchObject({ level: levelOf("error"), source: "/a.csv" });
});

test("a rule that is not there, or not for the caller, gets no entry by it, and none who may not use rules makes one", async () => {
  await expect(parsed("a,1", { rule: "/matrix/rules/none" })).rejects.toMatchObject({ code: "not_found" });
  await expect(parsed("a,1", { rule: "none" })).rejects.toMatchObject({ code: "invalid" });
  await expect(parsed("a,1", { by: { ...ADMIN, data: [] } })).rejects.toMatchObject({ code: "not_found" });
  await expect(parsed("a,1", { by: testPrincipal("viewer") })).rejects.toMatchObject({ code: "denied" });
  expect([await said("/matrix/rules/none"), await said("none"), await said()]).toEqual([[], [], []]);
});

test("of very many failures the log has the first, and the number of the others", async () => {
  const lines = Array.from({ length: RULE_FAILURES_LOGGED_MAX + 5 }, () => "a,x");
  await expect(parsed(["good,1", ...lines].join("\n"))).resolves.toMatchObject({ failed: lines.length });
  const { logs: entries, position } = await logs.read(ADMIN, { kind: "rule", name: key, levels: [] }, { limit: 1_000 });
  const rest = await logs.read(ADMIN, { kind: "rule", name: key, levels: [] }, { position });
  expect([...entries, ...rest.logs]).toHaveLength(RULE_FAILURES_LOGGED_MAX + 1);
  expect(rest.logs.at(-1)).toMatchObject({ msg: "5 more lines failed.", count: 5 });
});

test("lines that a program sends leave their failures in the log too, and are no error of the call", async () => {
  const sent = await sentLines.take(ADMIN, { rule: key, text: "a,x\nb,y\n", signal });
  expect(sent).toMatchObject({ records: 0, failed: 2 });
  expect(await failures()).toEqual(['Line 1: The field n is no INT: "x".', 'Line 2: The field n is no INT: "y".']);
});

const rows = async (path = "/matrix/line") => {
  const found: unknown[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
    found.push(...page.map(({ values }) => values));
  return found;
};

test("a heading line names the fields of a file, or is the one that the rule names", async () => {
  await rules.put(ADMIN, key, "--class=/matrix/line\n--parser=csv\n--header=true\n--separator=;\n--null=\n");
  expect(await parsed("\uFEFF\r\nn;name\r\n7;headed\r\nn;name\r\n;8 and no number\r\n")).toMatchObject({ records: 2 });
  expect(await rows()).toEqual(
    expect.arrayContaining(
      [{ name: "headed", n: 7 }, { name: "8 and no number" }].map((one) => expect.objectContaining(one)),
    ),
  );
  await expect(parsed("n;n\n1;2")).rejects.toMatchObject({ message: "The heading line names the field n twice." });

  await rules.put(ADMIN, key, `${RULE}--header=true\n`);
  expect(await parsed("name,n\na,1\nname,n\nb,x")).toMatchObject({ records: 1, failed: 1, errors: [{ line: 4 }] });
  await expect(parsed("name,n\nb,x")).rejects.toMatchObject({ message: expect.stringContaining("1 failed. Line 2") });
  await expect(parsed("n,name\n1,a")).rejects.toMatchObject({
    code: "invalid",
    message: 'The first line is not the heading line that --fields names, name,n: "n,name".',
  });
});

test("a value in quotes may go over lines of a file, which keep their numbers", async () => {
  expect(await parsed('a,1\r\n"two\r\nlines",2\r\n"open,3\r\nb,x')).toMatchObject({
    records: 2,
    failed: 2,
    errors: [
      { line: 4, error: "Value 1: its quotes are not closed." },
      { line: 5, error: 'The field n is no INT: "x".' },
    ],
  });
  expect(await rows()).toContainEqual(expect.objectContaining({ name: "two\r\nlines", n: 2 }));
});

test("lines that a program sends may begin with a heading line, and have values of several lines", async () => {
  await rules.put(ADMIN, key, "--class=/matrix/line\n--parser=csv\n--header=true\n");
  const text = 'n,name\n5,"sent\nby lines"\n';
  expect(await sentLines.take(ADMIN, { rule: key, text, signal })).toMatchObject({ records: 1, failed: 0 });
  expect(await rows()).toContainEqual(expect.objectContaining({ name: "sent\nby lines", n: 5 }));
});

test("lines that a program sends need no heading line where the rule names the fields", async () => {
  await rules.put(ADMIN, key, `${RULE}--header=true\n`);
  expect(await sentLines.take(ADMIN, { rule: key, text: "sent,6\nname,n\n", signal })).toMatchObject({
    records: 1,
    failed: 0,
  });
});

test("comments are no records of a file whose records all fail", async () => {
  await rules.put(ADMIN, key, `${RULE}--comment_sign=#\n`);
  await expect(parsed("# sales\nb,x")).rejects.toMatchObject({ message: expect.stringContaining("1 failed. Line 2") });
});
