import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../helpers/programs/bundle.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { beyond, ENT, type Hidden, openHidden, SEARCHES, STATEMENTS, USERS } from "./hidden.ts";

/** Data that a data rule hides must not leak indirectly either: through scripts, cursors or error texts. */

let hidden: Hidden;
const admin = testPrincipal();

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `ways-round-${process.pid}.mjs`);
  hidden = await openHidden({ scripts: pathToFileURL(file) });
  const { groups, query } = hidden.world.assembly;
  await groups.api.create(admin, "scripts", ["/script"]);
  await groups.api.addGroups(admin, "scripts", ["/everyone"]);
  await scripted("admin", [{ name: "dfs.write", args: ["/closed/file.txt", "VAULTtext"] }]);
  // Values that are invalid as regular expressions: a query that uses them as such reports an error.
  await query.rows(
    admin,
    `update ${ENT}/box set rack = 'ROWrack(' where host = 'ROWa';
     update ${ENT}/box set covert = 'HIDDENm(' where host = 'm'`,
  );
}, 120_000);
afterAll(() => hidden[Symbol.asyncDispose]());

const mql = (user: string, text: string): Promise<string> => hidden.mql(user, text);

interface HostCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** Result of each call in a script of that user, regardless of errors of earlier calls. */
async function scripted(user: string, calls: readonly HostCall[]): Promise<readonly string[]> {
  const payload = `var hosts = { odb: odb, graphalg: graphalg, dfs: dfs };
    OUTPUT = ${JSON.stringify(calls)}.map(function (one) {
      var host = hosts[one.name.split(".")[0]], method = one.name.split(".")[1];
      try { return JSON.stringify(host[method].apply(host, one.args)); } catch (error) { return String(error.message); }
    });`;
  const headers = { "content-type": "text/plain" };
  const answer = await hidden.call(user, { method: "POST", url: "/script/exec/js", headers, payload });
  const { message } = JSON.parse(answer) as { readonly message: unknown };
  if (!Array.isArray(message)) throw new Error(answer);
  return message as readonly string[];
}

const odb = (name: string, texts: readonly string[]): readonly HostCall[] =>
  texts.map((text) => ({ name: `odb.${name}`, args: [text] }));

const HOST_CALLS: Readonly<Record<string, readonly HostCall[]>> = {
  ...Object.fromEntries(Object.entries(STATEMENTS).map(([kind, texts]) => [kind, odb("mql", texts)])),
  ...Object.fromEntries(Object.entries(SEARCHES).map(([kind, texts]) => [`search by ${kind}`, odb("search", texts)])),
  graphalg: [
    ...STATEMENTS.match.map((text) => ({ name: "graphalg.endpoints", args: [text] })),
    { name: "graphalg.connectedGraphs", args: [["box:b", "box:m"], 3] },
  ],
  dfs: [
    { name: "dfs.read", args: ["/closed/file.txt"] },
    { name: "dfs.readdir", args: ["/closed"] },
    { name: "dfs.readdir", args: ["/"] },
    { name: "dfs.copy", args: ["/closed/file.txt", "/script"] },
    { name: "dfs.move", args: ["/closed", "/script"] },
    { name: "dfs.readdir", args: ["/script"] },
    { name: "dfs.read", args: ["/script/../closed/file.txt"] },
  ],
};

describe("a script", () => {
  test("of who may see everything gets what the others are looked through for", async () => {
    const kinds = ["select", "graphalg", "search by match"] as const;
    const calls = [...kinds.flatMap((kind) => HOST_CALLS[kind] ?? []), ...(HOST_CALLS["dfs"] ?? []).slice(0, 3)];
    const all = (await scripted("admin", calls)).join();
    for (const marker of ["ROWa", "ROWnote", "HIDDENb", "HIDDENold", "VAULTone", "VAULTtext", "SEENb"])
      expect(all).toContain(marker);
  });

  test.each(Object.keys(USERS))("of the rule %s gets nothing that it hides", async (user) => {
    for (const [kind, calls] of Object.entries(HOST_CALLS)) {
      const answers = await scripted(user, calls);
      for (const [at, answer] of answers.entries()) {
        const said = JSON.stringify(calls[at]?.args);
        expect(beyond(answer, said), `${kind}: ${said}`).not.toMatch(USERS[user]?.markers ?? /./);
      }
    }
  });
});

/** Statements whose answers are paged. */
const PAGED = [
  `select host, note from ${ENT}/box order by note`,
  `select host from ${ENT}/box order by note desc`,
  `select * from ${ENT}/`,
  `select host from ${ENT}/box order by covert`,
  `select host from ${ENT}/box order by covert desc`,
  `select host from ${ENT}/box order by coalesce(covert, note)`,
  `select host from ${ENT}/box order by uplink.note`,
  `select host, size from ${ENT}/box where size > 0 order by size desc, covert`,
  "select * from /matrix/vault order by code",
];
const PAGES_MAX = 10;

interface Page {
  readonly message: unknown;
  readonly meta?: { readonly cursor?: string };
  readonly code?: string;
}

/** The answer as the user can read it, including the contents of cursors. */
function readable(answer: string): string {
  const { meta } = JSON.parse(answer) as Page;
  return answer + Buffer.from(meta?.cursor ?? "", "base64url").toString();
}

async function page(user: string, statement: string, cursor: string): Promise<{ answer: string; next?: string }> {
  const answer = await mql(user, `${statement} limit 1 cursor '${cursor}'`);
  const { meta } = JSON.parse(answer) as Page;
  return { answer, ...(meta?.cursor && { next: meta.cursor }) };
}

/** All data of the statement's pages from that cursor on. */
async function pages(user: string, statement: string, from = ""): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let cursor: string | undefined = from; cursor !== undefined && answers.length < PAGES_MAX; ) {
    const one: { answer: string; next?: string } = await page(user, statement, cursor);
    answers.push(readable(one.answer));
    cursor = one.next;
  }
  return answers;
}

async function cursorsOf(user: string, statement: string): Promise<readonly string[]> {
  const cursors: string[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined && cursors.length < PAGES_MAX; ) {
    const { next }: { next?: string } = await page(user, statement, cursor);
    if (next !== undefined) cursors.push(next);
    cursor = next;
  }
  return cursors;
}

describe("a cursor", () => {
  test("of who may see everything has more pages, and holds what rows are ordered by", async () => {
    for (const statement of PAGED.slice(0, 8)) expect(await cursorsOf("admin", statement), statement).toHaveLength(3);
    expect((await pages("admin", PAGED[3] ?? "")).join()).toContain("HIDDENa");
  });

  test.each(Object.keys(USERS))("of the rule %s leads to no page that holds what it hides", async (user) => {
    for (const statement of PAGED)
      for (const answer of await pages(user, statement))
        expect(beyond(answer, statement), statement).not.toMatch(USERS[user]?.markers ?? /./);
  });

  test.each(Object.keys(USERS))("of another user shows the rule %s nothing more", async (user) => {
    for (const statement of PAGED) {
      const own = new Set((await pages(user, statement)).map((answer) => JSON.stringify(rowsOf(answer))));
      for (const cursor of await cursorsOf("admin", statement)) {
        const { answer } = await page(user, statement, cursor);
        expect(beyond(readable(answer), statement), statement).not.toMatch(USERS[user]?.markers ?? /./);
        expect([...own, "[]"], statement).toContain(JSON.stringify(rowsOf(answer)));
      }
    }
  });

  test("that stands at a hidden value tells nothing of where that value lies", async () => {
    for (const statement of PAGED.slice(3, 5)) {
      const cursors = await cursorsOf("admin", statement);
      const [first, ...others] = await Promise.all(cursors.map((cursor) => pages("groups", statement, cursor)));
      for (const other of others) expect(other, statement).toEqual(first);
    }
  });

  test("goes on by the rights of the page it is asked for", async () => {
    const { groups, users } = hidden.world.assembly;
    const rights = { grants: [], data: [] };
    await users.create(admin, { username: "narrowed", password: PASSWORD, rights });
    const { id } = await groups.create(admin, { name: "narrowed", member: ["U/narrowed"], readonly: [ENT] });
    const byNote = `select host, note, covert from ${ENT}/box order by note desc`;
    const byCovert = `select host from ${ENT}/box order by covert`;
    const [first] = await cursorsOf("narrowed", byNote);
    const [atHidden] = await cursorsOf("narrowed", byCovert);
    expect((await pages("narrowed", byNote, first)).join()).toMatch(/HIDDENb.*ROWnote/s);
    await groups.update(admin, { id, readexps: [`${ENT}: owner = 'bob'`], fields: { [ENT]: "-covert" } });
    expect(JSON.parse(await mql("narrowed", `${byCovert} limit 1 cursor '${atHidden}'`))).toMatchObject({
      code: "not_found",
    });
    const rest = await pages("narrowed", byNote.replace(", covert", ""), first);
    expect(rest.join()).toContain("none of this statement");
    await groups.update(admin, { id, fields: {} });
    expect((await pages("narrowed", byNote, first)).map(rowsOf)).toEqual([
      [{ host: "b", note: "SEENb", covert: "HIDDENb" }],
      [],
    ]);
  });
});

function rowsOf(answer: string): readonly unknown[] {
  const { message } = JSON.parse(answer.slice(0, answer.lastIndexOf("}") + 1)) as Page;
  return Array.isArray(message) ? (message as readonly unknown[]) : [];
}

/** A false condition that fails for texts with that letter, because they grow beyond the limit for a row. */
function bursts(column: string, letter: string): string {
  const grown = `replace(replace(${column}, '${letter}', '${"x".repeat(1_000)}'), 'x', '${"y".repeat(800)}')`;
  return `(${Array.from({ length: BURSTS }, () => `length(${grown}) > 2000000`).join(" or ")})`;
}

const BURSTS = 8;

/** Statements that fail for one value, by that value. */
const FAILING: Readonly<Record<string, (burst: (column: string) => string) => readonly string[]>> = {
  HIDDENb: (burst) => [
    `select host from ${ENT}/box where ${burst("covert")}`,
    `select host from ${ENT}/box where size < 0 or not (${burst("covert")})`,
    `select case when ${burst("covert")} then 1 else 2 end as n from ${ENT}/box order by n`,
    `select host, row_number() over (order by covert) as n from ${ENT}/box where ${burst("covert")}`,
    `select max(case when ${burst("covert")} then 1 else 2 end) as n from ${ENT}/box`,
    `match (:${ENT}/box where ${burst("covert")})`,
    `explain analyze select host from ${ENT}/box where ${burst("covert")}`,
    `update ${ENT}/box set note = note where ${burst("covert")}`,
    `delete from ${ENT}/box where ${burst("covert")}`,
    `begin delete from ${ENT}/box where ${burst("covert")}; end`,
  ],
  ROWnote: (burst) => [
    `select host from ${ENT}/box where ${burst("note")}`,
    `select host from ${ENT}/box where owner = 'ann' and ${burst("note")}`,
    `select host from ${ENT}/box where ${burst("uplink.note")}`,
    `select case when ${burst("uplink.note")} then 1 else 2 end as n from ${ENT}/box`,
    `delete from ${ENT}/box where ${burst("note")}`,
  ],
};

describe("an error", () => {
  const cases = Object.entries(FAILING).flatMap(([value, texts]) =>
    texts((column) => bursts(column, value.charAt(0))).map((text) => ({ value, text })),
  );
  const short = (text: string): string => text.replace(/(x|y){100,}/g, "…");

  test("is told to who sees the value that it is about", async () => {
    const quiet: string[] = [];
    for (const { text } of cases) if (!(await mql("admin", text)).includes("too_large")) quiet.push(short(text));
    expect(quiet).toEqual([]);
  });

  test.each(Object.entries(USERS))("is not told the rule %s of a value that it hides", async (user, { markers }) => {
    for (const { value, text } of cases) {
      if (!markers.test(value)) continue;
      const answer = await mql(user, text);
      expect(answer, short(text)).not.toContain("too_large");
      expect(beyond(answer, text), short(text)).not.toMatch(markers);
    }
  });

  test.each(Object.keys(USERS))("tells the rule %s what a column is, and no value of it", async (user) => {
    for (const text of [
      `update ${ENT}/box set size = covert`,
      `begin update ${ENT}/box set size = covert; end`,
      `update ${ENT}/box set size = note where owner = 'ann'`,
      `update ${ENT}/box set size = uplink.note where host = 'b'`,
      `select host from ${ENT}/box where regexp_match('x', covert)`,
      `select regexp_extract('x', rack) from ${ENT}/box order by host`,
      `select host from ${ENT}/box where regexp_match(host, uplink.rack)`,
    ])
      expect(beyond(await mql(user, text), text), text).not.toMatch(USERS[user]?.markers ?? /./);
  });
});
