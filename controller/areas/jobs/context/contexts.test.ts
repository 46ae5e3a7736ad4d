import { afterAll, beforeAll, expect, test } from "vitest";
import {
  JOB_CONTEXT_NAME_MAX_BYTES,
  JOB_CONTEXT_READ_MAX_BYTES,
  JOB_CONTEXT_VALUE_MAX_BYTES,
} from "../../../../common/limits.ts";
import { realClock, seededRandom, shiftedClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { AGED_CHANGES } from "../../../../test/helpers/time/times.ts";
import { faulty } from "../../../store/faulty.ts";
import type { Stores } from "../../../store/engine.ts";
import { AppcontextService } from "../../appcontext/index.ts";
import { JobContexts } from "./contexts.ts";
import { contextRoutes } from "../routes.ts";

const CHANGES = onCluster ? 300 : AGED_CHANGES;
const OK = { status: "ok", message: "" };
const admin = testPrincipal();

let http: TestHttp;
let session: string;
let contexts: JobContexts;

// The HTTP side opens the engine but needs the routes first, so the engine is looked up at the first call.
const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };

beforeAll(async () => {
  contexts = new JobContexts({ stores, runtime: testRuntime(realClock) });
  http = await openTestHttp({ endpoints: contextRoutes(contexts) });
  session = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

const call = (method: "GET" | "POST" | "PUT" | "DELETE", path: string, form?: string, as = session) =>
  http.call(as, {
    method,
    url: `/job/context/${path}`,
    ...(form !== undefined && { payload: form, headers: { "content-type": "application/x-www-form-urlencoded" } }),
  });

test("values are set by form, merged by name, read by prefix, and removed one by one or all", async () => {
  expect(await call("GET", "wire")).toEqual({ status: "ok", message: {} });
  expect(await call("PUT", "wire", "name=app.state&value=half+done&ttl=600")).toEqual(OK);
  expect(await call("POST", "wire", "name=app.count&value=7")).toEqual(OK);
  expect(await call("PUT", "wire", "name=__proto__&value=%7B%7D")).toEqual(OK);
  expect(await call("PUT", "wire", "name=app.count&value=")).toEqual(OK);
  const whole = Object.fromEntries([
    ["__proto__", "{}"],
    ["app.count", ""],
    ["app.state", "half done"],
  ]);
  expect(await call("GET", "wire")).toEqual({ status: "ok", message: whole });
  expect(await call("GET", "wire?prefix=app.")).toMatchObject({
    message: { "app.count": "", "app.state": "half done" },
  });
  expect(await call("DELETE", "wire?name=app.count")).toEqual(OK);
  expect(await call("DELETE", "wire?name=app.count")).toEqual(OK);
  expect(await call("GET", "wire?prefix=app.")).toEqual({ status: "ok", message: { "app.state": "half done" } });
  expect(await call("DELETE", "wire")).toMatchObject({ status: "error", code: "invalid" });
  expect(await call("DELETE", "wire?clear=true")).toEqual(OK);
  expect(await call("GET", "wire")).toEqual({ status: "ok", message: {} });
  // A form has the same meaning.
  for (const name of ["one", "two"]) await call("PUT", "wire", `name=${name}&value=1`);
  expect(await call("DELETE", "wire", "name=one")).toEqual(OK);
  expect(await call("GET", "wire")).toEqual({ status: "ok", message: { two: "1" } });
  expect(await call("DELETE", "wire", "clear=false")).toMatchObject({ status: "error", code: "invalid" });
  expect(await call("DELETE", "wire", "clear=true")).toEqual(OK);
  expect(await call("GET", "wire")).toEqual({ status: "ok", message: {} });
});

test("what is too long, empty or no number is refused, and nothing is changed", async () => {
  const long = "n".repeat(JOB_CONTEXT_NAME_MAX_BYTES + 1);
  const refused = [
    ["x".repeat(JOB_CONTEXT_NAME_MAX_BYTES + 1), "name=a&value=b", "too_large"],
    ["bad", `name=${long}&value=b`, "too_large"],
    ["bad", `name=a&value=${"v".repeat(JOB_CONTEXT_VALUE_MAX_BYTES + 1)}`, "too_large"],
    ["bad", "name=&value=b", "invalid"],
    ["bad", "name=a%00b&value=b", "invalid"],
    ["bad", "name=a", "invalid"],
    ["bad", "name=a&value=b&ttl=-1", "invalid"],
    ["bad", "name=a&value=b&ttl=soon", "invalid"],
  ] as const;
  for (const [id, form, code] of refused) expect(await call("PUT", id, form)).toMatchObject({ status: "error", code });
  expect(await call("GET", "bad")).toEqual({ status: "ok", message: {} });
});

test("a viewer reads and changes nothing, a neighbour sees a context of its own under that id", async () => {
  await call("PUT", "mine", "name=a&value=1");
  const viewer = await http.signIn("viewer");
  expect(await call("GET", "mine", undefined, viewer)).toEqual({ status: "ok", message: { a: "1" } });
  for (const [method, path, form] of [
    ["PUT", "mine", "name=a&value=2"],
    ["POST", "mine", "name=a&value=2"],
    ["DELETE", "mine?name=a", undefined],
    ["DELETE", "mine?clear=true", undefined],
  ] as const)
    expect(await call(method, path, form, viewer)).toMatchObject({ status: "error", code: "denied" });
  const neighbour = await http.signIn("admin", "second");
  expect(await call("GET", "mine", undefined, neighbour)).toEqual({ status: "ok", message: {} });
  expect(await call("DELETE", "mine?clear=true", undefined, neighbour)).toEqual(OK);
  expect(await call("GET", "mine")).toEqual({ status: "ok", message: { a: "1" } });
});

test("a collection of that name, and a context whose id begins alike, are others", async () => {
  const appcontext = new AppcontextService({ stores, runtime: testRuntime(realClock) });
  await appcontext.put(admin, { collection: "same", id: "item", text: "{}" });
  await contexts.set(admin, "same", { name: "item", value: "of the context" });
  await contexts.set(admin, "sameish", { name: "other", value: "x" });
  expect(await contexts.read(admin, "same")).toEqual({ item: "of the context" });
  await contexts.clear(admin, "same");
  expect(await contexts.read(admin, "same")).toEqual({});
  expect(await contexts.read(admin, "sameish")).toEqual({ other: "x" });
  expect(await appcontext.item(admin, "same", "item")).toEqual({ id: "item" });
});

test("a value is gone when its time is over by the clock of the controller that is asked", async () => {
  await contexts.set(admin, "ends", { name: "short", value: "1", ttlSeconds: 60 });
  await contexts.set(admin, "ends", { name: "long", value: "2", ttlSeconds: 600 });
  const later = new JobContexts({ stores, runtime: testRuntime(shiftedClock(realClock, 61_000)) });
  expect(await later.read(admin, "ends")).toEqual({ long: "2" });
  await later.set(admin, "ends", { name: "short", value: "again" });
  expect(await later.read(admin, "ends")).toEqual({ long: "2", short: "again" });
});

test("two controllers that set different names lose none, and of one name the later stays", async () => {
  const other = new JobContexts({ stores, runtime: testRuntime(shiftedClock(realClock, -5_000)) });
  await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      (at % 2 === 0 ? contexts : other).set(admin, "two", { name: `n${at}`, value: String(at) }),
    ),
  );
  expect(Object.keys(await other.read(admin, "two"))).toHaveLength(40);
  await contexts.set(admin, "two", { name: "n0", value: "first" });
  await other.set(admin, "two", { name: "n0", value: "second" });
  expect(await contexts.read(admin, "two", "n0")).toEqual({ n0: "second" });
});

test(`a name that was set ${CHANGES} times is one value`, async () => {
  for (let at = 0; at < CHANGES; at++) await contexts.set(admin, "aged", { name: "n", value: String(at) });
  expect(await contexts.read(admin, "aged")).toEqual({ n: String(CHANGES - 1) });
  await contexts.clear(admin, "aged");
  expect(await contexts.read(admin, "aged")).toEqual({});
});

test("a context has so many names and no more; those that are there are set again, those that went make room", async () => {
  const narrow = new JobContexts({ stores, runtime: testRuntime(realClock), valuesMax: 3 });
  const set = (name: string, more: object = {}) => narrow.set(admin, "full", { name, value: name, ...more });
  for (const name of ["a", "b"]) await set(name);
  await set("short", { ttlSeconds: 60 });
  await expect(set("c")).rejects.toMatchObject({ code: "too_large", details: { limit: "JOB_CONTEXT_VALUES_MAX" } });
  await set("a");
  await narrow.set(admin, "other", { name: "c", value: "c" });
  const clock = shiftedClock(realClock, 61_000);
  const later = new JobContexts({ stores, runtime: testRuntime(clock), valuesMax: 3 });
  await later.set(admin, "full", { name: "c", value: "c" });
  await narrow.remove(admin, "full", "b");
  await later.set(admin, "full", { name: "d", value: "d" });
  await expect(later.set(admin, "full", { name: "e", value: "e" })).rejects.toMatchObject({ code: "too_large" });
  expect(Object.keys(await later.read(admin, "full"))).toEqual(["a", "c", "d"]);
  for (const id of ["full", "other"]) await narrow.clear(admin, id);
});

test("a context that is too large to answer is told so, and read by prefix", async () => {
  const value = "v".repeat(JOB_CONTEXT_VALUE_MAX_BYTES);
  const count = Math.ceil(JOB_CONTEXT_READ_MAX_BYTES / JOB_CONTEXT_VALUE_MAX_BYTES);
  for (let at = 0; at < count; at++) await contexts.set(admin, "large", { name: `n${at}`, value });
  await expect(contexts.read(admin, "large")).rejects.toMatchObject({ code: "too_large" });
  expect(Object.keys(await contexts.read(admin, "large", "n1"))).toContain("n1");
  await contexts.clear(admin, "large");
});

test.each([1, 2, 3])(
  "every set is made once and stays while the stores lose calls and answers (seed %i)",
  async (seed) => {
    const nasty = faulty(http.engine, { random: seededRandom(seed) });
    const unlucky = new JobContexts({ stores: nasty, runtime: testRuntime(realClock) });
    const expected: Record<string, string> = {};
    for (let at = 0; at < 30; at++) {
      const name = `n${at % 7}`;
      try {
        await unlucky.set(admin, `faulty${seed}`, { name, value: String(at) });
        expected[name] = String(at);
      } catch (error) {
        expect(error).toMatchObject({ code: expect.stringMatching(/unavailable|unknown_outcome/) });
        delete expected[name];
      }
    }
    expect(await contexts.read(admin, `faulty${seed}`)).toMatchObject(expected);
  },
);
