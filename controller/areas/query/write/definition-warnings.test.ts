import { expect, test } from "vitest";
import type { Principal } from "../../permissions/index.ts";
import { admin, openQueries, query } from "../../../../test/helpers/mql/query-world.ts";

openQueries();

async function warningsOf(text: string, principal: Principal = admin): Promise<readonly string[] | undefined> {
  return (await query.run(principal, text)).warnings;
}

const shared = (path: string, other: string, label: string) =>
  `Ids of ${path} begin with ${label}: as those of ${other} do, so a lookup by id alone visits both classes.`;

test("the second class of a last name warns and names the first, and its objects are as before", async () => {
  expect(await warningsOf("create class /matrix/ent/box (host varchar, keys(host))")).toBeUndefined();
  const box = shared("/matrix/lab/box", "/matrix/ent/box", "box");
  expect(await warningsOf("create class /matrix/lab/box (host varchar, keys(host))")).toEqual([box]);
  expect(await warningsOf("create class if not exists /matrix/lab/box (host varchar)")).toBeUndefined();
  await query.rows(admin, "insert into /matrix/ent/box host='a'; insert into /matrix/lab/box host='a'");
  expect(await query.rows(admin, "select id, class from /matrix/ where id='box:a'")).toHaveLength(2);
});

test("classes that are made above it warn, too, and those of the same text", async () => {
  const told = await warningsOf(
    `create class /matrix/box (host varchar);
     create class /matrix/lab/box/deep (host varchar);
     create class /matrix/rack/rack (host varchar)`,
  );
  expect(told).toEqual([
    shared("/matrix/lab/box", "/matrix/box", "box"),
    shared("/matrix/rack/rack", "/matrix/rack", "rack"),
  ]);
});

test("a class that the author may not read is not named", async () => {
  await query.run(admin, "create class /matrix/vault/box (code varchar)");
  const author: Principal = { ...admin, data: [{ class: "/matrix/lab", access: "write" }] };
  expect(await warningsOf("create class /matrix/lab/box (host varchar)", author)).toBeUndefined();
});

test("an option that is none is told, with the nearest, and hints of other stores are not", async () => {
  const idle = "is no option of a class, and is only kept as a hint";
  const made = "create class /matrix/box (host varchar) with ttl=3 day, autosearhc=true, partition='day', color='red'";
  expect(await warningsOf(made)).toEqual([`autosearhc ${idle}; did you mean autosearch?`, `color ${idle}.`]);
  expect(await warningsOf("alter class /matrix/box set aliass='b', ckeys=2")).toEqual([
    `aliass ${idle}; did you mean alias?`,
  ]);
  expect(await warningsOf("alter class /matrix/box set alias='b', inherittriggers=false")).toBeUndefined();
});
