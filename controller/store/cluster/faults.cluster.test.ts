import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isAppError } from "../../../common/errors.ts";
import { CLUSTER_REQUESTS_IN_FLIGHT_MAX, STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { etcdIsUp, singleEtcd, startEtcd } from "../../../deploy/local/etcd.ts";
import { defaultCacheDir, installEtcd } from "../../../deploy/local/install.ts";
import { stopDaemon } from "../../../deploy/local/process.ts";
import { addressOf, openProxy, type LinkProxy } from "../../../test/helpers/cluster/proxy.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../test/helpers/cluster/cluster.ts";
import { ARE_TIMES_BOUND, expectWithin } from "../../../test/helpers/time/times.ts";
import type { TenantStore } from "../engine.ts";
import { Etcd } from "./etcd/etcd.ts";
import { EtcdKvStore } from "./etcd/kv.ts";

/** Allowance for a slow machine, in addition to a promised deadline. */
const SLACK_MS = 3_000;

describeCluster("cluster engine behind a link that breaks", () => {
  let toCassandra: LinkProxy;
  let toEtcd: LinkProxy;
  let engine: TestClusterEngine;
  let store: TenantStore;

  beforeAll(async () => {
    const settings = clusterSettings();
    toCassandra = await openProxy(addressOf(settings.cassandraContactPoints[0] ?? ""));
    toEtcd = await openProxy(addressOf(settings.etcdEndpoints[0] ?? ""));
    engine = await openTestClusterEngine({
      tenants: ["matrix"],
      settings: {
        ...settings,
        etcdEndpoints: [`http://127.0.0.1:${toEtcd.port}`],
        cassandraContactPoints: [`127.0.0.1:${toCassandra.port}`],
      },
    });
    store = await engine.tenant("matrix");
  });
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await toCassandra?.[Symbol.asyncDispose]();
    await toEtcd?.[Symbol.asyncDispose]();
  });

  const change = (id: string) => ({
    key: { cid: 1, id },
    timeUs: 1_000,
    birth: true as const,
    version: Uint8Array.of(1),
    addTerms: ["c1"],
  });

  test("a write whose answer is lost has an unknown outcome by its deadline, and the same write again settles it", async () => {
    await store.objects.change([change("statements are prepared now")]);
    toCassandra.set("answers_lost");
    const began = performance.now();
    const lost = store.objects.change([change("a")]);
    // More calls than may run at once: they wait, also end in time, and are no burden afterwards.
    const crowd = Array.from({ length: CLUSTER_REQUESTS_IN_FLIGHT_MAX + 20 }, (_, at) =>
      store.objects.change([change(`crowd ${at}`)]),
    );
    const [outcome, ...outcomes] = await Promise.allSettled([lost, ...crowd]);
    expectWithin(performance.now() - began, STORE_CALL_DEADLINE_MS + SLACK_MS);
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "unknown_outcome" } });
    expect(
      outcomes.filter((one) => one.status === "fulfilled" || !isAppError(one.reason, "unavailable", "unknown_outcome")),
    ).toEqual([]);
    toCassandra.set("open");
    await store.objects.change([change("a")]);
    const key = { cid: 1, id: "a" };
    expect((await store.objects.get([key]))[0]).toMatchObject({ birthUs: 1_000, lastUs: 1_000 });
    expect((await store.objects.history(key, {}, { limit: 10 })).items).toHaveLength(1);
  });

  test("a short break of the link is waited out inside the call", async () => {
    toCassandra.set("cut");
    const writing = store.objects.change([change("b")]);
    setTimeout(() => toCassandra.set("open"), 1_500);
    await writing;
    expect((await store.objects.get([{ cid: 1, id: "b" }]))[0]).toMatchObject({ birthUs: 1_000 });
  });

  test("reads of a Cassandra that is away are unavailable by their deadline, and readiness names it", async () => {
    toCassandra.set("cut");
    const began = performance.now();
    const readiness = engine.ready().catch((error: unknown) => error);
    await expect(store.objects.get([{ cid: 1, id: "b" }])).rejects.toMatchObject({ code: "unavailable" });
    expectWithin(performance.now() - began, STORE_CALL_DEADLINE_MS + SLACK_MS);
    // The installation's own store does not exist here yet: readiness waits for it no longer than for an answer.
    expect(await readiness).toMatchObject({ code: "unavailable", message: expect.stringMatching(/Cassandra/) });
    toCassandra.set("open");
    await expect.poll(() => engine.ready().then(() => true), { timeout: 120_000 }).toBe(true);
  }, 180_000);

  test("a conditional put whose answer is lost is not repeated behind the caller's back", async () => {
    await store.kv.put("warm", Uint8Array.of(0));
    toEtcd.set("answers_lost");
    await expect(store.kv.put("claim", Uint8Array.of(7), { ifRevision: 0 })).rejects.toMatchObject({
      code: "unknown_outcome",
    });
    toEtcd.set("open");
    const again = await store.kv.put("claim", Uint8Array.of(7), { ifRevision: 0 });
    const owner = again.ok ? await store.kv.get("claim") : again.current;
    expect(owner?.value).toEqual(Uint8Array.of(7));
  });

  test("an etcd that is away for a moment is waited out by reads and by writes that never left", async () => {
    await store.kv.get("claim");
    toEtcd.set("cut");
    const reading = store.kv.get("claim");
    setTimeout(() => toEtcd.set("open"), 1_500);
    expect((await reading)?.value).toEqual(Uint8Array.of(7));
  });

  test("a lease is taken to be lost before etcd could have given it away", async () => {
    await using other = await openTestClusterEngine({ prefix: engine.prefix, tenants: [] });
    const { kv } = await other.tenant("matrix");
    const lease = await store.kv.lease(3_000);
    await store.kv.put("leader", Uint8Array.of(1), { lease: lease.id });
    toEtcd.set("cut");
    await new Promise((resolve) => lease.lost.addEventListener("abort", resolve, { once: true }));
    const found = await kv.get("leader");
    // A stopped machine may notice the end of the lease late; `lease.test.ts` checks its time with a test clock.
    if (ARE_TIMES_BOUND) expect(found?.value).toEqual(Uint8Array.of(1));
    toEtcd.set("open");
  });

  test("two controllers that create the same tenant at once both find it", async () => {
    await using other = await openTestClusterEngine({ prefix: engine.prefix, tenants: [] });
    await Promise.all([engine.createTenant("twins"), other.createTenant("twins")]);
    const [one, two] = await Promise.all([engine.tenant("twins"), other.tenant("twins")]);
    await one.objects.change([change("shared")]);
    expect((await two.objects.find({ terms: ["c1"] }, { limit: 10 })).items.map((entity) => entity.key.id)).toEqual([
      "shared",
    ]);
    const wins = await Promise.all(
      [one, two].map(({ kv }, controller) => kv.put("leader", Uint8Array.of(controller), { ifRevision: 0 })),
    );
    expect(wins.filter((win) => win.ok)).toHaveLength(1);
  });
});

describeCluster("watch over an etcd that is killed", () => {
  test("misses nothing of what was acknowledged", async () => {
    const dir = await mkdtemp(join(tmpdir(), "odp-etcd-"));
    const program = await installEtcd(defaultCacheDir(), () => undefined);
    const member = await singleEtcd({ program, dir });
    let etcd = await startEtcd(member);
    await etcdIsUp(member, etcd);
    const client = new Etcd([`http://127.0.0.1:${member.ports.client}`], clusterRuntime);
    const kv = new EtcdKvStore(client, "t/");
    try {
      const end = new AbortController();
      const seen = collect(kv, end.signal);
      const acknowledged = [...(await putSome(kv, 0)), ...(await killed())];
      await kv.put("w/last", Uint8Array.of(1));
      await expect.poll(() => seen.keys.includes("w/last"), { timeout: 20_000 }).toBe(true);
      end.abort();
      await seen.ended;
      expect(acknowledged.filter((key) => !seen.keys.includes(key))).toEqual([]);
      expect(seen.revisions).toEqual([...seen.revisions].sort((a, b) => a - b));
      expect(new Set(seen.revisions).size).toBe(seen.revisions.length);
    } finally {
      kv.close();
      client.close();
      await stopDaemon(etcd, { now: true });
      await rm(dir, { recursive: true, force: true });
    }

    async function killed(): Promise<string[]> {
      const writing = [1, 2, 3, 4].map((writer) => putSome(kv, writer));
      await stopDaemon(etcd, { now: true });
      etcd = await startEtcd(member);
      await etcdIsUp(member, etcd);
      return [...(await Promise.all(writing)).flat(), ...(await putSome(kv, 5))];
    }
  });

  /** Writes a hundred keys; returns the acknowledged ones. */
  async function putSome(kv: EtcdKvStore, writer: number): Promise<string[]> {
    const acknowledged: string[] = [];
    for (let count = 0; count < 100; count++) {
      const key = `w/${writer}/${count}`;
      try {
        await kv.put(key, Uint8Array.of(count));
        acknowledged.push(key);
      } catch (error) {
        if (!isAppError(error, "unknown_outcome", "unavailable")) throw error;
      }
    }
    return acknowledged;
  }

  function collect(kv: EtcdKvStore, signal: AbortSignal) {
    const keys: string[] = [];
    const revisions: number[] = [];
    const ended = (async () => {
      for await (const events of kv.watch("w/", { sinceRevision: 0, signal })) {
        for (const event of events) {
          if (event.kind === "delete") continue;
          keys.push(event.entry.key);
          revisions.push(event.entry.revision);
        }
      }
    })();
    return { keys, revisions, ended };
  }
});
