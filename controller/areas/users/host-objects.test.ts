import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { HostObjects } from "../../scripting/index.ts";
import { usersHostObject } from "./host-objects.ts";

const admin = testPrincipal();

let http: TestHttp;
beforeEach(async () => {
  http = await openTestHttp();
});
afterEach(() => http[Symbol.asyncDispose]());

test("a script is on record as changing before it makes, edits or deletes a user", async () => {
  let changes = 0;
  const host = new HostObjects([usersHostObject(http.users.directory)]).bind({
    principal: admin,
    kind: "serverjs",
    log: () => undefined,
    beforeChange: () => Promise.resolve(void (changes += 1)),
    load: () => Promise.reject(new Error("there is none")),
  });
  const call = (name: string, ...args: unknown[]) =>
    host.call({ name: `webcontext.${name}`, args: args as never[], signal: new AbortController().signal });
  const uid = await call("addUser", { parent: "/", username: "ann", passwd: PASSWORD });
  await call("editUser", uid, { firstname: "Ann" });
  expect(await http.users.find(admin, "ann")).toMatchObject({ id: uid, details: { firstname: "Ann" } });
  await call("deleteUser", uid);
  expect(await http.users.find(admin, "ann")).toBeUndefined();
  expect([changes, [...host.changed]]).toEqual([
    3,
    ["webcontext.addUser", "webcontext.editUser", "webcontext.deleteUser"],
  ]);
});
