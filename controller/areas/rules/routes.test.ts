import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { HostObjects } from "../../scripting/index.ts";
import { FileParser, RuleService, RuleTrials, SentLines } from "./index.ts";
import { ruleRoutes } from "./routes.ts";

const ADMIN = testPrincipal();
const KEY = "/matrix/rules/lines";
const TEXT = "--class=/matrix/line\n--parser=text\n--fields=name\n";

let http: TestHttp;
let session: string;
let rules: RuleService;
let controller: FileController;

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  const runtime = testRuntime(realClock);
  controller = fileController(stores);
  const { objects, files } = controller;
  rules = new RuleService({ stores, entries: testEntries(stores), objects });
  const parts = { rules, objects, clock: realClock };
  const fileParser = new FileParser({ ...parts, files });
  const sentLines = new SentLines({ ...parts, notifications: { publish: () => undefined }, random: runtime.random });
  const trials = new RuleTrials({ hostObjects: () => new HostObjects([]), objects, rules, runtime });
  http = await openTestHttp({ endpoints: ruleRoutes({ rules, fileParser, sentLines, trials }) });
  session = await http.signIn("admin");
  await objects.createClass(ADMIN, {
    path: "/matrix/line",
    kind: "record",
    columns: [{ name: "name", type: "varchar" }],
  });
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const form = (fields: Readonly<Record<string, string>>) => ({
  payload: new URLSearchParams(fields).toString(),
  headers: { "content-type": "application/x-www-form-urlencoded" },
});

test("a rule is removed by its key in the query or in a form", async () => {
  const url = "/mxobject/rule";
  for (const removal of [
    { url, ...form({ key: KEY }) },
    { url: `${url}?${new URLSearchParams({ key: KEY }).toString()}` },
  ]) {
    await rules.put(ADMIN, KEY, TEXT);
    expect(await http.call(session, { method: "DELETE", ...removal })).toEqual({ status: "ok", message: "" });
    expect(await rules.list(ADMIN)).toEqual([]);
    expect(await http.call(session, { method: "DELETE", ...removal })).toMatchObject({ code: "not_found" });
  }
});

test("a file of the users' space is parsed, or else of the system's, or by $issys or issys that of the system's", async () => {
  await rules.put(ADMIN, KEY, TEXT);
  await controller.files.write(ADMIN, { path: "/both.log", space: "user" }, { text: "of a user" });
  await controller.files.write(ADMIN, { path: "/both.log", space: "system" }, { text: "one\ntwo\n" });
  await controller.files.write(ADMIN, { path: "/system.log", space: "system" }, { text: "three\n" });
  const parse = (filename: string, more: Readonly<Record<string, string>>) =>
    http.call(session, {
      url: `/action/parsefile?${new URLSearchParams({ rule: KEY, filename, ...more }).toString()}`,
    });
  for (const [filename, more, records] of [
    ["/both.log", {}, 1],
    ["/both.log", { $issys: "false" }, 1],
    ["/both.log", { $issys: "true" }, 2],
    ["/both.log", { issys: "true" }, 2],
    ["/system.log", { $issys: "1" }, 1],
    ["/system.log", {}, 1],
  ] as const)
    expect(await parse(filename, more)).toMatchObject({ status: "ok", message: { class: "/matrix/line", records } });
  expect(await parse("/none.log", {})).toMatchObject({ code: "not_found" });
  expect(await parse("/system.log", { $issys: "sometimes" })).toMatchObject({ code: "invalid" });
  const names = [];
  for await (const page of controller.objects.unrestricted.read(ADMIN, { class: "/matrix/line", subtree: false }))
    names.push(...page.map(({ values }) => values["name"]));
  expect(names.sort()).toEqual(["of a user", "one", "three", "two"]);
});
