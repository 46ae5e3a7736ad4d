import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { RULE_RETRIES_COUNTED_MS } from "../../../common/limits.ts";
import { BASE_MS, recordsEntry } from "../../../test/helpers/areas/ingest.ts";
import {
  ADMIN,
  authors,
  controller,
  DIAL,
  idsOf,
  KEY,
  LINE,
  objects,
  openRuleBodies,
  outbox,
  retrying,
  rowsOf,
  rules,
  said,
  SOURCE,
  take,
} from "../../../test/helpers/areas/rule-bodies.ts";
import type { Unrestricted } from "../objects/index.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, WEBSOCKET_HOST_OBJECT } from "../rules/bodies/body-objects.ts";
import { RETRY_PATH } from "./retries.ts";

openRuleBodies();

describe("records that are passed on", () => {
  const next = "/matrix/rules/next";

  test("are parsed by the other rule as it was when the batch was begun, each once", async () => {
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name,n\n--var_note='old'\n");
    await rules.put(
      ADMIN,
      KEY,
      `--forward=${next}\n${LINE}if OBJECT.n > 1 then forward("${next}", OBJECT.name .. "2,9") end`,
    );
    let isAway = true;
    const dying: Unrestricted<"ingest"> = {
      unrestricted: {
        ingest: (...[principal, path, records]) =>
          isAway && path === "/matrix/other"
            ? Promise.reject(new AppError("unavailable", "away"))
            : objects.unrestricted.ingest(principal, path, records),
      },
    };
    const entries = [recordsEntry(1, ["a,1", "b,2"], KEY)];
    await expect(outbox.send(controller(dying), entries)).rejects.toMatchObject({ code: "unavailable" });
    isAway = false;
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name,n\n--var_note='new'\n");
    const second = controller();
    await second.acknowledged(SOURCE);
    await outbox.send(second, entries);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "a", n: 1 }]);
    expect(await rowsOf("/matrix/other")).toEqual([
      { name: "a", n: 1, note: "old" },
      { name: "b", n: 2, note: "old" },
      { name: "b2", n: 9, note: "old" },
    ]);
    await outbox.send(second, [recordsEntry(2, ["c,1"], KEY)]);
    expect((await rowsOf("/matrix/other")).at(-1)).toMatchObject({ name: "c", note: "new" });
  });

  test("never go in a circle, nor to a rule that does not stand in the text", async () => {
    await rules.put(ADMIN, next, `--class=/matrix/other\n--parser=csv\n--fields=name,n\n--forward=${KEY}\n`);
    expect(await take(`${LINE}--forward=${next}\n`, ["a,1"])).toMatchObject([{ name: "a" }]);
    expect(await rowsOf("/matrix/other")).toMatchObject([{ name: "a" }]);
    expect(await said()).toEqual([`${KEY} → ${next} → ${KEY}: records go in a circle.`]);
    await rules.put(ADMIN, KEY, `${LINE}cforward("/matrix" .. "/rules/next")`);
    await outbox.send(controller(), [recordsEntry(2, ["b,1"], KEY)]);
    expect((await said()).at(-1)).toContain("does not stand in the text");
  });

  test("get nowhere where the author may not write", async () => {
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name,n\n");
    const own = { ...ADMIN, user: "bob", data: [{ class: "/matrix/line", access: "write" }] } as const;
    authors.set("bob", own);
    expect(await take(`${LINE}cforward("${next}")`, ["a,1"], own)).toMatchObject([{ name: "a" }]);
    expect(await rowsOf("/matrix/other")).toEqual([]);
  });
});

describe("a record that is tried again", () => {
  const MINUTE = 60_000;
  const waits = async () =>
    (await rowsOf(`/matrix${RETRY_PATH}`)).map(({ rule, attempts, error }) => ({ rule, attempts, error }));
  const asks = (head: string) =>
    `${head}local rows = odb.mql("SELECT name FROM /matrix/keyed WHERE name = ?", OBJECT.name).data
    if #rows == 0 then retry("not there") end\n_note = "found"`;

  test("is kept before its batch is acknowledged, and is there once, with its neighbours in their order", async () => {
    await rules.put(ADMIN, KEY, asks(`${LINE}--retry_interval=30s\n`));
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "a" }, { name: "c" }]);
    const entries = [recordsEntry(1, ["a,1", "b,2", "c,3"], KEY)];
    const first = retrying();
    await outbox.send(first.ingest, entries);
    expect((await rowsOf("/matrix/line")).map(({ name }) => name)).toEqual(["a", "c"]);
    expect(await waits()).toEqual([{ rule: KEY, attempts: 0, error: "The rule asks for another try: not there." }]);
    expect(await said()).toEqual([]);
    await first.round(29_000);
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    await first.round(0);
    expect(await rowsOf("/matrix/line")).toHaveLength(2);
    // Another controller finds it due; an edit since then does not count; the batch comes once more.
    await rules.put(ADMIN, KEY, `${LINE}_note = "edited"`);
    const second = retrying();
    await second.round(31_000);
    expect(await waits()).toEqual([]);
    const ids = async () => (await idsOf("/matrix/line")).map(({ id, name, note }) => ({ id, name, note }));
    const once = await ids();
    expect(once.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    await outbox.send(second.ingest, entries);
    await first.round(2 * MINUTE);
    expect(await ids()).toEqual(once);
  });

  test("is an error when it was tried often enough, told once whoever tries", async () => {
    await rules.put(ADMIN, KEY, `${LINE}--retry\n--retry_total=2\nerror("never")`);
    const [first, second] = [retrying(), retrying()];
    await outbox.send(first.ingest, [recordsEntry(1, ["a,1"], KEY)]);
    await Promise.all([first.round(MINUTE), second.round(MINUTE)]);
    expect(await waits()).toMatchObject([{ attempts: 1 }]);
    expect(await said()).toEqual([]);
    await first.round(MINUTE);
    expect(await waits()).toEqual([]);
    expect(await said()).toEqual([expect.stringMatching(/never \(tried again 2 times\)$/) as string]);
    await second.round(MINUTE);
    expect(await said()).toHaveLength(1);
  });

  test("has no error of a rule it was passed on to while it waits, and one when it is done", async () => {
    const next = "/matrix/rules/next";
    await rules.put(ADMIN, next, "--class=/matrix/other\n--parser=csv\n--fields=name\n");
    await rules.put(ADMIN, KEY, asks(`${LINE}--forward=${next}\n`));
    const { ingest, round } = retrying();
    await outbox.send(ingest, [recordsEntry(1, ["b,2"], KEY)]);
    expect([(await waits()).length, await said(), await said(next)]).toEqual([1, [], []]);
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    await round(MINUTE);
    expect([await waits(), (await rowsOf("/matrix/line")).length]).toEqual([[], 1]);
    expect([...(await said()), ...(await said(next))]).toHaveLength(1);
  });

  test("goes on after a store that was away between its row and its end", async () => {
    await rules.put(ADMIN, KEY, asks(LINE));
    let isAway = true;
    const dying: Unrestricted<"ingest"> = {
      unrestricted: {
        ingest: (...[principal, path, records]) =>
          isAway
            ? Promise.reject(new AppError("unavailable", "away"))
            : objects.unrestricted.ingest(principal, path, records),
      },
    };
    const one = retrying(dying);
    await outbox.send(one.ingest, [recordsEntry(1, ["b,2"], KEY)]);
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    await one.round(MINUTE);
    expect(await waits()).toHaveLength(1);
    isAway = false;
    await one.round(0);
    expect([await waits(), await rowsOf("/matrix/line")]).toEqual([[], [{ name: "b", n: 2, note: "found" }]]);
  });

  test("waits among so many of its tenant, whichever controllers set them aside and look after them", async () => {
    await rules.put(ADMIN, KEY, asks(LINE));
    const [first, second] = [retrying(objects, 3), retrying(objects, 3)];
    const sent = ["a,1", "b,2", "c,3", "d,4"].map((line, at) => recordsEntry(at + 1, [line], KEY));
    await outbox.send(first.ingest, sent.slice(0, 2));
    await outbox.send(second.ingest, sent.slice(2));
    expect(await waits()).toHaveLength(3);
    expect(await said()).toEqual([expect.stringContaining("asks for another try") as string]);
    // A batch that comes once more finds the records that wait where they are.
    await outbox.send(second.ingest, sent.slice(0, 2));
    expect([await waits(), await said()]).toMatchObject([{ length: 3 }, { length: 1 }]);
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "a" }, { name: "b" }, { name: "c" }]);
    await second.round(MINUTE);
    expect(await waits()).toEqual([]);
    // The first has looked after none of them.
    first.tick(RULE_RETRIES_COUNTED_MS);
    await outbox.send(first.ingest, [recordsEntry(5, ["e,5", "f,6", "g,7"], KEY)]);
    expect(await waits()).toHaveLength(3);
    expect(await said()).toHaveLength(1);
  });

  test("waits while its author is not active, and has his rights of then", async () => {
    const bob = { ...ADMIN, user: "bob" };
    authors.set("bob", bob);
    await rules.put(bob, KEY, asks(LINE));
    const { ingest, round } = retrying();
    await outbox.send(ingest, [recordsEntry(1, ["b,2"], KEY)]);
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "b" }]);
    authors.delete("bob");
    await round(MINUTE);
    expect(await waits()).toHaveLength(1);
    authors.set("bob", { ...bob, data: [{ class: "/matrix", access: "read" }] });
    await round(0);
    expect([await waits(), await rowsOf("/matrix/line")]).toEqual([[], []]);
    expect((await said()).at(-1)).toContain("bob may not write");
  });
});

describe("every function of rules", () => {
  const examples = [RULE_LOCAL_OBJECT, RECORD_HOST_OBJECT, WEBSOCKET_HOST_OBJECT, DIAL].flatMap(
    ({ functions }) => functions,
  );

  test.each(examples.map(({ name, example }) => [name, example] as const))(
    "%s does what its example shows",
    async (name, example) => {
      for (const [key, parser] of [
        ["next", "csv"],
        ["json", "json"],
      ])
        await rules.put(ADMIN, `/matrix/rules/${key}`, `--class=/matrix/other\n--parser=${parser}\n--fields=name,n\n`);
      await rules.put(ADMIN, "/matrix/rules/hosts", "");
      await rules.putExtension(ADMIN, "/matrix/rules/hosts", "key:web-1\tval:front\n");
      await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "a", note: "kept" }]);
      const rows = [...(await take(LINE + example, ["a,1"])), ...(await rowsOf("/matrix/other"))];
      expect(await said()).toEqual([]);
      const day = new Date(BASE_MS).toISOString().replace(/\D/g, "");
      const expected: Readonly<Record<string, unknown>> = {
        setvar: [{ name: "a", n: 1, note: "seen" }],
        getvar: [{ name: "a", n: 1, note: "a,1" }],
        setClass: [{ name: "b", n: 1 }],
        getattr: [{ name: "a", n: 1, note: "/var/log/a" }],
        hostname: [{ name: "a", n: 1, note: "web-1" }],
        gettimekey: [{ name: "a", n: 1, note: day.slice(0, 10) }],
        forward: [{ name: "a", n: 1 }],
        cforward: [
          { name: "a", n: 1 },
          { name: "x", n: 1 },
        ],
        dforward: [{ name: "a", n: 1 }, { name: "d" }],
        lookup: [{ name: "a", n: 1, note: "front" }],
        setcache: [{ name: "a", n: 1 }],
        getcache: [{ name: "a", n: 1 }],
        ipinfo: [{ name: "a", n: 1, note: "private" }],
        send: [{ name: "a", n: 1 }],
        classcache: [{ name: "a", n: 1, note: "kept" }],
        retry: [{ name: "a", n: 1 }],
        dial: [{ name: "a", n: 1, note: "false" }],
      };
      expect(rows).toEqual(expected[name]);
    },
  );

  test("they are in JavaScript what they are in Lua", async () => {
    await rules.put(ADMIN, "/matrix/rules/next", "--class=/matrix/other\n--parser=csv\n--fields=name,n\n");
    await rules.put(ADMIN, "/matrix/rules/hosts", "");
    await rules.putExtension(ADMIN, "/matrix/rules/hosts", "key:web-1\tval:front\n");
    const body = `var seen = [hostname(), getattr("source"), gettimekey("year").length, lookup("/matrix/rules/hosts", {key: hostname()}).val,
      lookup("owners", {key: "b"}).val, lookup("owners", {key: "none"}) === undefined, ipinfo("::1").scope, getcache("k") === undefined,
      omnibus.trim(" x "), omnibus.substr("abcd", 2, 2), omnibus.split("a,b", ",").length, omnibus.int("7.9")];
      setcache("k", {v: 1}); seen.push(getcache("k").v); setvar("note", seen.join(" ")); cforward("/matrix/rules/next", "x,1");
      setClass("/matrix/keyed"); setvar("n", 1); dforward("/matrix/rules/next", {}); _IGNORE = false;`;
    const rows = await take(`${LINE}--language=javascript\n${body}`, ["a,1"]);
    expect(rows).toEqual([{ name: "a", n: 1, note: "web-1 /var/log/a 4 front bob true loopback true x bc 2 7 1" }]);
    expect(await rowsOf("/matrix/keyed")).toEqual([{ name: "a", n: 1 }]);
    expect((await rowsOf("/matrix/other")).map(({ name }) => name)).toEqual(["{}", "x"]);
  });

  test("classcache finds what the author may see, of classes that the text names, and refuses others", async () => {
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [
      { name: "a", n: 1, note: "one" },
      { name: "b", n: 2, note: "two" },
    ]);
    const bob = {
      ...ADMIN,
      user: "bob",
      data: [
        { class: "/matrix/line", access: "write" },
        { class: "/matrix/keyed", access: "read", where: "n < 2" },
      ],
    } as const;
    authors.set("bob", bob);
    const text = `${LINE}--cache_classes=/matrix/keyed\n_note = #classcache("/matrix/keyed") .. " " .. #classcache("/matrix/keyed", { n = OBJECT.n, name = OBJECT.name })`;
    const ingest = controller();
    await rules.put(bob, KEY, text);
    await outbox.send(ingest, [recordsEntry(1, ["a,1", "b,2"], KEY)]);
    expect((await rowsOf("/matrix/line")).map(({ note }) => note)).toEqual(["1 1", "1 0"]);
    await rules.put(ADMIN, KEY, `${text} if OBJECT.name == "d" then classcache("/matrix/other") end`);
    await outbox.send(ingest, [recordsEntry(2, ["b,2", "d,1"], KEY)]);
    expect((await rowsOf("/matrix/line")).map(({ note }) => note).sort()).toEqual(["1 0", "1 1", "2 1"]);
    expect(await said()).toEqual([
      expect.stringContaining("has no /matrix/other in its option --cache_classes") as string,
    ]);
  });

  test("a body reads raw records without any option line, and must name a class", async () => {
    await rules.put(
      ADMIN,
      KEY,
      'if getvar("_raw") ~= "none" then setClass("/matrix/other") _name = getvar("_raw") end',
    );
    await outbox.send(controller(), [recordsEntry(1, ["x y", "none"], KEY)]);
    expect(await rowsOf("/matrix/other")).toEqual([{ name: "x y" }]);
    expect(await said()).toEqual(["The rule has no option --class, and its body names no class."]);
  });
});
