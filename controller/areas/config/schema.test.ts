import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { CONFIG_SINGLE_READS_MAX } from "../../../common/limits.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { ConfigHistory } from "./history.ts";
import { ConfigImport } from "./import.ts";
import { MASK } from "./rights.ts";
import { ConfigSchemas } from "./schemas.ts";
import { ConfigService } from "./service.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");

let engine: TestEngine;
let world: ReturnType<typeof configWorld>;
let config: ConfigService;
let schemas: ConfigSchemas;
let history: ConfigHistory;
let folder = "";
/** Key prefix of one test. */
let base = "";
let count = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  world = configWorld(engine);
  config = new ConfigService(world);
  schemas = new ConfigSchemas(world, config);
  history = new ConfigHistory(world);
  folder = await mkdtemp(join(tmpdir(), "odp-config-schema-"));
});
beforeEach(() => {
  base = `/matrix/typed${(count += 1)}`;
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await world[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const set = (key: string, value: string, more: { secret?: boolean } = {}) => config.set(admin, { key, value, ...more });
const value = async (key: string) => (await config.tree(admin, key)).value;
const breaking = (key: string, rule: string) => ({ code: "invalid", details: { key, schema: key, rule } });

async function imported(entries: readonly object[], plan = false) {
  const path = join(folder, "import.json");
  await writeFile(path, JSON.stringify(entries));
  return new ConfigImport(world).run(admin, { path, size: (await stat(path)).size, plan });
}

test.each<[rules: Parameters<ConfigSchemas["set"]>[2], rule: string, good: readonly string[], bad: readonly string[]]>([
  [
    { type: "integer" },
    "type",
    ["0", "-7", "9007199254740991"],
    ["", "1.5", "07", " 1", "1e3", "9007199254740992", "0x1"],
  ],
  [{ type: "number" }, "type", ["0", "-1.5", "2e3"], ["", ".5", "1.", "NaN", "Infinity", "1e999"]],
  [{ type: "boolean" }, "type", ["true", "false"], ["", "TRUE", "1"]],
  [{ type: "json" }, "type", ["null", '{"a":[1]}'], ["", "{a:1}", "[".repeat(10_000)]],
  [{ type: "integer", minimum: 1 }, "minimum", ["1", "2"], ["0", "-5"]],
  [{ type: "number", maximum: 1.5 }, "maximum", ["1.5", "-9"], ["1.6"]],
  [{ type: "string", minLength: 2 }, "minLength", ["ab", "主机"], ["", "a", "😀"]],
  [{ type: "string", maxLength: 1 }, "maxLength", ["", "😀"], ["ab"]],
  [{ type: "string", pattern: "^[a-z]+$" }, "pattern", ["abc"], ["", "ab1", "A"]],
  [{ type: "string", enum: ["red", "green"] }, "enum", ["red"], ["", "blue", "RED"]],
])(
  "%j: what breaks the rule %s is refused by key and rule, and leaves what is there",
  async (rules, rule, good, bad) => {
    const key = `${base}/a`;
    await schemas.set(admin, key, rules);
    for (const text of good) await set(key, text);
    for (const text of bad) await expect(set(key, text), text).rejects.toMatchObject(breaking(key, rule));
    expect(await value(key)).toBe(good.at(-1));
  },
);

test("the nearest schema holds, at once at every controller, and none of another directory", async () => {
  await using other = configWorld(engine);
  const elsewhere = new ConfigService(other);
  await schemas.set(admin, base, { type: "integer" });
  await schemas.set(admin, `${base}/names`, { type: "string", maxLength: 3 });
  await expect(elsewhere.set(admin, { key: `${base}/a/deep`, value: "x" })).rejects.toMatchObject({
    message: `${base}/a/deep breaks the rule type ("integer") of the schema of ${base}.`,
    details: { schema: base },
  });
  await set(`${base}/names/x`, "abc");
  await set(`${base}-beside`, "abc");
  expect(await schemas.get(viewer, `${base}/names/x`)).toMatchObject({
    key: `${base}/names`,
    maxLength: 3,
    version: 1,
  });
  await schemas.remove(admin, base);
  await elsewhere.set(admin, { key: `${base}/a/deep`, value: "x" });
  expect(await schemas.get(admin, `${base}/names`)).toMatchObject({ type: "string" });
  await expect(schemas.get(admin, `${base}/a`)).rejects.toMatchObject({ code: "not_found" });
  await expect(schemas.remove(admin, base)).rejects.toMatchObject({ code: "not_found" });
});

test("values of a secret schema are sealed, refused readable, kept by their mask, and never told", async () => {
  const key = `${base}/pin`;
  await schemas.set(admin, key, { type: "integer", minimum: 1_000, secret: true });
  await set(key, "1234");
  expect(await config.tree(admin, key)).toMatchObject({ value: MASK, secret: true });
  await set(key, MASK);
  await expect(set(key, "5678", { secret: false })).rejects.toMatchObject(breaking(key, "secret"));
  await expect(set(key, "777")).rejects.toSatisfy((error: Error) => !error.message.includes("777"));
  await expect(set(`${base}/pin/other`, MASK)).rejects.toMatchObject({ code: "invalid" });
});

test("an import is refused whole for what breaks a schema, and seals what is to be secret", async () => {
  await schemas.set(admin, `${base}/n`, { type: "integer" });
  await schemas.set(admin, `${base}/s`, { type: "string", secret: true });
  for (const many of [0, CONFIG_SINGLE_READS_MAX]) {
    const more = Array.from({ length: many }, (_, at) => ({ key: `${base}/n/${at}`, value: String(at) }));
    const bad = { key: `${base}/n/last`, value: "x" };
    for (const plan of [true, false])
      await expect(imported([...more, { key: `${base}/s/a`, value: "hidden" }, bad], plan)).rejects.toSatisfy(
        (error: Error) => error.message.includes(bad.key) && error.message.includes("type"),
      );
    await expect(config.tree(admin, `${base}/s/a`)).rejects.toMatchObject({ code: "not_found" });
    await imported([...more, { key: `${base}/s/a`, value: "hidden" }]);
    expect(await config.tree(admin, `${base}/s/a`)).toMatchObject({ value: MASK });
    await config.remove(admin, base);
  }
});

test("a rollback goes by the schema of now: refused, or sealed; what is there already stays", async () => {
  const key = `${base}/a`;
  await set(key, "text");
  await set(key, "5");
  await schemas.set(admin, key, { type: "integer" });
  await expect(history.rollback(admin, key, 1)).rejects.toMatchObject(breaking(key, "type"));
  await schemas.set(admin, key, { type: "string", minLength: 2, secret: true });
  expect(await config.tree(admin, key)).toEqual({ key, value: "5" });
  await expect(history.rollback(admin, key, 2)).rejects.toMatchObject(breaking(key, "minLength"));
  await history.rollback(admin, key, 1);
  expect(await config.tree(admin, key)).toMatchObject({ value: MASK });
  await schemas.set(admin, key, { type: "string", minLength: 9, secret: true });
  await expect(history.rollback(admin, key, 3)).rejects.toMatchObject(breaking(key, "minLength"));
  await config.remove(admin, key);
});

test("a schema has versions with authors, is exported and imported, and goes back to an earlier one", async () => {
  const key = `${base}/a`;
  const place = `/matrix/config-schemas${base.slice("/matrix".length)}/a`;
  await schemas.set(admin, key, { type: "integer" });
  await schemas.set(admin, key, { type: "boolean" });
  expect(await history.history(admin, place)).toMatchObject([
    { version: 2, author: admin.user },
    { version: 1, value: '{"type":"integer"}' },
  ]);
  await history.rollback(admin, place, 1);
  expect(await schemas.get(admin, key)).toMatchObject({ type: "integer", version: 3 });
  await imported([{ key: place, value: '{"type":"boolean"}' }]);
  expect(await schemas.get(admin, key)).toMatchObject({ type: "boolean" });
});

test.each([
  ["type", { type: "float" }],
  ["minimum", { type: "string", minimum: 1 }],
  ["minimum", { type: "integer", minimum: 2, maximum: 1 }],
  ["minLength", { type: "json", maxLength: 1 }],
  ["minLength", { type: "string", minLength: 2, maxLength: 1 }],
  ["pattern", { type: "string", pattern: "(" }],
  ["enum", { type: "integer", enum: ["1", "x"] }],
  ["enum", { type: "string", enum: [] }],
  ["regex", { type: "string", regex: "x" }],
])("a schema with a wrong %s is refused by every way to it: %j", async (member, rules) => {
  const place = `/matrix/config-schemas${base.slice("/matrix".length)}`;
  await expect(set(place, JSON.stringify(rules))).rejects.toMatchObject({ code: "invalid" });
  await expect(set(place, JSON.stringify(rules))).rejects.toThrow(member);
  await expect(imported([{ key: place, value: JSON.stringify(rules) }])).rejects.toThrow(member);
  await expect(set(place, "no JSON")).rejects.toMatchObject({ code: "syntax" });
  await expect(set(place, '{"type":"string"}', { secret: true })).rejects.toMatchObject({ code: "invalid" });
});

test("schemas are over HTTP what they are by the service, and of those who may only read", async () => {
  await using http = await openTestHttp({ endpoints: world.area.endpoints ?? [] });
  const session = await http.signIn("admin");
  const url = `/config/schema?key=${base}`;
  const payload = JSON.stringify({ key: base, type: "string", enum: ["a", "b"], pattern: "^a" });
  const post = (text: string) =>
    http.call(session, {
      method: "POST",
      url: "/config/schema",
      headers: { "content-type": "application/json" },
      payload: text,
    });
  expect(await post(payload)).toMatchObject({ status: "error", code: "invalid" });
  expect(await post(JSON.stringify({ key: base, type: "string", enum: ["a", "b"] }))).toMatchObject({ status: "ok" });
  expect(await http.call(session, { url })).toMatchObject({
    status: "ok",
    message: { key: base, type: "string", enum: ["a", "b"], version: 1, author: "admin" },
  });
  expect(await http.call(session, { method: "DELETE", url })).toMatchObject({ status: "ok" });
  expect(await http.call(session, { url })).toMatchObject({ status: "error", code: "not_found" });
  await expect(schemas.set(viewer, base, { type: "json" })).rejects.toMatchObject({ code: "denied" });
  await expect(schemas.remove(viewer, base)).rejects.toMatchObject({ code: "denied" });
  await expect(schemas.set(admin, "/matrix/config-schemas/a", { type: "json" })).rejects.toMatchObject({
    code: "invalid",
  });
});
