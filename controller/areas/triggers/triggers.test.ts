import { describe, expect, test } from "vitest";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { admin, bound, BOXES, Controller, opened, openTriggers } from "../../../test/helpers/areas/trigger-world.ts";
import { AppError } from "../../../common/errors.ts";
import { TRIGGER_LOG_LINES_MAX } from "../../../common/limits.ts";
import type { DataRule } from "../permissions/index.ts";
import { triggerRoutes } from "./routes.ts";

openTriggers();

describe("the audit trail", () => {
  test("has one entry of each run that changed something, failed or not, with the author, and none of others", async () => {
    const controller = await opened();
    const { mql, put } = bound(controller);
    const { entries } = controller.audit;
    await put(
      "changing",
      "if OBJECT.size > 1 then outside.change() outside.change() end if OBJECT.size > 2 then error('no') end",
    );
    await mql("insert into /matrix/box name='a', size=1");
    expect(entries).toEqual([]);
    await mql("insert into /matrix/box name='b', size=2");
    await expect(mql("insert into /matrix/box name='c', size=3")).rejects.toThrow("no");
    expect(entries.map((entry) => entry.replace(/ \w+$/, ""))).toEqual(
      Array.from({ length: 2 }, () => "administrator TRIGGER /matrix/box#changing outside.change"),
    );
    expect(entries.map((entry) => entry.endsWith(" ok"))).toEqual([true, false]);
  });

  test("is asked before a change: without it the function is not called, and the write is refused", async () => {
    const controller = await opened();
    await controller.put("changing", "outside.change()");
    controller.audit.isAway = true;
    await expect(controller.mql("insert into /matrix/box name='a'")).rejects.toThrow("the trail is away");
    expect([controller.audit.entries, await controller.mql(BOXES)]).toEqual([[], []]);
  });
});

describe("a trigger before a write", () => {
  test.each([
    [
      "lua",
      "OBJECT.size = (OBJECT.size or 0) * 2; OBJECT.notes = {ACTION, OLD and OLD.size or 'new'}; OBJECT.owner = nil",
    ],
    [
      "javascript",
      "OBJECT.size = (OBJECT.size || 0) * 2; OBJECT.notes = [ACTION, typeof OLD === 'undefined' ? 'new' : String(OLD.size)]; delete OBJECT.owner",
    ],
  ])("changes what is written, in %s", async (language, script) => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("double", script, { language });
    await mql("insert into /matrix/box (name, size, owner) values ('a', 1, 'me'), ('b', 2, 'me')");
    await mql("update /matrix/box set size = 5 where name = 'a'");
    expect(await mql(BOXES)).toEqual([
      { name: "a", size: 10, notes: ["UPDATE", "2"], owner: null },
      { name: "b", size: 4, notes: ["INSERT", "new"], owner: null },
    ]);
  });

  test.each(["lua", "javascript"])("leaves what it does not touch as it is, in %s", async (language) => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("sized", "OBJECT.size = 2", { language });
    await mql("create class /matrix/box/free (any map, keys(name))");
    const any = { list: [null, { deep: ["x", null, null] }, []], n: 0.1, none: [null], text: "1" };
    for (const notes of [[null], [], ["a", null], [null, "a"], ["a", null, "b"], ["a"]]) {
      const values = `'a', ${JSON.stringify(notes)}, ${JSON.stringify(any)}`;
      await mql(`insert into /matrix/box/free (name, notes, any) values (${values})`);
      expect(await mql("select notes, any, size from /matrix/box/free")).toEqual([{ notes, any, size: 2 }]);
    }
    await controller.put("sized", `OBJECT.notes = ${language === "lua" ? '{"b"}' : '["b"]'}`, { language });
    await mql("update /matrix/box/free set size = 3");
    expect(await mql("select notes from /matrix/box/free")).toEqual([{ notes: ["b"] }]);
  });

  test.each([
    ["return OBJECT.size ~= 3", "The trigger /matrix/box#guard refused the write."],
    ["if OBJECT.size == 3 then error('three is too much', 0) end", "three is too much"],
    ["if OBJECT.size == 3 then local x = nil + 1 end", "lua"],
    ["if OBJECT.size == 3 then OBJECT.nothing = 1 end", "Field nothing Not Exist"],
    ["if OBJECT.size == 3 then OBJECT.size = 'many' end", "size"],
    ["if OBJECT.size == 3 then OBJECT.name = 'other' end", "cannot be changed"],
    ["if OBJECT.size == 3 then OBJECT = nil end", "left no OBJECT"],
  ])("refuses it: %s", async (script, text) => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("guard", script);
    await mql("insert into /matrix/box name='a', size=1");
    await expect(mql("insert into /matrix/box name='b', size=3")).rejects.toThrow(text === "lua" ? /arithmetic/ : text);
    await expect(mql("update /matrix/box set size=3 where name='a'")).rejects.toMatchObject({
      code: expect.any(String) as string,
    });
    expect(await mql("select name, size from /matrix/box")).toEqual([{ name: "a", size: 1 }]);
  });

  test("refuses a removal, and sees what goes; records have triggers too", async () => {
    const { mql, ...controller } = bound(await opened());
    await controller.put(
      "keep",
      "if ACTION == 'DELETE' then log.info(OLD.name, OBJECT.size) return OBJECT.size > 1 end",
    );
    await controller.put("line", "OBJECT.text = OBJECT.text .. '!'", { of: "/matrix/line" });
    await mql("insert into /matrix/box (name, size) values ('a', 1), ('b', 2); insert into /matrix/line text='x'");
    await expect(mql("delete from /matrix/box where name='a'")).rejects.toThrow("refused the write");
    await mql("delete from /matrix/box where name='b'");
    expect(await mql("select name from /matrix/box")).toEqual([{ name: "a" }]);
    expect(await mql("select text from /matrix/line")).toEqual([{ text: "x!" }]);
    expect((await controller.log("/matrix/box#keep")).filter(([level]) => level === 2)).toEqual([
      [2, "a 1"],
      [2, "b 2"],
    ]);
  });

  test("runs from the lowest level to the highest, also in subclasses that do not opt out, unless it is disabled", async () => {
    const { mql, ...controller } = bound(await opened());
    const add = (text: string): string => `OBJECT.notes = OBJECT.notes or {} table.insert(OBJECT.notes, '${text}')`;
    await controller.put("a", add("high"), { level: "10" });
    await controller.put("b", add("low"), { level: "-2" });
    await controller.put("c", add("off"), { disable: "true" });
    await controller.put("d", add("crate"), { of: "/matrix/box/crate", level: "1" });
    await mql("create class /matrix/box/own (x int) with inherittriggers=false");
    await mql(
      "insert into /matrix/box name='1'; insert into /matrix/box/crate name='2'; insert into /matrix/box/own name='3'",
    );
    expect((await mql(BOXES)).map(({ notes }) => notes)).toEqual([["low", "high"], ["low", "crate", "high"], null]);
  });

  test("may write other objects; not the one it was called for, nor a batch's rows, and no circle waits for ever", async () => {
    const { mql, ...controller } = bound(await opened());
    await controller.put(
      "copy",
      "if OBJECT.size == 1 then odb.mql('insert into /matrix/copy of=?, size=?', OBJECT.name, 7) end",
    );
    await mql("insert into /matrix/box name='a', size=1");
    expect(await mql("select of, size from /matrix/copy")).toEqual([{ of: "a", size: 7 }]);
    await controller.put("copy", "if OBJECT.size == 1 then odb.mql(\"insert into /matrix/box name='b', size=2\") end");
    await expect(mql("insert into /matrix/box name='b', size=1")).rejects.toThrow("may not write the object");
    await expect(mql("insert into /matrix/box (name, size) values ('c', 1), ('b', 5)")).rejects.toThrow(
      "may not write",
    );
    await controller.put("copy", "odb.mql('insert into /matrix/box name=?', OBJECT.name == 'x' and 'y' or 'x')");
    await expect(mql("insert into /matrix/box name='x'")).rejects.toThrow("may not write the object");
    await controller.put(
      "copy",
      "if OBJECT.size then odb.mql('insert into /matrix/box name=?', OBJECT.name == 'x' and 'y' or 'x') end",
    );
    const both = await Promise.allSettled(
      ["x", "y"].map((name) => mql(`insert into /matrix/box name='${name}', size=1`)),
    );
    expect(both.map(({ status }) => status)).toContain("fulfilled");
  });

  test("writes that wait for an object never hold the threads of those that have it", async () => {
    const { mql, ...controller } = bound(await opened());
    await controller.put("sum", "OBJECT.size = (OLD and OLD.size or 0) + 1");
    await controller.put("count", "odb.mql(\"insert into /matrix/box name='sum'\")", { of: "/matrix/copy" });
    const writes = Array.from({ length: 6 }, (_, at) => [
      mql(`insert into /matrix/copy of='${at}'`),
      mql("insert into /matrix/box name='sum'"),
    ]);
    expect((await Promise.allSettled(writes.flat())).filter(({ status }) => status === "rejected")).toEqual([]);
    expect(await mql("select size from /matrix/box")).toEqual([{ size: 12 }]);
  });

  test("a chain ends after its steps", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("next", "odb.mql('insert into /matrix/box name=?', OBJECT.name .. 'x')");
    const chain = { id: "mine", steps: 15, holds: [] };
    const text = "insert into /matrix/box name='x'";
    await expect(first.mql(text, { ...admin, chain })).rejects.toThrow("A chain of triggers ends after 16 steps");
    await controller.put("next", "odb.mql('insert into /matrix/box name=?', OBJECT.name .. 'x')", { before: "false" });
    await mql(text);
    const storedTasks = "select error, object from /matrix/system/triggerevent where state='failed'";
    const [refused] = await first.until(
      () => mql(storedTasks),
      (rows) => rows.length === 1,
    );
    expect(refused).toEqual({ error: expect.stringContaining("16 steps") as string, object: `box:${"x".repeat(16)}` });
    expect(await mql("select name from /matrix/box")).toHaveLength(16);
  });

  test("that says more than is kept tells how much, and its failure", async () => {
    const { mql, ...controller } = bound(await opened());
    const script = `for line = 1, ${TRIGGER_LOG_LINES_MAX + 50} do log.info(line) end error('at last', 0)`;
    await controller.put("talks", script);
    await expect(mql("insert into /matrix/box name='a'")).rejects.toThrow("at last");
    const said = await controller.log("/matrix/box#talks");
    expect(said).toHaveLength(TRIGGER_LOG_LINES_MAX + 2);
    expect(said).toEqual(
      expect.arrayContaining([
        [2, String(TRIGGER_LOG_LINES_MAX)],
        [4, "at last"],
        [3, "50 more entries were left out."],
      ]),
    );
  });

  test("has the present rights of its author, and stands still without him", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("copy", "odb.mql('insert into /matrix/copy of=?', OBJECT.name)");
    first.authors.set("administrator", { ...admin, data: [{ class: "/matrix/box", access: "write" }] });
    await expect(mql("insert into /matrix/box name='a'")).rejects.toMatchObject({ code: "invalid" });
    first.authors.set("administrator", undefined);
    await mql("insert into /matrix/box name='b'");
    expect(await controller.log("/matrix/box#copy")).toContainEqual([
      4,
      "It does not run: its author administrator is not active.",
    ]);
  });

  test.each<[what: string, less: DataRule]>([
    ["rows", { class: "/matrix/box", access: "write", where: "owner = 'me'" }],
    ["columns", { class: "/matrix/box", access: "write", hidden: ["owner"] }],
    ["writing", { class: "/matrix/box", access: "read" }],
    ["a class below", { class: "/matrix/box/crate", access: "none" }],
  ])("stands still while its author is restricted in %s, and goes on after", async (_, less) => {
    const { mql, first, ...controller } = bound(await opened());
    const told = "DATACHANGE = true OBJECT.notes = {OBJECT.owner, OLD and OLD.owner or '-'}";
    await controller.put("tell", told);
    const made = async (name: string): Promise<unknown> => {
      await mql(`insert into /matrix/box/crate name='${name}', owner='secret'`);
      return (await mql(`select notes from /matrix/box/crate where name='${name}'`))[0]?.["notes"];
    };
    expect(await made("a")).toEqual(["secret", "-"]);
    first.authors.set("administrator", { ...admin, data: [...admin.data, less] });
    expect(await made("b")).toBeNull();
    expect(await controller.log("/matrix/box#tell")).toEqual([
      [4, expect.stringMatching(/^It does not run: its author administrator may not .*\/matrix\/box/)],
    ]);
    first.authors.set("administrator", admin);
    expect(await made("c")).toEqual(["secret", "-"]);
  });
});

test("before a write, one that counts counts every insert of batches that are made at the same time", async () => {
  const controller = await opened();
  await controller.put("count", "OBJECT.size = ((OLD and OLD.size) or 0) + 1");
  const insert = "begin insert into /matrix/box name='b'; insert into /matrix/box name='c' end";
  await Promise.all(Array.from({ length: 12 }, () => controller.mql(insert)));
  expect(await controller.mql("select size from /matrix/box limit 10")).toEqual([{ size: 12 }, { size: 12 }]);
});

test("every controller works by a trigger once it is stored", async () => {
  const first = await opened();
  const second = new Controller("second");
  await second.mql(BOXES);
  await first.put("guard", "return false");
  await expect(second.mql("insert into /matrix/box name='a'")).rejects.toThrow("refused");
  await first.triggers.remove(admin, { class: "/matrix/box", name: "guard" });
  await second.mql("insert into /matrix/box name='a'");
});

describe("the interface", () => {
  test("answers sources and attributes as texts, and removes what a query or a form names", async () => {
    const { triggers } = await opened();
    await using http = await openTestHttp({ endpoints: triggerRoutes(triggers) });
    const session = await http.signIn("admin");
    const attr = { disable: "false", before: "true", level: "5" };
    const payload = { class: "/matrix/box", name: "t", script: "-- nothing", attr };
    expect(await http.call(session, { url: "/mxobject/trigger", method: "PUT", payload })).toMatchObject({
      status: "ok",
    });
    const url = "/mxobject/trigger?class=/matrix/box";
    const listed = await http.call(session, { url });
    expect(listed).toMatchObject({
      message: [{ class: "/matrix/box", vtime: expect.any(Number) as number, script: { t: "-- nothing" } }],
    });
    const [entry] = (listed as { message: [{ attr: Record<string, string> }] }).message;
    expect(JSON.parse(entry.attr["t"] ?? "")).toEqual({ ...attr, language: "lua" });
    expect(await http.call(session, { url: `${url}&name=t`, method: "DELETE" })).toMatchObject({ status: "ok" });
    expect(await http.call(session, { url })).toMatchObject({ message: [{ script: {}, attr: {}, vtime: 0 }] });
    await http.call(session, { url: "/mxobject/trigger", method: "PUT", payload });
    const byForm = {
      url: "/mxobject/trigger",
      method: "DELETE",
      payload: new URLSearchParams({ class: "/matrix/box", name: "t" }).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded" },
    } as const;
    expect(await http.call(session, byForm)).toEqual({ status: "ok", message: "" });
    expect(await http.call(session, byForm)).toMatchObject({ code: "not_found" });
    expect(await http.call(session, { url: `${url}&name=t`, method: "DELETE" })).toMatchObject({ code: "not_found" });
  });

  test.each([
    [{ script: "x = (" }, "syntax"],
    [{ script: "while true do end return" }, undefined],
    [{ script: "// language: javascript\nvar x = (" }, "syntax"],
    [{ script: "x", attr: { language: "perl" } }, "invalid"],
    [{ script: "", attr: { before: "maybe" } }, "invalid"],
    [{ script: "", attr: { level: "high" } }, "invalid"],
    [{ script: "", name: "a/b" }, "invalid"],
    [{ script: "", class: "/matrix/none" }, "not_found"],
    [{ script: "", class: "/matrix/system/triggerevent" }, "denied"],
    [{ script: `--${"x".repeat(70_000)}` }, "too_large"],
  ])("%j is answered with %s", async (given, code) => {
    const { triggers } = await opened();
    const stored = triggers.put(admin, { class: "/matrix/box", name: "t", ...given });
    if (code === undefined) await stored;
    else await expect(stored).rejects.toMatchObject({ code });
  });

  test("that stop with a user are told to who deletes him, as far as they may be seen", async () => {
    const controller = await opened();
    await controller.put("keep", "", {});
    expect(await controller.triggers.endsWith(admin, "administrator")).toEqual([
      "Triggers stop until another user saves them: /matrix/box#keep.",
    ]);
    expect(await controller.triggers.endsWith(admin, "other")).toEqual([]);
    expect(await controller.triggers.endsWith({ ...admin, grants: ["users:write"] }, "administrator")).toEqual([]);
    expect(await controller.triggers.endsWith({ ...admin, data: [] }, "administrator")).toEqual([]);
  });

  test("takes unrestricted rights on the class and those below it, and the permission", async () => {
    const { triggers } = await opened();
    const input = { class: "/matrix/box", name: "t", script: "" };
    const narrow = { ...admin, data: [...admin.data, { class: "/matrix/box/crate", access: "read" } as const] };
    await expect(triggers.put(narrow, input)).rejects.toBeInstanceOf(AppError);
    await expect(triggers.put(testPrincipal("viewer"), input)).rejects.toMatchObject({ code: "denied" });
    await expect(triggers.put({ ...testPrincipal(), byToken: "part" }, input)).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("of which the token has a part") as string,
    });
    await expect(triggers.remove(narrow, { class: "/matrix/box", name: "t" })).rejects.toMatchObject({
      code: "denied",
    });
  });
});
