import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DataRule } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World } from "./world.ts";

/** "Did you mean" names only what the caller may see, and says the same of what is hidden and of what does not exist. */

/** Sees neither the class `/matrix/vault` nor the column `secret` of `/matrix/box`. */
const LIMITED: readonly DataRule[] = [
  { class: "/matrix/box", access: "write", hidden: ["secret"] },
  { class: "/matrix/other", access: "write" },
];
let world: World;
let admin: string;
let limited: string;

beforeAll(async () => {
  world = await openWorld();
  admin = await world.signIn();
  await world.assembly.query.rows(
    testPrincipal(),
    `create class /matrix/box (host varchar, secret varchar, size int, keys(host));
     create class /matrix/vault (code varchar, keys(code));
     create class /matrix/other (name varchar, keys(name));
     insert into /matrix/box host='a', secret='x';
     create edge type contain 'c'`,
  );
  const rights = { grants: ["objects:read", "objects:write"], data: LIMITED } as const;
  await world.assembly.users.create(testPrincipal(), { username: "limited", password: PASSWORD, rights });
  const signIn = { company: "matrix", username: "limited", password: PASSWORD, remote: "test", traceparent: "" };
  limited = (await world.assembly.users.signIn(signIn)).session;
});
afterAll(() => world[Symbol.asyncDispose]());

/** The whole answer to a statement, or to a search, that must fail. */
async function failure(session: string, text: string): Promise<string> {
  const path = text.startsWith("#") ? "search" : "mql";
  const answer = await world.app.inject({
    method: "POST",
    url: `/mxobject/${path}?sessionid=${session}`,
    headers: { "content-type": "text/plain" },
    payload: text,
  });
  expect(answer.json(), text).toMatchObject({ status: "error" });
  return answer.body;
}

const COLUMNS = [
  "select secrt from /matrix/box",
  "select host from /matrix/box where secrt = 'x'",
  "select host from /matrix/box order by secrt",
  "select b.host from /matrix/box b join (c:/matrix/box) on c.secrt = b.host",
  "insert into /matrix/box host='b', secrt='x'",
  "update /matrix/box set secrt='x'",
  "delete secrt from /matrix/box",
  "match (:/matrix/box where secrt = 'x') -[:contain]-> ()",
  "match (:/matrix/box) -[:contain]-> () return secrt",
  "#/matrix/box: secrt=x",
  "#/matrix/box: host=a | print secrt",
];
const CLASSES = [
  "select code from /matrix/valt",
  "select code from /matrix/valt/",
  "insert into /matrix/valt code='x'",
  "update /matrix/valt set code='x'",
  "delete from /matrix/valt",
  "match (:/matrix/valt) -[:contain]-> ()",
  "match (:valt) -[:contain]-> ()",
  "drop class /matrix/valt",
  "#/matrix/valt: code=x",
];

describe("a column or class is named to a caller who may see it", () => {
  test.each(COLUMNS)("%s", async (text) => {
    const told = await failure(admin, text);
    expect(told).toContain("did you mean secret?");
    expect(told).toContain('"nearest":"secret"');
  });
  test.each(CLASSES)("%s", async (text) => {
    expect(await failure(admin, text)).toMatch(/did you mean (\/matrix\/)?vault\?/);
  });
});

describe("what is hidden is not named, and its own name is answered like one that does not exist", () => {
  test.each(COLUMNS)("%s", async (text) => {
    expect(await failure(limited, text)).not.toMatch(/secret|did you mean/);
    const [hidden, absent] = ["secret", "nicety"].map((name) => text.replace("secrt", name));
    const told = await failure(limited, hidden ?? "");
    expect(told.replaceAll("secret", "nicety")).toBe(await failure(limited, absent ?? ""));
  });
  test.each(CLASSES)("%s", async (text) => {
    expect(await failure(limited, text)).not.toMatch(/vault|did you mean/);
    const [hidden, absent] = ["vault", "pylon"].map((name) => text.replace("valt", name));
    const told = await failure(limited, hidden ?? "");
    expect(told.replaceAll("vault", "pylon")).toBe(await failure(limited, absent ?? ""));
  });
});
