import { describe, expect, test } from "vitest";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import {
  admin,
  bound,
  BOXES,
  Controller,
  controllers,
  opened,
  openTriggers,
} from "../../../test/helpers/areas/trigger-world.ts";
import type { TriggerDefinition } from "../objects/index.ts";
import type { DataRule } from "../permissions/index.ts";
import { StoredTasks } from "./stored-tasks.ts";

openTriggers();

describe("a trigger after a write", () => {
  const COPY = `local old = OLD and (OLD.size or 0) or -1
    odb.mql('insert into /matrix/copy of=?, what=?, size=?', OBJECT.name .. ACTION, old .. '>' .. OBJECT.size, OBJECT.size)`;

  test("gets the whole object and what it was, also of a removal, and cannot write it", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("copy", COPY, { before: "false" });
    await controller.put("self", "odb.mql('update /matrix/box set size=9 where name=?', OBJECT.name)", {
      before: "false",
      disable: "true",
    });
    await mql(
      "insert into /matrix/box name='a', size=1; update /matrix/box set owner='x', size=2; delete from /matrix/box",
    );
    const copies = await first.until(
      () => mql("select of, what from /matrix/copy order by of"),
      (rows) => rows.length === 3,
    );
    expect(copies.map(({ of, what }) => [of, what])).toEqual([
      ["aDELETE", "2>2"],
      ["aINSERT", "-1>1"],
      ["aUPDATE", "1>2"],
    ]);
  });

  test("that fails sets the change aside, to be run again; others go on", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("fails", "if OBJECT.size == 1 then error('not yet', 0) end", { before: "false" });
    await controller.put("copy", COPY, { before: "false" });
    await mql("insert into /matrix/box name='a', size=1");
    await first.until(
      () => mql("select of from /matrix/copy"),
      (rows) => rows.length === 1,
    );
    const storedTasks =
      "select state, attempts, error, object, action, trigger, owner, time, us, event from /matrix/system/triggerevent";
    const [failed] = await first.until(
      () => mql(storedTasks),
      (rows) => rows[0]?.["state"] === "failed",
    );
    const told = { state: "failed", attempts: 5, error: "not yet", owner: "" };
    expect(failed).toMatchObject({ ...told, object: "box:a", action: "INSERT", trigger: "/matrix/box#fails" });
    const { timeMs } = JSON.parse(String(failed?.["event"])) as { readonly timeMs: number };
    expect(Number(failed?.["time"]) * 1_000 + Number(failed?.["us"])).toBe(Math.round(timeMs * 1_000));
    expect((await controller.log("/matrix/box#fails")).at(-1)?.[1]).toContain("set aside after 5 runs");
    await controller.put("fails", "odb.mql(\"insert into /matrix/event text='again'\")", { before: "false" });
    await mql("update /matrix/system/triggerevent set state='waiting'");
    await first.triggers.maintain("matrix");
    await first.until(
      () => mql("select text from /matrix/event"),
      (rows) => rows.length === 1,
    );
    await first.until(
      () => mql(storedTasks),
      (rows) => rows.length === 0,
    );
  });

  test("of an author who is restricted is set aside unseen, and runs again when he is not any more", async () => {
    const { mql, first, ...controller } = bound(await opened());
    await controller.put("copy", "odb.mql('insert into /matrix/event text=?', OBJECT.owner)", { before: "false" });
    const data: readonly DataRule[] = [...admin.data, { class: "/matrix/box", access: "write", hidden: ["owner"] }];
    first.authors.set("administrator", { ...admin, data });
    await mql("insert into /matrix/box name='a', owner='secret'");
    const storedTasks = "select state, error from /matrix/system/triggerevent";
    const [failed] = await first.until(
      () => mql(storedTasks),
      (rows) => rows[0]?.["state"] === "failed",
    );
    expect(failed?.["error"]).toContain("its author administrator may not");
    expect(await mql("select text from /matrix/event")).toEqual([]);
    expect((await controller.log("/matrix/box#copy"))[0]?.[1]).toContain("It does not run: its author");
    first.authors.set("administrator", admin);
    await mql("insert into /matrix/box name='b', owner='open'; update /matrix/system/triggerevent set state='waiting'");
    await first.triggers.maintain("matrix");
    const texts = await first.until(
      () => mql("select text from /matrix/event order by text"),
      (rows) => rows.length === 2,
    );
    expect(texts.map(({ text }) => text)).toEqual(["open", "secret"]);
    await first.until(
      () => mql(storedTasks),
      (rows) => rows.length === 0,
    );
  });

  test("changes of a controller that is gone reach the triggers by another one", async () => {
    const first = await opened();
    await first.put("copy", COPY, { before: "false" });
    first.triggers.after = () => Promise.reject(new Error("it ends before"));
    await first.mql("insert into /matrix/box name='a', size=1");
    await first.close();
    controllers.length = 0;
    const second = new Controller("second");
    await second.triggers.maintain("matrix");
    const copies = await second.until(
      () => second.mql("select of from /matrix/copy"),
      (rows) => rows.length === 1,
    );
    expect(copies).toMatchObject([{ of: "aINSERT" }]);
  });
});

/** Reports the size that the previous run for the object saw. */
const SEQUENCE = `local last = odb.mql("select size from /matrix/copy where of=?", OBJECT.name).data[1]
  odb.mql('insert into /matrix/copy of=?, size=?', OBJECT.name, OBJECT.size)
  odb.mql('insert into /matrix/event text=?', (last and last.size or -1) .. '>' .. OBJECT.size)`;

test("of one object's many changes, made by two controllers, each is told once and in their order", async () => {
  const first = await opened();
  const second = new Controller("second", new Set(["first", "second"]));
  await second.mql(BOXES);
  await first.put("tell", SEQUENCE, { before: "false" });
  const sizes = Array.from({ length: TIMES > 1 && !onCluster ? 400 : 60 }, (_, at) => at);
  for (const size of sizes) await (size % 2 ? first : second).mql(`insert into /matrix/box name='one', size=${size}`);
  const rows = "select text from /matrix/event limit 10000";
  const half = (controller: Controller) =>
    controller.until(
      () => controller.mql(rows),
      (found) => found.length >= sizes.length,
    );
  await Promise.race([half(first), half(second)]);
  const told = (await first.mql(rows)).map(({ text }) => String(text));
  expect(told.sort()).toEqual(sizes.map((size) => `${size - 1}>${size}`).sort());
});

test("changes of one object within a millisecond are kept each by itself", async () => {
  const { objects } = await opened();
  const storedTasks = new StoredTasks({ objects, ospaceOf: (tenant) => Promise.resolve(`/${tenant}`) });
  const event = {
    tenant: "matrix",
    class: "/matrix/box",
    id: "box:a",
    action: "UPDATE",
    fields: {},
    traceparent: "",
  } as const;
  const trigger = { class: "/matrix/box", name: "tell" } as TriggerDefinition;
  const tasks = [5.001, 5.002, 5.999].map((timeMs) => ({ event: { ...event, timeMs }, trigger }));
  const times = async (): Promise<readonly number[]> => {
    const kept: number[] = [];
    for await (const page of storedTasks.waiting("matrix")) kept.push(...page.map((one) => one.event.timeMs));
    return kept.sort();
  };
  await storedTasks.put(tasks, { state: "waiting", owner: "first" });
  expect(await times()).toEqual([5.001, 5.002, 5.999]);
  await storedTasks.remove(tasks[1]!);
  expect(await times()).toEqual([5.001, 5.999]);
});

describe("a change that happened before its trigger was", () => {
  /** A controller that holds its changes back until the test lets them in. */
  async function waiting() {
    const controller = await opened();
    let isOpen = false;
    const after = controller.triggers.after.bind(controller.triggers);
    controller.triggers.after = (...given) => (isOpen ? after(...given) : Promise.reject(new Error("not yet")));
    const said = (word: string): string => `odb.mql('insert into /matrix/event text=?', '${word} ' .. OBJECT.name)`;
    const { mql, put } = bound(controller);
    await put("tell", said("first"), { before: "false" });
    await mql("insert into /matrix/box name='a'");
    /** Texts reported once the changes of all these objects were processed, which happens concurrently. */
    const told = async (...objects: readonly string[]): Promise<readonly unknown[]> => {
      isOpen = true;
      const rows = await controller.until(
        () => mql("select text from /matrix/event order by text"),
        (found) => objects.every((name) => found.some(({ text }) => String(text).endsWith(` ${name}`))),
      );
      return rows.map(({ text }) => text);
    };
    return { controller, mql, put, said, told };
  }

  test("changed, is run by the text that was stored then, and later ones by the later text", async () => {
    const { mql, put, said, told } = await waiting();
    await put("tell", said("second"), { before: "false", level: "3" });
    await put("tell", said("third"), { before: "false" });
    await mql("insert into /matrix/box name='b'");
    expect(await told("a", "b")).toEqual(["first a", "third b"]);
  });

  test("removed, is not run by another one of its name", async () => {
    const { controller, mql, put, said, told } = await waiting();
    await put("other", said("other"), { before: "false" });
    await put("tell", said("changed"), { before: "false" });
    await controller.triggers.remove(admin, { class: "/matrix/box", name: "tell" });
    await put("tell", said("second"), { before: "false" });
    await controller.triggers.remove(admin, { class: "/matrix/box", name: "other" });
    await mql("insert into /matrix/box name='b'");
    expect(await told("b")).toEqual(["second b"]);
  });

  test("disabled, is not run", async () => {
    const { mql, put, said, told } = await waiting();
    await put("other", said("other"), { before: "false" });
    await put("tell", said("second"), { before: "false", disable: "true" });
    await mql("insert into /matrix/box name='b'");
    expect(await told("b")).toEqual(["other b"]);
  });
});

test("a change waits for an earlier one of its object that a controller left which is gone", async () => {
  const first = await opened();
  await first.put("tell", SEQUENCE, { before: "false" });
  first.triggers.after = () => Promise.reject(new Error("it ends before"));
  await first.mql("insert into /matrix/box name='one', size=0");
  const second = new Controller("second");
  await second.mql(BOXES);
  await second.mql("insert into /matrix/box name='one', size=1");
  await second.until(
    () => second.mql("select id from /matrix/system/triggerevent"),
    (rows) => rows.length === 1,
  );
  expect(await second.mql("select text from /matrix/event")).toEqual([]);
  await second.put("tell", "odb.mql(\"insert into /matrix/event text='by a later text'\")", { before: "false" });
  await first.close();
  controllers.splice(controllers.indexOf(first), 1);
  const told = await second.until(
    () => second.mql("select text from /matrix/event order by text"),
    (rows) => rows.length === 2,
  );
  expect(told.map(({ text }) => text)).toEqual(["-1>0", "0>1"]);
});

test("only changes that a trigger wants told are told", async () => {
  const { mql, first, ...controller } = bound(await opened());
  await mql("insert into /matrix/box name='silent'");
  await controller.put("tell", "DATACHANGE = OBJECT.size == 1");
  await mql("insert into /matrix/box (name, size) values ('a', 1), ('b', 2)");
  await controller.put("tell", "DATACHANGE = true odb.mql('insert into /matrix/event text=?', ACTION)", {
    before: "false",
  });
  await mql("delete from /matrix/box where name='a'");
  await first.until(
    () => mql("select text from /matrix/event"),
    (rows) => rows.length === 1,
  );
  await first.until(
    () => Promise.resolve(first.told),
    (told) => told.length === 2,
  );
  expect(first.told.map(({ action, id }) => [action, id])).toEqual([
    ["INSERT", "box:a"],
    ["DELETE", "box:a"],
  ]);
});
