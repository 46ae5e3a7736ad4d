import { expect, test } from "vitest";
import {
  engine,
  form,
  get,
  http,
  narrow,
  objects,
  post,
  principal,
  query,
  runtime,
  useSchema,
} from "../../../test/helpers/objects/schema-world.ts";
import { ObjectService } from "../objects/index.ts";

/** Every change of a class gives it another revision, on any way, and nothing else does. */

useSchema();

const revisionOf = async (path: string) => (await objects.catalog(principal)).get(path)?.revision;

test.each([
  "alter class /matrix/changed add column m int",
  "alter class /matrix/changed drop column m",
  "alter class /matrix/changed add index n",
  "alter class /matrix/changed drop index n",
  "alter class /matrix/changed set autosearch=true",
  "alter class /matrix/changed set autosearch=false",
  "alter class /matrix/changed add key name",
  "alter class /matrix/changed drop key name",
  "drop class /matrix/changed; create class /matrix/changed (name varchar, n int)",
])("%s", async (statement) => {
  await query.rows(principal, "create class if not exists /matrix/changed (name varchar, n int)");
  const before = await revisionOf("/matrix/changed");
  await query.rows(principal, statement);
  expect(await revisionOf("/matrix/changed")).not.toBe(before);
});

test("a class that loses an index with a column of the class above changes as well", async () => {
  await query.rows(
    principal,
    "create class /matrix/above (n int); create class /matrix/above/below (m int, index(n)); create class /matrix/above/other (k int)",
  );
  const [below, other] = [await revisionOf("/matrix/above/below"), await revisionOf("/matrix/above/other")];
  await query.rows(principal, "alter class /matrix/above drop column n");
  expect(await revisionOf("/matrix/above/below")).not.toBe(below);
  expect(await revisionOf("/matrix/above/other")).toBe(other);
});

test("objects, and an index that becomes ready, leave the revision as it is", async () => {
  await query.rows(principal, "create class /matrix/filled (name varchar, n int, keys(name))");
  await query.rows(principal, 'insert into /matrix/filled (name, n) values ("a", 1)');
  await query.rows(principal, "alter class /matrix/filled add index n");
  const before = await revisionOf("/matrix/filled");
  const stateOf = async () =>
    (await objects.indexStates(principal)).find((one) => one.class === "/matrix/filled")?.state;
  await objects.maintain(principal);
  await expect.poll(stateOf, { timeout: 30_000 }).toBe("ready");
  expect(await revisionOf("/matrix/filled")).toBe(before);
});

test("several additions are one change, or none", async () => {
  await query.rows(principal, "create class /matrix/whole (name varchar)");
  const before = await revisionOf("/matrix/whole");
  const fields = [{ name: "n", type: "int" }];
  const refused = await post("schema/class", { class: "/matrix/whole", fields, indexes: ["n", "nothing"] });
  expect(refused).toMatchObject({ status: "error", code: "not_found" });
  expect(await revisionOf("/matrix/whole")).toBe(before);
  expect((await objects.catalog(principal)).get("/matrix/whole")?.column("n")).toBeUndefined();
});

test("of two controllers that change a class on one revision, one does", async () => {
  await query.rows(principal, "create class /matrix/raced (name varchar)");
  const other = new ObjectService({ stores: engine, runtime });
  try {
    for (let round = 0; round < 5; round++) {
      const expected = { revisions: [(await revisionOf("/matrix/raced"))!], isAbsent: false };
      await other.catalog(principal);
      const outcomes = await Promise.allSettled(
        [objects, other].map((one, at) => {
          const column = { name: `c${round}_${at}`, type: "int" } as const;
          return one.alterClass(principal, "/matrix/raced", { kind: "add column", column }, expected);
        }),
      );
      const lost = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
      expect(lost).toEqual([expect.objectContaining({ code: "stale" })]);
    }
  } finally {
    await other.close();
  }
});

test("a condition on a class that is hidden tells nothing of it", async () => {
  const hidden = { class: "/matrix/ent/box", fields: [{ name: "extra", type: "int" }] };
  const now = await revisionOf("/matrix/ent/box");
  for (const headers of [{ "if-match": `"${now}"` }, { "if-match": '"0"' }, { "if-none-match": "*" }]) {
    const answer = await http.call(narrow, {
      method: "POST",
      url: "/mxobject/schema/class",
      payload: JSON.stringify(hidden),
      headers: { "content-type": "application/json", ...headers },
    });
    expect(answer).toMatchObject({ status: "error", code: "denied" });
    expect(JSON.stringify(answer)).not.toMatch(new RegExp(`${now}|last by`));
    const dropped = await http.call(narrow, {
      method: "DELETE",
      url: "/mxobject/schema/class",
      payload: form({ cid: "/matrix/ent/box" }),
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });
    expect(dropped).toMatchObject({ status: "error" });
    expect(JSON.stringify(dropped)).not.toMatch(new RegExp(`${now}|last by`));
  }
  expect(await get("schema/class?class=/matrix/ent/box", narrow)).toMatchObject({ code: "not_found" });
});
