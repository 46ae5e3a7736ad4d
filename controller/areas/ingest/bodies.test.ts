import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { recordsEntry } from "../../../test/helpers/areas/ingest.ts";
import {
  ADMIN,
  audit,
  authors,
  controller,
  KEY,
  LINE,
  objects,
  openRuleBodies,
  outbox,
  rowsOf,
  rules,
  said,
  scripts,
  SOURCE,
  take,
} from "../../../test/helpers/areas/rule-bodies.ts";
import type { Unrestricted } from "../objects/index.ts";

openRuleBodies();

describe.each([
  ["lua", LINE],
  ["javascript", `${LINE}--language=javascript\n`],
])("a body in %s", (language, head) => {
  const isLua = language === "lua";
  const either = (lua: string, javascript: string): string => head + (isLua ? lua : javascript);

  test("sets columns by variables and by setvar, over what the options say", async () => {
    const body = either(
      '_note = OBJECT.name .. "!"\nsetvar("n", getvar("n") * 2)',
      'var _note = OBJECT.name + "!";\nsetvar("n", getvar("n") * 2);',
    );
    expect(await take(body, ["a,1", "b,2"])).toEqual([
      { name: "a", n: 2, note: "a!" },
      { name: "b", n: 4, note: "b!" },
    ]);
  });

  test("finds nothing of the record before it", async () => {
    const body = either(
      "seen = (seen or 0) + 1\nstring.mark = nil\n_note = tostring(seen)",
      'seen = (typeof seen === "undefined" ? 0 : seen) + 1; Array.prototype.mark = (Array.prototype.mark || 0) + 1;\n_note = String(seen + [].mark);',
    ).replace("string.mark = nil\n", "");
    const rows = await take(body, ["a,1", "b,2", "c,3"]);
    expect(new Set(rows.map(({ note }) => note))).toEqual(new Set([isLua ? "1" : "2"]));
  });

  test("makes several rows of a record that was cut, each of which says so", async () => {
    const body =
      '_note = "first"; setClass("/matrix/other"); _note = "second"; setClass("/matrix/other"); _name = "third"';
    await rules.put(ADMIN, KEY, head + body);
    const entry = recordsEntry(1, ["a,1", "b,2"], KEY);
    if (entry.body?.$case !== "records") throw new Error("records");
    entry.body.value.cut = [1];
    await outbox.send(controller(), [entry]);
    const marks = async (path: string) => (await rowsOf(path)).map((row) => row["marks"] ?? null);
    expect(await marks("/matrix/line")).toEqual([null, ["cut"]]);
    const ofOther = await marks("/matrix/other");
    expect(ofOther.filter((one) => one !== null)).toEqual([["cut"], ["cut"]]);
    expect(ofOther).toHaveLength(4);
  });

  test("makes several rows, in several classes, each once however often the batch comes", async () => {
    const text = either(
      '_note = "first"\nsetClass("/matrix/other")\n_note = "second"\nsetClass("/matrix/other")\n_name = "third"',
      '_note = "first";\nsetClass("/matrix/other");\n_note = "second";\nsetClass("/matrix/other");\n_name = "third";',
    );
    await rules.put(ADMIN, KEY, text);
    const entries = [recordsEntry(1, ["a,1", "b,2"], KEY), recordsEntry(2, ["c,3"], KEY)];
    let calls = 0;
    const dying: Unrestricted<"ingest"> = {
      unrestricted: {
        ingest: (...[principal, path, records]) => {
          calls += 1;
          return calls === 2
            ? Promise.reject(new AppError("unavailable", "away"))
            : objects.unrestricted.ingest(principal, path, records);
        },
      },
    };
    await expect(outbox.send(controller(dying), entries)).rejects.toMatchObject({ code: "unavailable" });
    // The text is another by now: what was begun goes on as it was.
    await rules.put(ADMIN, KEY, `${LINE}_note = "edited"`);
    const second = controller();
    await second.acknowledged(SOURCE);
    expect(await outbox.send(second, entries)).toBe(2);
    expect((await rowsOf("/matrix/line")).map(({ note }) => note)).toEqual(["first", "first", "first"]);
    expect((await rowsOf("/matrix/other")).map(({ name, note }) => note ?? name).sort()).toEqual([
      "second",
      "second",
      "second",
      "third",
      "third",
      "third",
    ]);
  });

  test("drops records, and its failure is an error of that record at its line", async () => {
    const body = either(
      'if OBJECT.name == "drop" then _IGNORE = true end\nif OBJECT.name == "bad" then error("no good") end',
      'if (OBJECT.name === "drop") _IGNORE = true;\nif (OBJECT.name === "bad") throw new Error("no good");',
    );
    expect(await take(body, ["a,1", "drop,2", "bad,3", "z,4"])).toMatchObject([{ name: "a" }, { name: "z" }]);
    expect(await said()).toEqual([expect.stringMatching(/^\/matrix\/rules\/body:(6|7):\d+: .*no good$/) as string]);
  });

  test("that never ends, grows or eats the memory fails its record alone", async () => {
    const body = either(
      'if OBJECT.name == "loop" then while true do end end\nif OBJECT.name == "grow" then _note = ("x"):rep(200000) end\n' +
        'if OBJECT.name == "eat" then local t, long = {}, ("x"):rep(1000000) while true do t[#t + 1] = long .. #t end end\n' +
        'if OBJECT.name == "rows" then for i = 1, 101 do setClass("/matrix/other") _n = i end end',
      'if (OBJECT.name === "loop") while (true) {}\nif (OBJECT.name === "grow") _note = "x".repeat(200000);\n' +
        'if (OBJECT.name === "eat") { var t = []; while (true) t.push(new Array(1000000).fill(t.length)); }\n' +
        'if (OBJECT.name === "rows") for (var i = 1; i < 102; i++) { setClass("/matrix/other"); _n = i; }',
    );
    const rows = await take(body, ["a,1", "loop,2", "grow,3", "eat,4", "rows,5", "z,6"]);
    expect(rows.map(({ name }) => name)).toEqual(["a", "z"]);
    expect(await said()).toHaveLength(4);
    expect(scripts.ended).toBe(0);
  });

  test("logs into the console log of kind rule, under the key of the rule", async () => {
    await take(either('log.info("saw", OBJECT.name)', 'log.info("saw", OBJECT.name);'), ["a,1"]);
    expect(await said()).toEqual([expect.stringContaining("saw a") as string]);
  });
});

describe("the audit trail", () => {
  const body = `${LINE}if OBJECT.name == "b" or OBJECT.name == "c" then outside.change() end
    if OBJECT.name == "c" then error("after it") end`;

  test("has one entry of a series whose bodies changed something, with the author, and none of others", async () => {
    await take(body, ["b,1", "b,2", "c,3"]);
    expect(audit.entries).toEqual([`administrator RULE ${KEY} outside.change ok`]);
    await outbox.send(controller(), [recordsEntry(2, ["a,1"], KEY)]);
    expect(audit.entries).toHaveLength(1);
  });

  test("is asked before a change: without it the function is not called, and its record is an error", async () => {
    audit.isAway = true;
    expect(await take(body, ["a,1", "b,2"])).toMatchObject([{ name: "a" }]);
    expect([audit.entries, await said()]).toEqual([[], [expect.stringContaining("the trail is away")]]);
  });
});

describe("a rule of options alone", () => {
  const bob = { ...ADMIN, user: "bob" };
  const reading = { ...bob, data: [{ class: "/matrix", access: "read" }] } as const;

  test("writes what its author may write at that moment, row by row", async () => {
    const own = { ...bob, data: [{ class: "/matrix/line", access: "write", where: "n < 3" }] } as const;
    authors.set("bob", own);
    await rules.put(own, KEY, LINE);
    const ingest = controller();
    await outbox.send(ingest, [recordsEntry(1, ["a,1", "b,3", "c,2"], KEY)]);
    expect((await rowsOf("/matrix/line")).map(({ name }) => name)).toEqual(["a", "c"]);
    expect(await said()).toEqual([
      "bob may not write this object of /matrix/line: it does not fulfil the row condition.",
    ]);
    authors.set("bob", reading);
    await outbox.send(ingest, [recordsEntry(2, ["d,1", "e,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toHaveLength(2);
    expect((await said()).slice(1)).toEqual([
      expect.stringContaining("bob may not"),
      expect.stringContaining("bob may not"),
    ]);
  });

  test("waits without an active author, says so, and is told to who deletes him", async () => {
    await rules.put(bob, KEY, LINE);
    const ingest = controller();
    await expect(outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).rejects.toMatchObject({ code: "unavailable" });
    expect(await said()).toEqual([`The rule ${KEY} stands still: its author bob is not active.`]);
    expect(await rules.endsWith(ADMIN, "bob")).toEqual([expect.stringContaining(KEY)]);
    expect(await rules.endsWith(ADMIN, "ann")).toEqual([]);
    authors.set("bob", bob);
    expect(await outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).toBe(1);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  test("has the rights of the platform where the platform stored it", async () => {
    await rules.put({ ...ADMIN, user: "" }, KEY, LINE);
    authors.clear();
    await outbox.send(controller(), [recordsEntry(1, ["a,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "a", n: 1 }]);
  });

  test("is pinned with its author: a batch that is repeated has his rights, whoever saved the same text since", async () => {
    authors.set("bob", reading);
    await rules.put(bob, KEY, LINE);
    const entries = [recordsEntry(1, ["a,1"], KEY)];
    const dying = { unrestricted: { ingest: () => Promise.reject(new AppError("unavailable", "away")) } };
    await expect(outbox.send(controller(dying), entries)).rejects.toMatchObject({ code: "unavailable" });
    await rules.put(ADMIN, KEY, LINE);
    const second = controller();
    await outbox.send(second, entries);
    expect([await rowsOf("/matrix/line"), (await said()).length]).toEqual([[], 1]);
    await outbox.send(second, [recordsEntry(2, ["b,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "b", n: 1 }]);
  });

  test("is stored by nobody who signed in by a token with a part of his rights", async () => {
    const part = { ...ADMIN, byToken: "part" } as const;
    const made = { class: "/matrix/line", type: "text", fields: ["name"] } as const;
    await expect(rules.put(part, KEY, LINE)).rejects.toMatchObject({ code: "denied" });
    await expect(rules.create(part, made)).rejects.toMatchObject({ code: "denied" });
    expect((await rules.put({ ...ADMIN, byToken: "whole" }, KEY, LINE)).warnings).toEqual([]);
  });
});

describe("rights", () => {
  test("a body writes what its author may write at that moment, row by row", async () => {
    const own = { ...ADMIN, user: "bob", data: [{ class: "/matrix/line", access: "write", where: "n < 3" }] } as const;
    authors.set("bob", own);
    await rules.put(own, KEY, `${LINE}if OBJECT.name == "c" then setClass("/matrix/other") _note = "x" end`);
    await outbox.send(controller(), [recordsEntry(1, ["a,1", "b,3", "c,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toMatchObject([{ name: "a" }]);
    expect(await rowsOf("/matrix/other")).toEqual([]);
    expect([...(await said())].sort()).toEqual([
      "bob may not write this object of /matrix/line: it does not fulfil the row condition.",
      "class : /matrix/other not find !",
    ]);
    authors.set("bob", { ...own, data: [{ class: "/matrix/line", access: "read" }] });
    await outbox.send(controller(), [recordsEntry(2, ["d,1"], KEY)]);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  test("without an active author its records wait, and its log says so", async () => {
    await rules.put({ ...ADMIN, user: "gone" }, KEY, `${LINE}_note = "x"`);
    const ingest = controller();
    await expect(outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).rejects.toMatchObject({ code: "unavailable" });
    expect(await said()).toEqual([`The rule ${KEY} stands still: its author gone is not active.`]);
    authors.set("gone", ADMIN);
    expect(await outbox.send(ingest, [recordsEntry(1, ["a,1"], KEY)])).toBe(1);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  test("another tenant's keyspace is refused, and a text that does not parse, where it is stored", async () => {
    await expect(rules.put(ADMIN, KEY, `--keyspace=second\n${LINE}_n = 1`)).rejects.toMatchObject({ code: "denied" });
    expect((await rules.put(ADMIN, KEY, `--keyspace=matrix\n${LINE}_n = 1`)).warnings).toEqual([]);
    await expect(rules.put(ADMIN, KEY, `${LINE}if then`)).rejects.toMatchObject({
      code: "syntax",
      message: expect.stringContaining(`${KEY}:5:`) as string,
    });
    await expect(rules.put(ADMIN, KEY, `${LINE}--language=javascript\nvar = 1`)).rejects.toMatchObject({
      code: "syntax",
    });
    await expect(rules.put(ADMIN, KEY, `${LINE}--language=perl\nx`)).rejects.toMatchObject({ code: "invalid" });
  });
});
