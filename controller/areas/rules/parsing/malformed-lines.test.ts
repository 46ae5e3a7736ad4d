import { afterAll, beforeAll, expect, test } from "vitest";
import { pino } from "pino";
import { RECORD_MAX_BYTES } from "../../../../common/limits.ts";
import { UTF8 } from "../../../../common/text/encodings.ts";
import { decodeText } from "../../../../common/text/text-stream.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { HostObjects } from "../../../scripting/index.ts";
import type { Stores } from "../../../store/engine.ts";
import { levelOf, type RunLogs, type SaidEntry } from "../../consolelog/index.ts";
import { NotificationHub } from "../../notifications/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { RuleBodies } from "../bodies/bodies.ts";
import { FileParser, RuleService, RuleTrials, SentLines } from "../index.ts";
import { ruleRoutes } from "../routes.ts";
import { visibleObjects } from "../../query/index.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/sent";
const MARKED = [
  { name: "name", type: "varchar" },
  { name: "n", type: "int" },
] as const;
/** Other rules make nothing of what is passed on to them. */
const PASSED_NOWHERE: Pick<RuleBodies, "work"> = { work: ({ parsed }) => Promise.resolve(parsed) };
const OWN = [...MARKED, { name: "Marks", type: "varchar" }] as const;

let http: TestHttp;
let objects: ObjectService;
let rules: RuleService;
const hub = new NotificationHub({ log: pino({ level: "silent" }) });

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  rules = new RuleService({ stores, entries: testEntries(stores), objects });
  const parts = { rules, objects, clock: realClock, bodies: PASSED_NOWHERE };
  const sentLines = new SentLines({ ...parts, notifications: hub, random: runtime.random });
  const fileParser = new FileParser({ ...parts, files: { openServed: () => Promise.reject(new Error("not asked")) } });
  const trials = new RuleTrials({ hostObjects: () => new HostObjects([]), objects, rules, runtime });
  http = await openTestHttp({ endpoints: ruleRoutes({ rules, fileParser, sentLines, trials }) });
  await objects.createClass(ADMIN, { path: "/matrix/sent", kind: "record", columns: MARKED });
  await rules.put(ADMIN, KEY, "--class=/matrix/sent\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n");
});
afterAll(async () => {
  await objects.close();
  await http[Symbol.asyncDispose]();
});

/** The answer of `POST /agent`. */
async function send(query: string, payload: string | Buffer, headers: Readonly<Record<string, string>> = {}) {
  const authorization = `Basic ${Buffer.from(`matrix.admin:${PASSWORD}`).toString("base64")}`;
  const given = { authorization, "content-type": "text/plain", ...headers };
  const answer = await http.app.inject({ method: "POST", url: `/agent?${query}`, payload, headers: given });
  return answer.json<unknown>();
}

const MALFORMED = Buffer.from("d6d02c310ad6ff2c320d0a0a622c330a", "hex");

test("a body with bytes that are no text is refused, whatever its type, and nothing of it is stored", async () => {
  await objects.createClass(ADMIN, {
    path: "/matrix/refused",
    kind: "record",
    columns: [{ name: "name", type: "varchar" }],
  });
  await rules.put(ADMIN, "/matrix/rules/refused", "--class=/matrix/refused\n--parser=csv\n--fields=name,\n");
  for (const type of [
    "text/plain; charset=gbk",
    "application/x-www-form-urlencoded; charset=gbk",
    "application/json; charset=gbk",
  ])
    expect(await send("rule=/matrix/rules/refused", MALFORMED, { "content-type": type })).toMatchObject({
      code: "invalid",
      message: expect.stringContaining("The body is no gbk text at byte 6") as string,
    });
  expect(await rowsOf("/matrix/refused")).toEqual([]);
});

test.each(["text/plain; charset=gbk", "application/x-www-form-urlencoded; charset=gbk"])(
  "malformed=mark takes it as %s, and marks the records of those lines",
  async (type) => {
    const key = "/matrix/rules/marked";
    await objects
      .createClass(ADMIN, { path: "/matrix/marked", kind: "record", columns: MARKED })
      .catch(() => undefined);
    await rules.put(ADMIN, key, "--class=/matrix/marked\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n");
    expect(await send(`rule=${key}&malformed=mark`, MALFORMED, { "content-type": type })).toMatchObject({
      message: { records: 3, failed: 0 },
    });
    expect((await rowsOf("/matrix/marked")).slice(-3)).toEqual([
      { name: "中", n: 1 },
      { name: "\ufffd", n: 2, marks: ["malformed"], _rawbytes: Buffer.from("d6ff2c32", "hex").toString("base64") },
      { name: "b", n: 3 },
    ]);
  },
);

test("a malformed line has as many bytes as were sent, and no more than a record may have", async () => {
  const key = "/matrix/rules/long";
  await objects.createClass(ADMIN, { path: "/matrix/long", kind: "record", columns: MARKED });
  await rules.put(ADMIN, key, "--class=/matrix/long\n--parser=text\n--fields=name\n");
  const longest = Buffer.alloc(RECORD_MAX_BYTES, 0xff);
  const line = (bytes: Buffer) => send(`rule=${key}&malformed=mark`, Buffer.concat([Buffer.from("a\n"), bytes]));
  expect(await line(Buffer.concat([longest, Buffer.from("\r\n")]))).toMatchObject({ message: { records: 2 } });
  expect(await rowsOf("/matrix/long")).toMatchObject([{ name: "a" }, { _rawbytes: longest.toString("base64") }]);
  expect(await line(Buffer.concat([longest, Buffer.of(0xff)]))).toMatchObject({
    code: "too_large",
    message: expect.stringContaining(`Line 2 has more than ${RECORD_MAX_BYTES} bytes`) as string,
  });
});

test("a row of several lines has the mark of any of them, and the bytes of all", async () => {
  const key = "/matrix/rules/joined";
  await objects.createClass(ADMIN, { path: "/matrix/joined", kind: "record", columns: MARKED });
  await rules.put(ADMIN, key, "--class=/matrix/joined\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n");
  const lines = Buffer.concat([Buffer.from('"a\nb'), Buffer.of(0xff), Buffer.from('",1\n\ufffd,2\nc,3')]);
  await send(`rule=${key}&malformed=mark`, lines);
  expect(await rowsOf("/matrix/joined")).toEqual([
    { name: "a\nb\ufffd", n: 1, marks: ["malformed"], _rawbytes: lines.subarray(0, 8).toString("base64") },
    { name: "\ufffd", n: 2 },
    { name: "c", n: 3 },
  ]);
});

test("a rule with --raw_bytes=false marks the records of malformed lines and keeps no bytes of them", async () => {
  const key = "/matrix/rules/masked";
  await objects.createClass(ADMIN, { path: "/matrix/masked", kind: "record", columns: MARKED });
  await rules.put(ADMIN, key, "--class=/matrix/masked\n--parser=csv\n--fields=name,card\n--raw_bytes=false\n");
  await send(`rule=${key}&malformed=mark`, Buffer.from("a\xff,secret", "latin1"));
  expect(await rowsOf("/matrix/masked")).toEqual([{ name: "a\ufffd", marks: ["malformed"] }]);
});

test("malformed=mark is refused for a rule whose lines all become objects, which have no marks", async () => {
  const key = "/matrix/rules/objects";
  await objects.createClass(ADMIN, { path: "/matrix/object", columns: MARKED, keys: ["name"] });
  await rules.put(ADMIN, key, "--class=/matrix/object\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n");
  const refused = {
    status: "error",
    code: "invalid",
    message: expect.stringContaining(
      "malformed=mark marks records, and /matrix/object is a class of objects",
    ) as string,
  };
  for (const lines of ["f,6", Buffer.from("b\xff,2\nc,3", "latin1")])
    expect(await send(`rule=${key}&malformed=mark`, lines)).toMatchObject(refused);
  expect(await rowsOf("/matrix/object")).toEqual([]);
  expect(await send(`rule=${key}`, "f,6")).toMatchObject({ message: { records: 1 } });
});

test.each([
  ["become objects", { path: "/matrix/passed", columns: MARKED, keys: ["name"] }],
  ["become records of a class with a column marks of its own", { path: "/matrix/owned", kind: "record", columns: OWN }],
] as const)("malformed lines that %s are a warning of the answer and of the console log", async (_, view) => {
  const { path } = view;
  await objects.createClass(ADMIN, view);
  const key = path.replace("/matrix", "/matrix/rules");
  // Another rule may make records of the lines, so the call is taken.
  const options = "--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n";
  await rules.put(ADMIN, key, `--class=${path}\n${options}--forward=/matrix/rules/sent\n`);
  const lines = Buffer.from("a,1\nb\xff,2\nc,3\nd\xff,4\ne\xff,x\n", "latin1");
  const warning =
    "2 malformed lines are stored with U+FFFD and without a mark: classes of objects have none, " +
    `nor has a class with a column marks of its own. First: line 2, class ${path}.`;
  const entries: SaidEntry[] = [];
  const keep: RunLogs["keep"] = (_principal, _rule, log) => Promise.resolve(void entries.push(...log.entries()));
  const { random } = testRuntime(realClock);
  const parts = { rules, objects, clock: realClock, bodies: PASSED_NOWHERE };
  const logged = new SentLines({ ...parts, notifications: hub, random, logs: { keep } });
  const malformed = { bytes: lines, encoding: UTF8 };
  const { text } = decodeText(lines, UTF8);
  const { signal } = new AbortController();
  const taken = await logged.take(ADMIN, { rule: key, text, isMarked: true, malformed, signal });
  expect(taken).toMatchObject({ records: 4, failed: 1, warnings: [warning] });
  expect(entries.slice(1)).toMatchObject([
    { level: levelOf("warn"), msg: warning, about: { raw: "b\ufffd,2", count: 2 } },
  ]);
  expect(await send(`rule=${key}&malformed=mark`, lines)).toMatchObject({ warnings: [warning] });
  expect(await send(`rule=${key}&malformed=mark`, "f,6")).not.toHaveProperty("warnings");
});

test("malformed=mark is for rules, and has no other value", async () => {
  expect(await send("subject=chat&malformed=mark", "a")).toMatchObject({
    code: "invalid",
    message: expect.stringContaining("malformed=mark") as string,
  });
  expect(await send(`rule=${KEY}&malformed=drop`, "a,1")).toMatchObject({ code: "invalid" });
  expect(
    await send(`rule=${KEY}&malformed=mark`, MALFORMED, { "content-type": "text/plain; charset=klingon" }),
  ).toMatchObject({ code: "invalid" });
});

/** In the order of arrival. */
async function rowsOf(path: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows: { readonly id: string; readonly values: Readonly<Record<string, unknown>> }[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false })) rows.push(...page);
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1)).map(({ values }) => values);
}
