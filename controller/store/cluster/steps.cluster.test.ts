import { Client, type types } from "cassandra-driver";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../test/helpers/cluster/cluster.ts";
import { bytes, text, uniqueName } from "../contract/harness.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../objects.ts";
import { Cassandra } from "./cassandra/cassandra.ts";
import { keyspaceOf } from "./schema.ts";
import { OPEN_DAY } from "./entities/versions.ts";

type Execute = (this: Client, ...args: readonly unknown[]) => Promise<types.ResultSet>;

/** Changes that stop at a statement, as if the controller was killed there. */
describeCluster("a change that is cut off between two statements", () => {
  const prototype = Client.prototype as unknown as { execute: Execute };
  const { execute } = prototype;
  let engine: TestClusterEngine;
  let objects: ObjectStore;
  let cutOff: ((query: string, params: readonly unknown[]) => boolean) | undefined;
  let key: EntityKey;
  let to: EntityKey;

  beforeAll(async () => {
    prototype.execute = function (...args) {
      if (cutOff?.(String(args[0]), (args[1] ?? []) as readonly unknown[]))
        return Promise.reject(new AppError("unavailable", "It came to its end."));
      return execute.apply(this, [...args]);
    };
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    ({ objects } = await engine.tenant("matrix"));
  });
  afterAll(async () => {
    prototype.execute = execute;
    await engine?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    key = { cid: 1, id: uniqueName("from") };
    to = { cid: 1, id: uniqueName("to") };
    await objects.change([{ key, timeUs: 10, birth: true, version: bytes("born"), addEdges: [{ type: "first", to }] }]);
  });

  async function cutOffAt(
    statement: RegExp,
    change: EntityChange,
    isMeant: (params: readonly unknown[]) => boolean = () => true,
  ): Promise<void> {
    cutOff = (query, params) => statement.test(query) && isMeant(params);
    try {
      await expect(objects.change([change])).rejects.toMatchObject({ code: "unknown_outcome" });
    } finally {
      cutOff = undefined;
    }
  }

  async function seen(): Promise<object> {
    const [entity] = await objects.get([key]);
    const value = entity?.cells.get("1")?.value;
    const types = async (end: EntityKey, direction: "out" | "in"): Promise<string> =>
      (await objects.edges(end, direction, { limit: 10 })).items
        .map(({ type }) => type)
        .sort()
        .join();
    const { items } = await objects.history(key, {}, { limit: 10 });
    return {
      value: value === undefined ? undefined : text(value),
      versions: items.map((version) => text(version.value)).join(),
      out: await types(key, "out"),
      in: await types(to, "in"),
    };
  }

  const before = { value: undefined, versions: "born", out: "first", in: "first" };
  const after = { value: "new", versions: "second,born", out: "second", in: "second" };
  const second = (): EntityChange => ({
    key,
    timeUs: 20,
    cells: new Map([["1", bytes("new")]]),
    version: bytes("second"),
    addEdges: [{ type: "second", to }],
    dropEdges: [{ type: "first", to }],
  });

  test("before its entity it is not there, and is when it is repeated", async () => {
    await cutOffAt(/^UPDATE \S+\.present /, second());
    expect(await seen()).toEqual(before);
    await objects.change([second()]);
    expect(await seen()).toEqual(after);
  });

  test("before its entity it shows what it added as soon as a later one is made", async () => {
    await cutOffAt(/^UPDATE \S+\.present /, second());
    await objects.change([{ key, timeUs: 30, cells: new Map([["1", bytes("third")]]) }]);
    expect(await seen()).toEqual({ value: "third", versions: "second,born", out: "first,second", in: "first,second" });
    await objects.change([second()]);
    expect(await seen()).toEqual({ ...after, value: "third" });
  });

  test("before one of its edges it is not there with the others", async () => {
    await cutOffAt(/^UPDATE \S+\.edges_out /, second());
    expect(await seen()).toEqual(before);
    await objects.change([second()]);
    expect(await seen()).toEqual(after);
  });

  test.each(["edges_out", "edges_in"])(
    "before its removal from %s it is there, and whole when it is repeated",
    async (table) => {
      await cutOffAt(new RegExp(`^DELETE FROM \\S+\\.${table} `), second());
      expect(await seen()).toMatchObject({ value: "new", versions: "second,born" });
      await objects.change([second()]);
      expect(await seen()).toEqual(after);
    },
  );

  test("a removal that is cut off before its entity leaves all of it", async () => {
    const removal: EntityChange = { key, timeUs: 20, death: true, version: bytes("removed") };
    await cutOffAt(/^UPDATE \S+\.versions /, removal);
    expect(await seen()).toEqual(before);
    await objects.change([removal]);
    expect(await seen()).toEqual({ value: undefined, versions: "removed,born", out: "", in: "" });
  });

  describe("that ends the versions before it", () => {
    const END_WAIT_MS = 30_000;
    let cassandra: Cassandra;
    beforeAll(async () => {
      const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
      cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
    });
    afterAll(async () => cassandra?.close());

    const ending = (): EntityChange => ({ ...second(), endVersionsAtMs: Date.now() + 1_000 });
    /** By write time: true if the version expires. */
    const ends = async (): Promise<ReadonlyMap<number, boolean>> => {
      const keyspace = keyspaceOf(engine.prefix, "matrix");
      const query = `SELECT time, TTL(value) AS ttl FROM ${keyspace}.versions WHERE cid = ? AND id = ? AND day = 0`;
      const rows = await cassandra.read({ query, params: [key.cid, key.id] }, cassandra.deadline());
      return new Map(rows.map(({ time, ttl }) => [Number(time), ttl !== null]));
    };

    test("ends none when it is cut off before its entity", async () => {
      await cutOffAt(/^UPDATE \S+\.present /, ending());
      expect(await ends()).toEqual(
        new Map([
          [20, false],
          [10, false],
        ]),
      );
      expect(await seen()).toEqual(before);
    });

    test.each([
      [
        "the list of their days",
        /^UPDATE \S+\.version_days /,
        (params: readonly unknown[]) => Number(params[5]) < OPEN_DAY,
      ],
      ["their rows", /^UPDATE \S+\.versions /, (params: readonly unknown[]) => Number(params.at(-1)) === 10],
    ] as const)(
      "leaves them whole when it is cut off before %s, and the next change ends them",
      async (_, statement, isMeant) => {
        await cutOffAt(statement, ending(), isMeant);
        expect(await ends()).toEqual(
          new Map([
            [20, false],
            [10, false],
          ]),
        );
        expect(await seen()).toMatchObject({ value: "new", versions: "second,born" });
        await objects.change([{ key, timeUs: 30, version: bytes("third"), endVersionsAtMs: Date.now() + 1_000 }]);
        await expect
          .poll(async () => (await seen()) as unknown, { timeout: END_WAIT_MS })
          .toMatchObject({ versions: "third" });
      },
    );
  });
});
