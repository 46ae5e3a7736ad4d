import { beforeEach, describe, expect, test } from "vitest";
import { OBJECT_PAGE_EXAMINED_MAX, RANGE_SLOTS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import {
  admin,
  BOX,
  idsOf,
  objects,
  openObjects,
  other,
  readAll,
  valuesOf,
  viewer,
} from "../../../test/helpers/objects/object-world.ts";
import type { ClassSpec, ObjectRow } from "./index.ts";

openObjects();

test("objects that are read by their ids come in pages of a few, in the order of the ids", async () => {
  await objects.createClass(admin, BOX);
  const names = Array.from({ length: 2 * OBJECT_PAGE_EXAMINED_MAX + 1 }, (_, at) => `h${at}`);
  await objects.unrestricted.insert(
    admin,
    BOX.path,
    names.map((host) => ({ host })),
  );
  const ids = names.map((name) => `box:${name}`);
  const pages: (readonly string[])[] = [];
  for await (const page of objects.unrestricted.read(admin, { class: BOX.path, subtree: false, ids }))
    pages.push(page.map(({ id }) => id));
  expect(pages.flat()).toEqual(ids);
  expect(pages.map(({ length }) => length)).toEqual([OBJECT_PAGE_EXAMINED_MAX, OBJECT_PAGE_EXAMINED_MAX, 1]);
});

describe("rights", () => {
  test("a viewer reads, and neither writes nor defines", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    const rows: ObjectRow[] = [];
    for await (const page of objects.unrestricted.read(viewer, { class: BOX.path, subtree: false })) rows.push(...page);
    expect(rows).toHaveLength(1);
    await expect(objects.unrestricted.insert(viewer, BOX.path, [{ host: "h2" }])).rejects.toMatchObject({
      code: "denied",
    });
    await expect(objects.unrestricted.update(viewer, { id: "box:h1" }, [])).rejects.toMatchObject({ code: "denied" });
    await expect(objects.unrestricted.remove(viewer, [{ id: "box:h1" }])).rejects.toMatchObject({ code: "denied" });
    await expect(objects.createClass(viewer, { path: "/matrix/v", columns: [] })).rejects.toMatchObject({
      code: "denied",
    });
    await expect(objects.dropClass(viewer, BOX.path)).rejects.toMatchObject({ code: "denied" });
  });

  test("a class the principal may not read is left out of its tree, and refused by name", async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, {
      path: "/matrix/ent/safe",
      columns: [{ name: "host", type: "varchar" }],
      keys: ["host"],
    });
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    await objects.unrestricted.insert(admin, "/matrix/ent/safe", [{ host: "s1" }]);
    const partly = { ...viewer, data: [...viewer.data, { class: "/matrix/ent/safe", access: "none" as const }] };
    const ids: string[] = [];
    for await (const page of objects.unrestricted.read(partly, { class: "/matrix/ent", subtree: true }))
      ids.push(...page.map((row) => row.id));
    expect(ids).toEqual(["box:h1"]);
    expect(await objects.unrestricted.get(partly, [{ id: "safe:s1" }])).toEqual([undefined]);
    await expect(
      objects.unrestricted.explain(partly, { class: "/matrix/ent/safe", subtree: false }),
    ).rejects.toMatchObject({
      code: "denied",
    });
  });

  test("tenants see nothing of each other", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    expect((await objects.catalog(other)).get(BOX.path)).toBeUndefined();
    expect(await objects.unrestricted.get(other, [{ id: "box:h1" }])).toEqual([undefined]);
    await objects.createClass(other, { ...BOX, path: "/second/ent/box" });
    await objects.unrestricted.insert(other, "/second/ent/box", [{ host: "h1", note: "theirs" }]);
    expect(await valuesOf("box:h1")).toEqual({ host: "h1" });
  });
});

describe("reading", () => {
  beforeEach(async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, {
      path: "/matrix/ent/box/big",
      columns: [{ name: "weight", type: "double" }],
      indexes: ["weight"],
    });
    await objects.createClass(admin, {
      path: "/matrix/ent/rack",
      columns: [{ name: "size", type: "int" }],
      indexes: ["size"],
    });
    await objects.unrestricted.insert(
      admin,
      BOX.path,
      Array.from({ length: 30 }, (_, at) => ({ host: `h${at}`, size: at, ports: [at, at + 1] })),
    );
    await objects.unrestricted.insert(admin, "/matrix/ent/box/big", [
      { host: "b1", size: 5, weight: 1.5 },
      { host: "b2", size: 100, weight: 2.5 },
    ]);
    await objects.unrestricted.insert(admin, "/matrix/ent/rack", [{ id: "r1", size: 5 }, { id: "r2" }]);
  });

  test("a class alone, with its subclasses, and the whole tenant", async () => {
    expect(await readAll({ class: BOX.path })).toHaveLength(30);
    expect(await readAll({ class: BOX.path, subtree: true })).toHaveLength(32);
    expect(await readAll({ class: "/matrix", subtree: true })).toHaveLength(34);
    expect(await readAll({ class: "/", subtree: true })).toHaveLength(34);
    expect(await readAll({ class: "/matrix/ent" })).toEqual([]);
    await expect(readAll({ class: "/matrix/none" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("equality by index over classes whose columns of one name are different ones", async () => {
    const where = [{ kind: "equals" as const, column: "size", values: ["5"] }];
    expect(await idsOf({ class: "/matrix/ent", subtree: true, where })).toEqual(["big:b1", "box:h5", "rack:r1"]);
    expect(await idsOf({ class: BOX.path, where })).toEqual(["box:h5"]);
    const plan = await objects.unrestricted.explain(admin, { class: "/matrix/ent", subtree: true, where });
    expect(plan).toEqual({
      steps: ["index size = 5 in 2 classes of /matrix/ent", "index size = 5 in class /matrix/ent/rack"],
      used: where,
    });
  });

  test("an object that bears several of the values is answered once", async () => {
    const where = [{ kind: "equals" as const, column: "ports", values: [4, 5, 6] }];
    expect(await idsOf({ class: BOX.path, where })).toEqual(["box:h3", "box:h4", "box:h5", "box:h6"]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "ports", values: [] }] })).toEqual([]);
  });

  test("ranges of numbers, and of the time of the last write", async () => {
    const where = [{ kind: "range" as const, column: "size", from: 28, to: 100 }];
    expect(await idsOf({ class: BOX.path, subtree: true, where })).toEqual(["big:b2", "box:h28", "box:h29"]);
    expect(
      await idsOf({ class: BOX.path, subtree: true, where: [...where, { kind: "range", column: "weight", from: 0 }] }),
    ).toEqual(["big:b2"]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "range", column: "vtime", to: 1_000 }] })).toEqual([]);
    expect(await readAll({ class: BOX.path, where: [{ kind: "range", column: "vtime", from: 1_000 }] })).toHaveLength(
      30,
    );
  });

  test("sixteen indexes of numbers and times know ranges; that of a further column answers equality, and its ranges are a scan that is told", async () => {
    const path = "/matrix/nums";
    const names = Array.from({ length: RANGE_SLOTS + 1 }, (_, at) => `n${at}`);
    const types = ["int", "timestamp", "double", "bigint"] as const;
    await objects.createClass(admin, {
      path,
      columns: names.map((name, at) => ({ name, type: types[at % types.length]! })),
      indexes: names,
    });
    const rowOf = (value: number): Row => Object.fromEntries(names.map((name, at) => [name, value + at]));
    const [low, high, changed] = await objects.unrestricted.insert(admin, path, [rowOf(100), rowOf(200), rowOf(300)]);
    for (const [at, column] of names.entries())
      await objects.unrestricted.update(admin, { id: changed! }, [{ column, operation: "set", value: 120 + at }]);
    const beyond = names[RANGE_SLOTS]!;
    for (const [at, column] of names.entries()) {
      const where = [{ kind: "range" as const, column, from: 110 + at, to: 250 + at }];
      const { steps, used } = await objects.unrestricted.explain(admin, { class: path, subtree: false, where });
      expect(steps.join()).toContain(
        column === beyond
          ? `scan of class ${path} (each is asked for range ${column} ${110 + at}..${250 + at}: the 16 range slots are taken)`
          : `range ${column} ${110 + at}..${250 + at} in class ${path}`,
      );
      expect(used).toEqual(column === beyond ? [] : where);
      const found = await idsOf({ class: path, where });
      expect(found).toEqual(expect.arrayContaining([high, changed]));
      expect(found.includes(low!)).toBe(column === beyond);
      expect(
        await idsOf({ class: path, where: [{ kind: "equals", column, values: [100 + at] }] }),
        `equality of ${column}`,
      ).toEqual([low]);
    }
  });

  test("ids visit every class with that label, narrowed by the class asked for", async () => {
    await objects.createClass(admin, { path: "/matrix/other/box", columns: [], options: { keyMode: "manu" } });
    await objects.unrestricted.insert(admin, "/matrix/other/box", [{ id: "h1" }]);
    expect(
      (await readAll({ class: "/matrix", subtree: true, ids: ["box:h1", "rack:r1", "box:none"] }))
        .map((row) => row.class.path)
        .sort(),
    ).toEqual(["/matrix/ent/box", "/matrix/ent/rack", "/matrix/other/box"]);
    expect(await readAll({ class: "/matrix/other", subtree: true, ids: ["box:h1"] })).toHaveLength(1);
    const [narrowed] = await objects.unrestricted.get(admin, [{ id: "box:h1", class: "/matrix/other/box" }]);
    expect(narrowed?.class.path).toBe("/matrix/other/box");
  });

  test("words of the full text, in scripts with and without spaces", async () => {
    await objects.createClass(admin, {
      path: "/matrix/doc",
      columns: [{ name: "body", type: "text" }],
      options: { autosearch: true },
    });
    const long = Array.from({ length: 1_500 }, (_, at) => `w${at}`).join(" ");
    const [a, b, c] = await objects.unrestricted.insert(admin, "/matrix/doc", [
      { body: "Disk FULL on db1" },
      { body: "磁盘空间不足" },
      { body: `${long} disk` },
    ]);
    const words = (...given: string[]) => idsOf({ class: "/matrix/doc", where: [{ kind: "words", words: given }] });
    // The third has more words than the index keeps: it may be answered always, and is answered once.
    expect(await words("disk", "full")).toEqual([a, c].sort());
    expect(await words("空间")).toEqual([b, c].sort());
    expect(await words("w3")).toEqual([c]);
    await objects.unrestricted.update(admin, { id: a ?? "" }, [
      { column: "body", operation: "set", value: "all clear" },
    ]);
    expect(await words("full")).toEqual([c]);
    expect(await words("clear")).toEqual([a, c].sort());
  });

  test("a read that is stopped ends with an error", async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(readAll({ class: BOX.path, signal: controller.signal })).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("records", () => {
  const log: ClassSpec = {
    path: "/matrix/log",
    kind: "record",
    columns: [
      { name: "host", type: "varchar" },
      { name: "line", type: "text" },
      { name: "code", type: "int" },
    ],
    indexes: ["host"],
  };

  test("a replay writes the same rows, newest first over the classes of a tree", async () => {
    await objects.createClass(admin, log);
    await objects.createClass(admin, { path: "/matrix/log/web", kind: "record", columns: [] });
    const start = realClock.nowMs() - 60_000;
    const batch = (name: string) =>
      Array.from({ length: 25 }, (_, at) => ({
        values: { host: name, code: at },
        timeMs: start + at * 10,
        identity: `${name}/${at}`,
      }));
    const first = await objects.unrestricted.ingest(admin, log.path, batch("a"));
    await objects.unrestricted.ingest(admin, "/matrix/log/web", batch("b"));
    expect(await objects.unrestricted.ingest(admin, log.path, batch("a"))).toEqual(first);
    const rows = await readAll({ class: log.path, subtree: true, expected: 7 });
    expect(rows).toHaveLength(50);
    const times = rows.map((row) => row.vtimeMs);
    expect(times).toEqual([...times].sort((x, y) => y - x));
    expect(new Set(rows.slice(0, 2).map((row) => row.values.host))).toEqual(new Set(["a", "b"]));
    const where = [
      { kind: "equals" as const, column: "host", values: ["a"] },
      { kind: "range" as const, column: "vtime", from: start + 200, to: start + 220 },
    ];
    expect((await readAll({ class: log.path, subtree: true, where })).map((row) => row.values.code)).toEqual([
      22, 21, 20,
    ]);
  });

  test("a record is read by id, removed, and not updated; its class is dropped when empty", async () => {
    await objects.createClass(admin, log);
    const [id = ""] = await objects.unrestricted.insert(admin, log.path, [{ host: "a", line: "x" }]);
    expect(id).toMatch(/^log:[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await valuesOf(id)).toEqual({ host: "a", line: "x" });
    expect((await readAll({ class: "/matrix", subtree: true, ids: [id] })).map((row) => row.id)).toEqual([id]);
    await expect(objects.unrestricted.update(admin, { id }, [])).rejects.toMatchObject({ code: "unsupported" });
    await expect(objects.dropClass(admin, log.path)).rejects.toMatchObject({ code: "conflict" });
    expect(await objects.unrestricted.remove(admin, [{ id }, { id }])).toBe(1);
    await objects.dropClass(admin, log.path);
    await expect(objects.createClass(admin, { ...log, keys: ["host"] })).rejects.toMatchObject({ code: "invalid" });
  });

  test("entities of a source are upserts by their keys, or by the source's identity", async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, { path: "/matrix/free", columns: [{ name: "x", type: "int" }] });
    const record = { values: { host: "h1", size: 3 }, timeMs: realClock.nowMs(), identity: "s/1/0" };
    expect(await objects.unrestricted.ingest(admin, BOX.path, [record])).toEqual(["box:h1"]);
    expect(await objects.unrestricted.ingest(admin, BOX.path, [record])).toEqual(["box:h1"]);
    const free = { ...record, values: { x: 1 } };
    expect(await objects.unrestricted.ingest(admin, "/matrix/free", [free])).toEqual(
      await objects.unrestricted.ingest(admin, "/matrix/free", [free]),
    );
    expect(await readAll({ class: "/matrix", subtree: true })).toHaveLength(2);
  });
});
