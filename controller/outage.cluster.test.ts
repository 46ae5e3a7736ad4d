import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CALL_CHANGE_WAIT_MS, CALL_READ_WAIT_MS } from "../common/limits.ts";
import { addressOf, openProxy, type LinkProxy } from "../test/helpers/cluster/proxy.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../test/helpers/cluster/cluster.ts";
import { TEST_SECRETS } from "../test/helpers/time/runtime.ts";
import { expectWithin } from "../test/helpers/time/times.ts";
import { assemble, type Assembly } from "./assembly.ts";

/** Tolerance for a slow machine, added to each promised deadline. */
const SLACK_MS = 3_000;
const PASSWORD = "correct horse";
const PARTS = ["Cassandra", "etcd"] as const;

describeCluster("calls over HTTP while a store is away", () => {
  const links = new Map<(typeof PARTS)[number], LinkProxy>();
  let engine: TestClusterEngine;
  let assembly: Assembly;
  let http: FastifyInstance;
  let folder: string;
  let session: string;

  beforeAll(async () => {
    const settings = clusterSettings();
    const toCassandra = await openProxy(addressOf(settings.cassandraContactPoints[0] ?? ""));
    const toEtcd = await openProxy(addressOf(settings.etcdEndpoints[0] ?? ""));
    links.set("Cassandra", toCassandra).set("etcd", toEtcd);
    engine = await openTestClusterEngine({
      tenants: [],
      settings: {
        ...settings,
        etcdEndpoints: [`http://127.0.0.1:${toEtcd.port}`],
        cassandraContactPoints: [`127.0.0.1:${toCassandra.port}`],
      },
    });
    folder = await mkdtemp(join(tmpdir(), "odp-outage-"));
    assembly = await assemble({
      engine,
      secrets: TEST_SECRETS,
      version: "test",
      runtime: clusterRuntime,
      controllerId: "outage",
      publicNames: ["127.0.0.1"],
      dataDir: folder,
      agentPort: () => 0,
    });
    await assembly.tenants.ensureTenant({ name: "matrix", ospace: "/matrix" });
    await assembly.users.operator.ensureAdministrator({ tenant: "matrix", username: "admin", password: PASSWORD });
    http = await assembly.http();
    session = (await signIn()).message;
    expect(await mql("create class /matrix/thing (n bigint)")).toMatchObject({ status: "ok" });
    expect(await mql("insert into /matrix/thing n=1")).toMatchObject({ status: "ok" });
  });
  afterAll(async () => {
    for (const link of links.values()) link.set("open");
    await http?.close();
    await assembly?.close();
    await engine?.[Symbol.asyncDispose]();
    for (const link of links.values()) await link[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function signIn(): Promise<{ readonly message: string }> {
    const payload = { company: "matrix", username: "admin", password: PASSWORD };
    return (await http.inject({ method: "POST", url: "/user/signin", payload })).json();
  }

  async function mql(query: string): Promise<Record<string, unknown>> {
    const url = `/mxobject/mql?sessionid=${session}`;
    return (await http.inject({ method: "POST", url, payload: { mql: query } })).json();
  }

  async function makeHost(host: string): Promise<Record<string, unknown>> {
    return (await http.inject({ method: "POST", url: `/host?sessionid=${session}`, payload: { host } })).json();
  }

  /** Results of the calls, each checked against its time limit. Without a deadline the calls would wait forever. */
  async function within(limitMs: number, calls: readonly (() => Promise<object>)[]): Promise<readonly object[]> {
    const timed = calls.map(async (call) => {
      const began = performance.now();
      const answer = await call();
      expectWithin(performance.now() - began, limitMs + SLACK_MS, JSON.stringify(answer));
      return answer;
    });
    return Promise.all(timed);
  }

  const refused = { status: "error", code: expect.stringMatching(/^(unavailable|unknown_outcome|deadline)$/) };

  test.each(PARTS)(
    "every call has one deadline while %s takes everything and answers nothing, and is made again after it",
    { timeout: 120_000 },
    async (part) => {
      const read = () => mql("select * from /matrix/thing limit 10");
      const insert = () => mql("insert into /matrix/thing n=2");
      links.get(part)?.set("answers_lost");
      const [[rows], [host]] = await Promise.all([
        within(CALL_READ_WAIT_MS, [read, insert, signIn]),
        within(CALL_CHANGE_WAIT_MS, [() => makeHost(part), () => mql("create class /matrix/other (n bigint)")]),
      ]);
      if (part === "Cassandra") for (const answer of [rows, host]) expect(answer).toMatchObject(refused);
      await within(CALL_READ_WAIT_MS, [read, insert, signIn, () => makeHost(part)]);
      links.get(part)?.set("open");
      await expect.poll(() => makeHost(part).then(({ status }) => status), { timeout: 30_000 }).toBe("ok");
      expect(await read()).toMatchObject({ status: "ok" });
    },
  );
});
