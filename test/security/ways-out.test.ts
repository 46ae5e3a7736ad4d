import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Condition } from "../../common/mql/index.ts";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { beyond, ENT, type Hidden, openHidden, SEARCHES, STATEMENTS, USERS } from "./hidden.ts";
import type { World } from "./world.ts";

/**
 * Data that a data rule hides must not appear in any answer: every statement, condition, search and reading endpoint,
 * for every kind of rule.
 */

/** Every kind of condition on the hidden column. If one had an effect, values could be guessed one by one. */
const PROBES: Readonly<Record<Condition["kind"], string>> = {
  and: "covert = 'HIDDENb' and size > 0",
  or: "covert = 'HIDDENb' or size < 0",
  not: "not covert = 'HIDDENb'",
  compare: "covert > 'A'",
  relate: "size > length(covert)",
  in: "covert in ('HIDDENb')",
  inSelect: `id in (select id from ${ENT}/box where covert = 'HIDDENb')`,
  like: "covert like 'HID*'",
  between: "covert between 'A' and 'Z'",
  isNull: "covert is not null",
  contains: "covert contains 'H'",
  textMatch: "covert match 'HIDDENb'",
};

let hidden: Hidden;
let world: World;
const admin = testPrincipal();

beforeAll(async () => {
  hidden = await openHidden();
  ({ world } = hidden);
}, 120_000);
afterAll(() => hidden[Symbol.asyncDispose]());

const call: Hidden["call"] = (...given) => hidden.call(...given);
const mql: Hidden["mql"] = (...given) => hidden.mql(...given);
const search: Hidden["search"] = (...given) => hidden.search(...given);

function script(text: string): Pick<InjectOptions, "headers" | "payload"> {
  const head = 'content-disposition: form-data; name="uploadfile"; filename="script.mql"';
  return {
    headers: { "content-type": "multipart/form-data; boundary=edge" },
    payload: `--edge\r\n${head}\r\n\r\n${text};\r\n--edge--\r\n`,
  };
}

const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  class: [ENT, `${ENT}/box`, "/matrix/vault", "/matrix/"],
  id: [`${ENT}/box`, "/matrix/vault", "-1"],
  filetype: ["mql"],
  recursive: ["true"],
};

/** Every reading endpoint with its members; those that name a class, with each class. */
function readingCalls(endpoints: readonly Endpoint[]): readonly string[] {
  return endpoints
    .filter(({ method, permission }) => method === "GET" && permission.endsWith(":read"))
    .flatMap(({ path, input }) => {
      const { properties = {} } = input as { readonly properties?: Readonly<Record<string, unknown>> };
      const url = path.replace(/:\w+/g, "field").replace(/\*$/, "any@any");
      const named = Object.keys(properties).filter((name) => name === "class" || name === "id");
      const plain = Object.keys(properties)
        .filter((name) => name === "filetype" || name === "recursive")
        .map((name) => `${name}=${MEMBERS[name]?.[0] ?? ""}`);
      return [
        url,
        ...named.flatMap((name) =>
          (MEMBERS[name] ?? []).map((value) => `${url}?${[`${name}=${value}`, ...plain].join("&")}`),
        ),
      ];
    });
}

test("who may see everything is shown what the others are looked through for", async () => {
  const all =
    (await Promise.all(STATEMENTS.select.slice(0, 4).map((text) => mql("admin", text)))).join("") +
    (await search("admin", `${ENT}/box: | HIDDENold;ROWpast`));
  for (const marker of ["ROWa", "ROWnote", "HIDDENa", "HIDDENold", "ROWpast", "VAULTone", "SEENb"])
    expect(all).toContain(marker);
  expect(await mql("admin", "match ()-[*]->()")).toContain("VAULTone");
  expect(await call("admin", { url: "/mxobject/export?class=/matrix/" })).toContain("HIDDENa");
});

describe.each(Object.entries(USERS).filter(([, { hidesColumn }]) => hidesColumn))(
  "the rule %s, which hides a column,",
  (user) => {
    test.each(Object.entries(PROBES))("answers no condition on it: %s", async (_, condition) => {
      const refused = /"code":"not_found"/;
      expect(await mql(user, `select id from ${ENT}/box where ${condition}`), condition).toMatch(refused);
      expect(await mql(user, `delete from ${ENT}/box where ${condition}`), condition).toMatch(
        /"code":"(not_found|denied)"/,
      );
      expect(await mql(user, `match (:${ENT}/box where ${condition})`), condition).toMatch(refused);
      expect(await mql(user, `explain select id from ${ENT}/box where ${condition}`), condition).toMatch(refused);
    });
  },
);

describe("where one group has the rows and another one the column,", () => {
  test("the rows are seen, without it", async () => {
    const answer = await mql("groups", `select id, note, covert from ${ENT}/ where owner = 'bob' order by id`);
    expect(JSON.parse(answer)).toMatchObject({
      message: [
        { id: "box:b", note: "SEENb", covert: null },
        { id: "box:m", note: "SEENm", covert: null },
      ],
    });
  });

  test.each(Object.entries(PROBES))("no row fulfils a condition on it: %s", async (kind, condition) => {
    const found = kind === "or" ? `(${condition}) and size < 0` : condition;
    for (const text of [
      `select id from ${ENT}/box where ${found}`,
      `select id from ${ENT}/box where not (${found}) and covert is not null`,
      `select a.id from ${ENT}/box a join ${ENT}/box b on a.covert = b.covert`,
      `update ${ENT}/box set note = 'x' where ${found}`,
      `delete from ${ENT}/box where ${found}`,
    ])
      expect(await mql("groups", text), text).not.toMatch(/box:|"count":[1-9]|"updated":[1-9]/);
  });

  test("it cannot be written, cleared or brought by an import", async () => {
    for (const text of [
      `update ${ENT}/box set covert = 'x' where host = 'b'`,
      `delete covert from ${ENT}/box where host = 'b'`,
      `insert into ${ENT}/box host='b', owner='bob', covert='x'`,
      `insert into ${ENT}/box host='new', owner='bob', covert='x'`,
      `insert json '{"class":"${ENT}/box","host":"b","owner":"bob","covert":"x"}'`,
      `begin update ${ENT}/box set covert = 'x' where host = 'b'; end`,
    ])
      expect(await mql("groups", text), text).toMatch(/"code":"denied"/);
    const imported = script(`insert into ${ENT}/box host='b', owner='bob', covert='x'`);
    expect(await call("groups", { method: "POST", url: "/mxobject/import", ...imported })).toMatch(/"code":"denied"/);
  });
});

describe.each(Object.entries(USERS))("the rule %s", (user, { markers, hidesColumn }) => {
  test.each(Object.entries(STATEMENTS))("lets nothing out by %s", async (_kind, texts) => {
    for (const text of texts) expect(beyond(await mql(user, text), text), text).not.toMatch(markers);
  });

  test.each(Object.entries(SEARCHES))("lets nothing out by a search with %s", async (_kind, texts) => {
    for (const text of texts) expect(beyond(await search(user, text), text), text).not.toMatch(markers);
  });

  test("lets nothing out by any reading endpoint, and no hidden column among the fields of a class", async () => {
    for (const url of readingCalls(world.assembly.endpoints)) {
      const answer = await call(user, { url });
      expect(beyond(answer, url), url).not.toMatch(markers);
      if (hidesColumn && url.includes("schema")) expect(answer, url).not.toContain("covert");
    }
  });

  test("lets nothing out by what an import is told", async () => {
    for (const text of [
      ...STATEMENTS.insert,
      ...STATEMENTS.insertJson,
      ...STATEMENTS.createClass,
      ...STATEMENTS.alterClass,
    ]) {
      expect(
        beyond(await call(user, { method: "POST", url: "/mxobject/import", ...script(text) }), text),
        text,
      ).not.toMatch(markers);
    }
  });

  test("has left what it does not show", async () => {
    const kept = await world.assembly.query.rows(
      admin,
      `select host, owner, covert, note from ${ENT}/box where host = 'ROWa'`,
    );
    expect(kept).toEqual([{ host: "ROWa", owner: "ann", covert: "HIDDENa", note: "ROWnote" }]);
    expect(await world.assembly.query.rows(admin, "select code from /matrix/vault")).toEqual([{ code: "VAULTone" }]);
  });
});
