import { afterAll, beforeAll, expect, test } from "vitest";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { mapLimited } from "../../../../common/concurrency.ts";
import { all } from "../../contract/harness.ts";
import type { TenantStore } from "../../engine.ts";
import type { EntityKey } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import type { DamagedRow } from "../../scrub.ts";
import { EdgeScrub } from "./edge-scrub.ts";
import { edgeRow } from "../edges/places.ts";
import { RowCheck } from "./row-check.ts";
import { keyspaceOf } from "../schema.ts";

const CID = 7;
const nowUs = (): number => Date.now() * 1_000;
/** A limit after which no row is too young. */
const ALL = { limit: 100, beforeUs: 4e15 };

/** Cassandra aborts a read that passes 100,000. */
const REMOVED = 240_000;
const REMOVED_PER_BATCH = 1_000;

describeCluster("a scrub of the cluster's tables", () => {
  let engine: TestClusterEngine;
  let store: TenantStore;
  let cassandra: Cassandra;
  let keyspace: string;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    store = await engine.tenant("matrix");
    keyspace = keyspaceOf(engine.prefix, "matrix");
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  });
  afterAll(async () => {
    await cassandra?.close();
    await engine?.[Symbol.asyncDispose]();
  });

  const key = (id: string): EntityKey => ({ cid: CID, id });
  const linked = (from: string, to: string) =>
    store.objects.change([
      { key: key(from), timeUs: nowUs(), birth: true, addEdges: [{ type: "uses", to: key(to) }] },
      { key: key(to), timeUs: nowUs(), birth: true },
    ]);
  const sourcesOf = async (to: string): Promise<readonly string[]> =>
    (await store.objects.edges(key(to), "in", { limit: 100 })).items.map(({ from }) => from.id).sort();
  const run = (query: string): Promise<void> => cassandra.write([{ query, params: [] }], cassandra.deadline());
  const countIn = async (table: string, column: string, id: string): Promise<number> => {
    const query = `SELECT type FROM ${keyspace}.${table} WHERE ${column} = '${id}' ALLOW FILTERING`;
    return (await cassandra.read({ query, params: [] }, cassandra.deadline())).length;
  };

  test("adds an edge at its target where it was lost, and tells it", async () => {
    await linked("a", "hub");
    await run(`TRUNCATE ${keyspace}.edges_in`);
    expect(await sourcesOf("hub")).toEqual([]);
    const checked = await store.scrub.edges("source", ALL);
    expect(checked).toMatchObject({ missing: 1, superfluous: 0, examples: ["missing: edge uses from 7:a to 7:hub"] });
    expect(await sourcesOf("hub")).toEqual(["a"]);
    expect(await store.scrub.edges("source", ALL)).toMatchObject({ missing: 0 });
  });

  test("removes at a target what no source has, unless it is young", async () => {
    await linked("b", "core");
    await run(`TRUNCATE ${keyspace}.edges_out`);
    expect(await store.scrub.edges("target", { ...ALL, beforeUs: nowUs() - 3_600_000_000 })).toMatchObject({
      superfluous: 0,
    });
    expect(await countIn("edges_in", "to_id", "core")).toBe(1);
    expect((await store.scrub.edges("target", ALL)).superfluous).toBeGreaterThan(0);
    expect(await countIn("edges_in", "to_id", "core")).toBe(0);
    expect(await store.scrub.edges("target", ALL)).toMatchObject({ superfluous: 0 });
  });

  test("adds at its target an edge that came back at its source after a scrub had removed it", async () => {
    await linked("f", "restored");
    const query = `SELECT value, WRITETIME(value) AS time FROM ${keyspace}.edges_out WHERE id = 'f' ALLOW FILTERING`;
    const [lost] = await cassandra.read({ query, params: [] }, cassandra.deadline());
    await run(`TRUNCATE ${keyspace}.edges_out`);
    await store.scrub.edges("target", ALL);
    expect(await countIn("edges_in", "to_id", "restored")).toBe(0);
    const row = edgeRow("out", { from: key("f"), edge: { type: "uses", to: key("restored") } }, 0);
    const restore = `UPDATE ${keyspace}.edges_out USING TIMESTAMP ? SET value = ? WHERE ${row.where}`;
    const params = [BigInt(String(lost?.time)), lost?.value as Uint8Array, ...row.params];
    await cassandra.write([{ query: restore, params }], cassandra.deadline());
    expect(await store.scrub.edges("source", ALL)).toMatchObject({ missing: 1 });
    expect(await sourcesOf("restored")).toEqual(["f"]);
  });

  test("leaves at a target what is written again while its removal is under way", async () => {
    await linked("g", "again");
    await run(`TRUNCATE ${keyspace}.edges_out`);
    const write: Cassandra["write"] = async (...given) => {
      await linked("g", "again");
      await cassandra.write(...given);
    };
    const rewriting = new Proxy(cassandra, {
      get(target, name: keyof Cassandra) {
        if (name === "write") return write;
        const of: unknown = target[name];
        return typeof of === "function" ? (of.bind(target) as unknown) : of;
      },
    });
    const scrub = new EdgeScrub({ cassandra: rewriting, keyspace });
    expect((await scrub.fromTargets(ALL)).superfluous).toBeGreaterThan(0);
    expect(await sourcesOf("again")).toEqual(["g"]);
  });

  test("removes the edges that a removal left, at both ends, and none of the life after it", async () => {
    await linked("c", "rack");
    const query = `UPDATE ${keyspace}.present USING TIMESTAMP ? SET died = ? WHERE cid = ? AND id = ?`;
    const diedUs = BigInt(nowUs());
    await cassandra.write([{ query, params: [diedUs, diedUs, CID, "c"] }], cassandra.deadline());
    await store.objects.change([
      { key: key("c"), timeUs: nowUs() + 1_000, birth: true, addEdges: [{ type: "feeds", to: key("rack") }] },
    ]);
    expect(await store.scrub.edges("source", ALL)).toMatchObject({ superfluous: 1, missing: 0 });
    expect([await countIn("edges_out", "id", "c"), await countIn("edges_in", "to_id", "rack")]).toEqual([1, 1]);
    expect(await sourcesOf("rack")).toEqual(["c"]);
  });

  /** A complete round of the row check, on a node that aborts each read of `present` with that token in its range. */
  async function everyRow(unreadable?: bigint) {
    const tryPage: Cassandra["tryPage"] = (statement, ...given) => {
      const [after, to] = statement.params as [bigint, bigint];
      const isHit = unreadable !== undefined && after < unreadable && unreadable <= to;
      if (isHit && statement.query.includes(".present ")) return Promise.resolve(undefined);
      return cassandra.tryPage(statement, ...given);
    };
    const half = new Proxy(cassandra, {
      get(target, name: keyof Cassandra) {
        if (name === "tryPage") return tryPage;
        const of: unknown = target[name];
        return typeof of === "function" ? (of.bind(target) as unknown) : of;
      },
    });
    const check = new RowCheck({ cassandra: half, keyspace });
    const [damaged, looked]: [DamagedRow[], number[]] = [[], []];
    let cursor: string | undefined;
    do {
      const page = await check.rows(cursor === undefined ? {} : { cursor });
      damaged.push(...page.damaged);
      looked.push(page.looked);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return { damaged, looked: looked.reduce((sum, one) => sum + one, 0) };
  }

  test("reads every row there is, and goes past one that Cassandra cannot read, which it tells", async () => {
    await linked("readable", "unreadable");
    await store.objects.append([{ cid: CID, id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", value: Buffer.from("r"), terms: ["a"] }]);
    const sound = await everyRow();
    expect(sound.damaged).toEqual([]);
    const query = `SELECT token(cid, id) AS place FROM ${keyspace}.present WHERE cid = ${CID} AND id = 'unreadable'`;
    const [row] = await cassandra.read({ query, params: [] }, cassandra.deadline());
    const token = String(row?.place);
    const { damaged, looked } = await everyRow(BigInt(token));
    expect(damaged).toMatchObject([{ table: "present", key: `token ${token}` }]);
    expect(looked).toBe(sound.looked - 1);
    expect((await store.scrub.rows({})).damaged).toEqual([]);
  });

  test("comes through tables in which more was removed than a node of Cassandra passes in one read", async () => {
    await linked("living", "among");
    const key = { cid: CID, id: "living" };
    await store.objects.change([{ key, timeUs: nowUs(), addTerms: ["a1=living"] }]);
    const row = "cid = ? AND id = ?";
    const tables = [
      { where: "postings", row: `hash = ? AND ${row}`, of: (n: number) => [n, CID, "gone"] },
      { where: "edges_out", row: "type = ? AND to_cid = ? AND to_id = ?", of: (n: number) => ["gone", CID, String(n)] },
    ];
    for (const { where, row: rest, of } of tables)
      await mapLimited(
        Array.from({ length: REMOVED / REMOVED_PER_BATCH }, (_, at) => at),
        16,
        (at) => {
          const place = where === "postings" ? "term = ? AND bucket = 0" : "cid = 7 AND id = ? AND bucket = 0";
          const query = `DELETE FROM ${keyspace}.${where} WHERE ${place} AND ${rest}`;
          const batch = Array.from({ length: REMOVED_PER_BATCH }, (_, n) => ({
            query,
            params: [`gone ${at}`, ...of(n)],
          }));
          return cassandra.write(batch, cassandra.deadline());
        },
      );
    const terms: string[] = [];
    for (const { term } of await all(200, (page) => store.scrub.postings(page))) terms.push(term);
    expect(terms).toContain("a1=living");
    let looked = 0;
    let cursor: string | undefined;
    do {
      const page = await store.scrub.edges("source", {
        limit: 200,
        beforeUs: nowUs(),
        ...(cursor !== undefined && { cursor }),
      });
      looked += page.looked;
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(looked).toBeGreaterThan(0);
  });

  test("tells a content whose chunk is lost or changed, and no other", async () => {
    const [sound, lost, changed] = await Promise.all(
      ["sound", "lost", "changed"].map((text) => store.blobs.put([Buffer.from(text)], "test")),
    );
    const uploads = async (digest = ""): Promise<string> => {
      const query = `SELECT name FROM ${keyspace}.contents WHERE content = ? AND kind = 'upload'`;
      const [row] = await cassandra.read({ query, params: [`b/${digest}`] }, cassandra.deadline());
      return `u/${String(row?.name)}`;
    };
    await run(`DELETE FROM ${keyspace}.chunks WHERE content = '${await uploads(lost?.digest)}' AND part = 0`);
    await run(
      `UPDATE ${keyspace}.chunks SET bytes = 0x00 WHERE content = '${await uploads(changed?.digest)}' AND part = 0 AND position = 0`,
    );
    const { items } = await store.scrub.contents({ limit: 100 });
    expect(items.map(({ digest }) => digest).sort()).toEqual([sound, lost, changed].map((info) => info?.digest).sort());
    const states = new Map<string | undefined, string>();
    for (const { digest } of items) states.set(digest, await store.scrub.verify(digest, () => Promise.resolve()));
    expect([sound, lost, changed].map((info) => states.get(info?.digest))).toEqual(["sound", "damaged", "damaged"]);
  });
});
