import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errorText } from "../../../../common/errors.ts";
import { LOCAL_DATACENTER, startCassandra } from "../../../../deploy/local/cassandra.ts";
import { defaultCacheDir, installCassandra } from "../../../../deploy/local/install.ts";
import { freePorts, stopDaemon, waitUntilUp, type Daemon } from "../../../../deploy/local/process.ts";
import { ClusterAdmin } from "../../../../test/helpers/cluster/admin.ts";
import { clusterRuntime, clusterSettings, describeCluster } from "../../../../test/helpers/cluster/cluster.ts";
import { TestAuthority } from "../../../../test/helpers/hosts/test-authority.ts";
import type { StoreAccess } from "../../access.ts";
import { Cassandra, newClient } from "./cassandra.ts";
import { openClusterEngine } from "../index.ts";
import { RepairHistory } from "../upkeep/repairs.ts";

const START_DEADLINE_MS = 240_000;
const HEAP_MIB = 512;
/** Much longer than a node caches the permissions of a role, which is two seconds. */
const RIGHTS_COUNT_WAIT_MS = 30_000;
/** The first account of every Cassandra with accounts. */
const SUPERUSER = { user: "cassandra", password: "cassandra" };
const account = { user: "odp", password: "s3cret of cassandra" };
const prefix = `a${randomBytes(5).toString("hex")}`;

describeCluster("a Cassandra that asks for certificates and accounts", () => {
  let folder: string;
  let daemon: Daemon;
  let contactPoint: string;
  let tls: NonNullable<StoreAccess["tls"]>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "odp-cassandra-tls-"));
    const authority = await TestAuthority.make();
    const server = await authority.issue("server");
    tls = { ca: authority.ca, client: await authority.issue("client") };
    await writeFile(join(folder, "server.pem"), Buffer.concat([server.key, server.cert]), { mode: 0o600 });
    await writeFile(join(folder, "ca.pem"), authority.ca);
    const [native = 0, storage = 0] = await freePorts(2);
    contactPoint = `127.0.0.1:${native}`;
    daemon = await startCassandra({
      kind: "cassandra",
      name: "cassandra",
      jars: await installCassandra(defaultCacheDir(), () => undefined),
      dir: folder,
      heapMiB: HEAP_MIB,
      address: "127.0.0.1",
      ports: { native, storage },
      ring: ["127.0.0.1"],
      disposable: true,
      settings: `authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
client_encryption_options:
  enabled: true
  require_client_auth: true
  ssl_context_factory:
    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory
  keystore: ${join(folder, "server.pem")}
  truststore: ${join(folder, "ca.pem")}
`,
    });
    await waitUntilUp(daemon, () => executed(SUPERUSER, []), START_DEADLINE_MS);
    await executed(SUPERUSER, [
      `CREATE ROLE ${account.user} WITH PASSWORD = '${account.password}' AND LOGIN = true`,
      `GRANT CREATE ON ALL KEYSPACES TO ${account.user}`,
    ]);
  }, START_DEADLINE_MS);
  afterAll(async () => {
    if (daemon !== undefined) await stopDaemon(daemon, { now: true });
    await rm(folder, { recursive: true, force: true });
    const admin = await ClusterAdmin.connect(clusterSettings());
    await admin.remove(prefix);
    await admin.close();
  });

  /** False if this account is refused. */
  async function executed(as: NonNullable<StoreAccess["account"]>, statements: readonly string[]): Promise<boolean> {
    const access = { tls, account: as };
    const client = newClient({
      contactPoints: [contactPoint],
      datacenter: LOCAL_DATACENTER,
      runtime: clusterRuntime,
      access,
    });
    try {
      await client.connect();
      for (const statement of statements) await client.execute(statement);
      return true;
    } catch (error) {
      if (statements.length > 0) throw error;
      return false;
    } finally {
      await client.shutdown();
    }
  }

  const opens = (access: StoreAccess) =>
    openClusterEngine({
      etcdEndpoints: clusterSettings().etcdEndpoints,
      cassandraContactPoints: [contactPoint],
      cassandraDatacenter: LOCAL_DATACENTER,
      cassandraAccess: access,
      prefix,
      runtime: clusterRuntime,
    });

  // In parallel: a refusal takes as long as a start waits for its stores.
  test.concurrent(
    "needs a role that may create keyspaces, and nothing else",
    async () => {
      const engine = await opens({ tls, account });
      try {
        await engine.createTenant("matrix");
        const { objects } = await engine.tenant("matrix");
        const key = { cid: 1, id: "a" };
        await objects.change([{ key, timeUs: 10, birth: true, addTerms: ["term"] }]);
        expect((await objects.find({ terms: ["term"] }, { limit: 10 })).items).toMatchObject([{ key }]);
        await engine.system();
        await engine.ready();
        expect(await engine.nodes()).toHaveLength(1);
        await engine.dropTenant("matrix");
      } finally {
        await engine.close();
      }
    },
    START_DEADLINE_MS,
  );

  test.concurrent(
    "tells a role that may not read the history of repairs so, and reads it as soon as the right is given",
    async () => {
      const keyspace = `${prefix}_copies`;
      await executed(SUPERUSER, [
        `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${LOCAL_DATACENTER}': 3}`,
        `CREATE TABLE ${keyspace}.present (id text PRIMARY KEY)`,
      ]);
      const cassandra = await Cassandra.connect({
        contactPoints: [contactPoint],
        datacenter: LOCAL_DATACENTER,
        runtime: clusterRuntime,
        access: { tls, account },
      });
      try {
        const history = new RepairHistory(cassandra);
        await expect(history.tables(keyspace)).rejects.toMatchObject({
          code: "unavailable",
          message: expect.stringMatching(/history of repairs cannot be read: .*odp has no SELECT permission/),
        });
        await executed(SUPERUSER, [
          // Only as many copies as there are nodes to read them from.
          "ALTER KEYSPACE system_distributed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
          `GRANT SELECT ON system_distributed.parent_repair_history TO ${account.user}`,
        ]);
        await expect
          .poll(() => history.tables(keyspace).catch((error: unknown) => errorText(error)), {
            timeout: RIGHTS_COUNT_WAIT_MS,
          })
          .toEqual([{ table: "present", isDerived: false }]);
      } finally {
        await cassandra.close();
      }
    },
    START_DEADLINE_MS,
  );

  test.concurrent("refuses who comes without an account, or with a wrong password", async () => {
    const outcomes = await Promise.allSettled([
      opens({ tls }),
      opens({ tls, account: { ...account, password: "guessed" } }),
    ]);
    expect(outcomes).toMatchObject([
      { status: "rejected", reason: { message: expect.stringMatching(/requires authentication/) } },
      { status: "rejected", reason: { message: expect.stringMatching(/username odp and\/or password are incorrect/) } },
    ]);
  });
});
