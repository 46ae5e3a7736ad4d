import { afterAll, beforeAll, expect, test } from "vitest";
import { WRITE_AHEAD_MAX_MS } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { aheadRoutes } from "./routes.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const FUTURE_MS = Date.UTC(2130, 0);

let engine: TestEngine;
let objects: ObjectService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  for (const path of ["/matrix/box", "/matrix/secret"])
    await objects.createClass(admin, { path, columns: [{ name: "name", type: "varchar" }], keys: ["name"] });
  const row = (name: string) => [{ name }];
  await objects.unrestricted.insert(admin, "/matrix/box", row("future"), { atMs: FUTURE_MS });
  await objects.unrestricted.insert(admin, "/matrix/secret", row("future"), { atMs: FUTURE_MS });
  await objects.unrestricted.insert(admin, "/matrix/box", row("gone"), { atMs: FUTURE_MS });
  await objects.unrestricted.insert(admin, "/matrix/box", row("soon"), {
    atMs: realClock.nowMs() + WRITE_AHEAD_MAX_MS - 30_000,
  });
  await objects.unrestricted.insert(admin, "/matrix/box", row("now"));
  await objects.unrestricted.remove(admin, [{ id: "box:gone" }]);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

test("objects ahead of the clock are told to administrators, page by page", async () => {
  await using http = await openTestHttp({ endpoints: aheadRoutes(objects) });
  const answer = await http.call(await http.signIn("admin"), { url: "/cluster/ahead" });
  const found = [
    { id: "box:future", class: "/matrix/box", vtimeMs: FUTURE_MS },
    { id: "secret:future", class: "/matrix/secret", vtimeMs: FUTURE_MS },
  ];
  const byClass = (one: { class: string }, other: { class: string }) => (one.class < other.class ? -1 : 1);
  const { message } = answer as { message: { objects: typeof found } };
  expect({ ...message, objects: message.objects.sort(byClass) }).toEqual({ objects: found });
  const pages: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await objects.ahead(admin, { limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    pages.push(...page.items.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(pages.sort()).toEqual(["box:future", "secret:future"]);
  await expect(objects.ahead(admin, { limit: 1, cursor: "other" })).rejects.toMatchObject({ code: "invalid" });
});

test("nobody is told of objects of a class that rules close in part, and a viewer of none", async () => {
  const data = [
    { class: "/", access: "write" as const },
    { class: "/matrix/secret", access: "write" as const, where: "name = 'mine'" },
  ];
  const { items } = await objects.ahead({ ...admin, data }, { limit: 10 });
  expect(items.map(({ id }) => id)).toEqual(["box:future"]);
  await expect(objects.ahead(testPrincipal("viewer"), { limit: 10 })).rejects.toMatchObject({ code: "denied" });
});
