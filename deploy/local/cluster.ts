import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { LOCAL_DATACENTER, startCassandra, type CassandraPorts } from "./cassandra.ts";
import { startEtcd, type EtcdPorts } from "./etcd.ts";
import { defaultCacheDir, installCassandra, installEtcd, type Progress } from "./install.ts";
import { isAlive, stopDaemon, type Daemon } from "./process.ts";

const STATE_FILE = "cluster.json";
const DEFAULT_HEAP_MIB = 1_024;

/** How a controller finds a cluster: the values of its settings. */
export interface ClusterSettings {
  readonly etcdEndpoints: readonly string[];
  /** `host:port` each. */
  readonly cassandraContactPoints: readonly string[];
  readonly cassandraDatacenter: string;
}

export interface LocalClusterOptions {
  /** Holds the data, the logs and the state file. */
  readonly dir: string;
  /** Where downloads are kept; `defaultCacheDir()` when absent. */
  readonly cacheDir?: string;
  /** Cassandra nodes; only 1 today. */
  readonly nodes?: number;
  readonly heapMiB?: number;
  /** Free ones are picked when absent. */
  readonly etcdPorts?: EtcdPorts;
  readonly cassandraPorts?: CassandraPorts;
  readonly progress?: Progress;
}

export interface LocalCluster {
  readonly settings: ClusterSettings;
  readonly daemons: readonly Daemon[];
  /** Ends what was started; `now` without letting it finish its work. Idempotent. */
  stop(options?: { readonly now?: boolean }): Promise<void>;
}

/** One etcd and one Cassandra on 127.0.0.1, both answering when this resolves. When one fails, the other is ended. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  if ((options.nodes ?? 1) !== 1) throw new Error("Only one Cassandra node is offered so far: --nodes 1.");
  const progress = options.progress ?? (() => undefined);
  const cacheDir = options.cacheDir ?? defaultCacheDir();
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  const [program, jars] = await Promise.all([installEtcd(cacheDir, progress), installCassandra(cacheDir, progress)]);
  const started = performance.now();
  progress("Starting etcd and Cassandra …");
  const outcomes = await Promise.allSettled([
    startEtcd({ program, dir: join(options.dir, "etcd"), ports: options.etcdPorts }).then((etcd) => {
      progress(`etcd answers on port ${etcd.ports.client} after ${seconds(started)}.`);
      return etcd;
    }),
    startCassandra({ jars, dir: join(options.dir, "cassandra"), heapMiB: options.heapMiB ?? DEFAULT_HEAP_MIB, ports: options.cassandraPorts }).then((node) => {
      progress(`Cassandra answers on port ${node.ports.native} after ${seconds(started)}.`);
      return node;
    }),
  ]);
  const [etcd, cassandra] = outcomes;
  if (etcd.status === "rejected" || cassandra.status === "rejected") {
    for (const part of outcomes) if (part.status === "fulfilled") await stopDaemon(part.value.daemon, { now: true });
    throw etcd.status === "rejected" ? etcd.reason : (cassandra as PromiseRejectedResult).reason;
  }
  return saved(options.dir, {
    settings: {
      etcdEndpoints: [`http://127.0.0.1:${etcd.value.ports.client}`],
      cassandraContactPoints: [`127.0.0.1:${cassandra.value.ports.native}`],
      cassandraDatacenter: LOCAL_DATACENTER,
    },
    daemons: [etcd.value.daemon, cassandra.value.daemon],
  });
}

/** The cluster whose state lies in `dir`; undefined when none was started there or it was stopped. */
export async function findLocalCluster(dir: string): Promise<LocalCluster | undefined> {
  const text = await readFile(join(dir, STATE_FILE), "utf8").catch(() => undefined);
  return text === undefined ? undefined : handle(dir, JSON.parse(text) as ClusterState);
}

/** Those of its processes that run. */
export async function aliveDaemons(cluster: LocalCluster): Promise<readonly Daemon[]> {
  const alive = await Promise.all(cluster.daemons.map(isAlive));
  return cluster.daemons.filter((_, index) => alive[index]);
}

/** As lines for a shell or a settings file. */
export function settingsLines(settings: ClusterSettings): string[] {
  return [
    "ODP_STORE=cluster",
    `ODP_ETCD_ENDPOINTS=${settings.etcdEndpoints.join(",")}`,
    `ODP_CASSANDRA_CONTACT_POINTS=${settings.cassandraContactPoints.join(",")}`,
    `ODP_CASSANDRA_DATACENTER=${settings.cassandraDatacenter}`,
  ];
}

type ClusterState = Pick<LocalCluster, "settings" | "daemons">;

async function saved(dir: string, state: ClusterState): Promise<LocalCluster> {
  const file = join(dir, STATE_FILE);
  await writeFile(`${file}.new`, JSON.stringify(state, undefined, 2));
  await rename(`${file}.new`, file);
  return handle(dir, state);
}

function handle(dir: string, state: ClusterState): LocalCluster {
  return {
    ...state,
    stop: async (options) => {
      await Promise.all(state.daemons.map((daemon) => stopDaemon(daemon, { now: options?.now })));
      await rm(join(dir, STATE_FILE), { force: true });
    },
  };
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
