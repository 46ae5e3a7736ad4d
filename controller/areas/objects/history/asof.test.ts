import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import {
  admin,
  HOST,
  engine,
  objects,
  nowMs,
  useHistory,
  moment,
  readAll,
  sizesAt,
  edgesAt,
} from "../../../../test/helpers/objects/history-world.ts";

useHistory();

const EDGES = ["contain", "link"];

describe("a class at an earlier time", () => {
  test("has what was changed and removed since, and not what was made since", async () => {
    await objects.unrestricted.insert(
      admin,
      HOST.path,
      ["a", "b", "c", "d"].map((name, size) => ({ name, size })),
    );
    const before = moment();
    await objects.unrestricted.update(admin, { id: "host:b" }, [{ column: "size", operation: "set", value: 10 }]);
    await objects.unrestricted.remove(admin, [{ id: "host:c" }, { id: "host:d" }]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "e", size: 4 }]);
    const between = moment();
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "c", size: 20 }]);
    expect(await sizesAt(before)).toEqual({ "host:a": 0, "host:b": 1, "host:c": 2, "host:d": 3 });
    expect(await sizesAt(between)).toEqual({ "host:a": 0, "host:b": 10, "host:e": 4 });
    expect(await sizesAt(moment())).toEqual({ "host:a": 0, "host:b": 10, "host:c": 20, "host:e": 4 });
    expect(await sizesAt(before - 3_600_000)).toEqual({});
    const [a, b] = await readAll({ asOfMs: between });
    expect([a?.ctimeMs, a?.vtimeMs, b?.ctimeMs, b?.vtimeMs]).toEqual([
      before - 500,
      before - 500,
      before - 500,
      between - 500,
    ]);
  });

  test("is read whole by conditions on values, as those of now would hide those of then, and by ids without a scan", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [
      { name: "a", size: 1 },
      { name: "b", size: 1 },
    ]);
    const before = moment();
    await objects.unrestricted.update(admin, { id: "host:b" }, [{ column: "size", operation: "set", value: 2 }]);
    await objects.unrestricted.remove(admin, [{ id: "host:a" }]);
    const where = [{ kind: "equals" as const, column: "size", values: [1] }];
    expect(await sizesAt(before, { where })).toEqual({ "host:a": 1, "host:b": 1 });
    expect(await sizesAt(before, { ids: ["host:a", "host:none"] })).toEqual({ "host:a": 1 });
    expect(await sizesAt(moment(), { ids: ["host:a", "host:b"] })).toEqual({ "host:b": 2 });
    const plan = await objects.unrestricted.explain(admin, {
      class: HOST.path,
      subtree: false,
      where,
      asOfMs: Date.UTC(2026, 0, 2),
    });
    expect(plan).toEqual({
      steps: [
        `scan of class ${HOST.path}, as of 2026-01-02T00:00:00.000Z`,
        "graves of objects removed since, as of 2026-01-02T00:00:00.000Z",
      ],
      used: [],
    });
  });

  test("is refused by name where one class of a tree, or that of an id, keeps no versions", async () => {
    await objects.createClass(admin, { path: `${HOST.path}/virtual`, columns: [], options: { version: true } });
    await objects.unrestricted.insert(admin, `${HOST.path}/virtual`, [{ name: "v", size: 7 }]);
    expect(await sizesAt(moment(), { subtree: true })).toEqual({ "virtual:v": 7 });
    await objects.createClass(admin, { path: `${HOST.path}/old`, columns: [], options: { version: false } });
    const refusal = { code: "invalid", details: { class: `${HOST.path}/old` } };
    await expect(sizesAt(moment(), { subtree: true })).rejects.toMatchObject(refusal);
    await expect(sizesAt(moment(), { subtree: true, ids: ["old:1"] })).rejects.toMatchObject(refusal);
    expect(await sizesAt(moment(), { subtree: true, ids: ["virtual:v"] })).toEqual({ "virtual:v": 7 });
    await objects.createClass(admin, { path: "/matrix/log", kind: "record", columns: [], options: { version: true } });
    await expect(readAll({ class: "/matrix/log", asOfMs: nowMs })).rejects.toMatchObject({
      code: "invalid",
      details: { class: "/matrix/log" },
    });
  });

  test("that began to keep versions later knows of earlier times only what has not changed since", async () => {
    await objects.createClass(admin, { ...HOST, path: "/matrix/cmdb/disk", options: {} });
    const request = { class: "/matrix/cmdb/disk" };
    await objects.unrestricted.insert(admin, request.class, [
      { name: "a", size: 1 },
      { name: "b", size: 1 },
    ]);
    const before = moment();
    await objects.alterClass(admin, request.class, { kind: "set options", options: { version: true } });
    await objects.unrestricted.update(admin, { id: "disk:b" }, [{ column: "size", operation: "set", value: 2 }]);
    expect(await sizesAt(before, request)).toEqual({ "disk:a": 1 });
    expect(await sizesAt(moment(), request)).toEqual({ "disk:a": 1, "disk:b": 2 });
  });

  test("has no values of columns that were dropped since", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1, tasks: ["x", "y"] }]);
    const before = moment();
    await objects.unrestricted.update(admin, { id: "host:a" }, [{ column: "tasks", operation: "take", value: ["x"] }]);
    expect((await readAll({ asOfMs: before }))[0]?.values).toEqual({ name: "a", size: 1, tasks: ["x", "y"] });
    await objects.alterClass(admin, HOST.path, { kind: "drop column", name: "tasks" });
    expect((await readAll({ asOfMs: before }))[0]?.values).toEqual({ name: "a", size: 1 });
  });
});

describe("edges at an earlier time", () => {
  test("are those that were dropped since or whose source was removed, seen from both ends, and none that were made since", async () => {
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "t" }, { name: "u" }]);
    await objects.unrestricted.insert(admin, HOST.path, [
      { name: "a", contain: ["host:t", "host:u"] },
      { name: "b", contain: "host:t" },
    ]);
    const before = moment();
    await objects.unrestricted.update(admin, { id: "host:a" }, [
      { column: "contain", operation: "set", value: "host:u" },
    ]);
    await objects.unrestricted.remove(admin, [{ id: "host:b" }]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "c", contain: "host:t" }]);
    const all = ["host:a", "host:b", "host:c", "host:t", "host:u"];
    const then = ["host:a contain host:t", "host:a contain host:u", "host:b contain host:t"];
    const now = ["host:a contain host:u", "host:c contain host:t"];
    expect([await edgesAt("out", all, before), await edgesAt("in", all, before)]).toEqual([then, then]);
    expect([await edgesAt("out", all, moment()), await edgesAt("in", all, moment())]).toEqual([now, now]);
    await objects.createClass(admin, {
      path: "/matrix/cmdb/rack",
      columns: [{ name: "name", type: "varchar" }],
      keys: ["name"],
    });
    await objects.unrestricted.insert(admin, "/matrix/cmdb/rack", [{ name: "r", contain: "host:t" }]);
    await objects.unrestricted.update(admin, { id: "host:u" }, [
      { column: "contain", operation: "set", value: "rack:r" },
    ]);
    expect([await edgesAt("out", all, moment()), await edgesAt("in", all, moment())]).toEqual([now, now]);
    await expect(edgesAt("out", ["rack:r"], before)).rejects.toMatchObject({
      code: "invalid",
      details: { class: "/matrix/cmdb/rack" },
    });
  });

  test("are there until their target is removed, and not when it is made again, whether it has versions still or not", async () => {
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "t" }, { name: "u" }]);
    await objects.unrestricted.insert(admin, HOST.path, [
      { name: "a", contain: ["host:t", "host:u"] },
      { name: "b", contain: "host:t" },
    ]);
    const moments = [moment()];
    await objects.unrestricted.remove(admin, [{ id: "host:t" }]);
    moments.push(moment());
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "t" }]);
    moments.push(moment());
    await objects.unrestricted.update(admin, { id: "host:a" }, [
      { column: "contain", operation: "add", value: "host:t" },
    ]);
    moments.push(moment());
    const [both, one, again] = [
      ["host:a contain host:t", "host:a contain host:u", "host:b contain host:t"],
      ["host:a contain host:u"],
      ["host:a contain host:t", "host:a contain host:u"],
    ];
    const seen = async (direction: "in" | "out") =>
      Promise.all(moments.map((atMs) => edgesAt(direction, ["host:a", "host:b", "host:t", "host:u"], atMs)));
    expect([await seen("out"), await seen("in")]).toEqual([
      [both, one, one, again],
      [both, one, one, again],
    ]);
    await objects.unrestricted.remove(admin, [{ id: "host:t" }], { withVersions: true });
    moments.push(moment());
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "t" }]);
    moments.push(moment());
    expect([await seen("out"), await seen("in")]).toEqual([
      [one, one, one, one, one, one],
      [one, one, one, one, one, one],
    ]);
  });

  test("are forgotten with the versions of their source", async () => {
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "t" }]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", contain: "host:t" }]);
    const before = moment();
    await objects.unrestricted.remove(admin, [{ id: "host:a" }], { withVersions: true });
    expect(await edgesAt("in", ["host:t"], before)).toEqual([]);
    const { items } = await (await engine.tenant("matrix")).objects.scan({ limit: 1_000 });
    expect(items.filter(({ key }) => key.cid === 0)).toEqual([]);
  });
});

/** The rows and edges of five objects. */
async function everything(asOf: { readonly asOfMs?: number }): Promise<unknown> {
  const ids = NAMES.map((name) => `host:${name}`);
  const rows = (await readAll(asOf)).map(({ id, values, vtimeMs, ctimeMs }) => ({ id, values, vtimeMs, ctimeMs }));
  return [rows, await edgesAt("out", ids, asOf.asOfMs), await edgesAt("in", ids, asOf.asOfMs)];
}

const NAMES = ["a", "b", "c", "d", "e"];
const STEPS = onCluster ? 8 : 30;

/** 13: finds something as soon as nothing is kept of when a removal took an edge away. */
test.each(onCluster ? [1] : [1, 13])(
  "whatever is done, as of each moment there is what there was at that moment (seed %i)",
  async (seed) => {
    const { next } = seededRandom(seed);
    const pick = <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)] as T;
    const target = () => `host:${pick(NAMES)}`;
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.createEdgeType(admin, { name: "link", remedy: "" });
    const steps = [
      () =>
        objects.unrestricted.insert(admin, HOST.path, [
          {
            name: pick(NAMES),
            size: Math.floor(next() * 9),
            ...(next() < 0.5 ? { [pick(EDGES)]: [target(), target()] } : {}),
          },
        ]),
      () =>
        objects.unrestricted.update(admin, { id: target() }, [
          {
            column: pick(EDGES),
            operation: pick(["set", "add", "take"] as const),
            value: pick(["", target(), [target(), target()]]),
          },
        ]),
      () =>
        objects.unrestricted.update(admin, { id: target() }, [
          { column: "tasks", operation: pick(["set", "add", "take"] as const), value: [pick(NAMES)] },
        ]),
      () => objects.unrestricted.remove(admin, [{ id: target() }], { withVersions: false }),
    ];
    const told: { readonly atMs: number; readonly was: unknown }[] = [];
    for (let step = 0; step < STEPS; step++) {
      await pick(steps)();
      told.push({ atMs: moment(), was: await everything({}) });
    }
    for (const { atMs, was } of told) expect(await everything({ asOfMs: atMs })).toEqual(was);
  },
);
