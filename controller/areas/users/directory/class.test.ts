import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { Row } from "../../../../common/value.ts";
import { userClass } from "../classes.ts";

const admin = testPrincipal();

let http: TestHttp;
beforeEach(async () => {
  http = await openTestHttp();
});
afterEach(() => http[Symbol.asyncDispose]());

async function rows(): Promise<readonly Row[]> {
  const all: Row[] = [];
  for await (const page of userClass(http.users.directory.reader).provide?.(admin) ?? []) all.push(...page);
  return all;
}

test("a user and its organisation are rows of /ldap with all that clients gave", async () => {
  const { directory } = http.users;
  const details = {
    firstname: "Ann",
    lastname: "Other",
    gender: "f",
    address: "1 Road",
    imaccount: "ann-im",
    remark: "on leave",
    auth: "local",
    email: ["ann@example.org"],
    mobile: ["1"],
    telephone: ["2"],
    status: 3,
    config: { time_zone: "Europe/Berlin" },
  };
  await directory.createOrganization(admin, { username: "plant", parent: "/", details: { remark: "the plant" } });
  const rights = { grants: [], data: [] };
  await directory.create(admin, { username: "ann", password: PASSWORD, rights, parent: "/plant", details });
  const found = await rows();
  expect(found.find(({ username }) => username === "ann")).toEqual({
    ...details,
    id: expect.stringMatching(/^ldap:\d{19,20}$/) as string,
    class: "/matrix/ldap",
    username: "ann",
    fullname: "/plant/ann",
    parent: "/plant",
    otype: "usr",
    isadmin: false,
    isactive: true,
    wechat: "ann-im",
    grpset: [],
  });
  expect(found.find(({ username }) => username === "plant")).toMatchObject({
    fullname: "/plant",
    parent: "/",
    otype: "org",
    isadmin: false,
    isactive: true,
    remark: "the plant",
    gender: "",
    auth: "",
    grpset: [],
  });
});
