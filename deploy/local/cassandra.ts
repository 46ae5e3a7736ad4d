import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { answersCql, answersWithAllReplicas } from "./cql.ts";
import { jvmFlags } from "./jvm.ts";
import { startDaemon, waitUntilUp, type Daemon } from "./process.ts";

const START_DEADLINE_MS = 240_000;
/** Name that SimpleSnitch gives to the only datacenter. */
export const LOCAL_DATACENTER = "datacenter1";

/** Everything needed to start or restart one node. Plain data, kept in the state file. */
export interface CassandraNode {
  readonly kind: "cassandra";
  readonly name: string;
  /** Folder of jars. */
  readonly jars: string;
  /** Folder of its data, settings and log. */
  readonly dir: string;
  readonly heapMiB: number;
  readonly address: string;
  readonly ports: CassandraPorts;
  /** Addresses of all nodes of the ring, including its own. */
  readonly ring: readonly string[];
  /** True for a node that is never restarted: it starts and creates tables faster. */
  readonly disposable?: boolean;
  /** Additional lines of its `cassandra.yaml`. */
  readonly settings?: string;
}

export interface CassandraPorts {
  readonly native: number;
  readonly storage: number;
}

/** Starts one node on a loopback address. A restart in the same folder finds the same data. */
export async function startCassandra(node: CassandraNode): Promise<Daemon> {
  await mkdir(node.dir, { recursive: true, mode: 0o700 });
  const configFile = join(node.dir, "cassandra.yaml");
  const logbackFile = join(node.dir, "logback.xml");
  const dataDir = join(node.dir, "data");
  await writeFile(configFile, cassandraYaml(node, dataDir));
  await writeFile(logbackFile, LOGBACK);
  const flags = jvmFlags({
    startsSoon: node.ring.length > 1 || node.disposable === true,
    disposable: node.disposable === true,
    heapMiB: node.heapMiB,
    dataDir,
    configFile,
    logbackFile,
  });
  return startDaemon({
    name: node.name,
    program: "java",
    args: ["-cp", join(node.jars, "*"), ...flags, "org.apache.cassandra.service.CassandraDaemon"],
    mark: `-Dcassandra.storagedir=${dataDir}`,
    logFile: join(node.dir, "cassandra.log"),
  });
}

export async function cassandraIsUp(node: CassandraNode, daemon: Daemon): Promise<void> {
  await waitUntilUp(daemon, () => answersCql(node.address, node.ports.native), START_DEADLINE_MS);
}

/** Waits until this node can reach every other node. */
export async function cassandraSeesAll(node: CassandraNode, daemon: Daemon): Promise<void> {
  await waitUntilUp(daemon, () => answersWithAllReplicas(node.address, node.ports.native), START_DEADLINE_MS);
}

/** Tokens that divide the ring evenly. */
function tokenOf(node: CassandraNode): bigint {
  const index = BigInt(node.ring.indexOf(node.address));
  return -(2n ** 63n) + (index * 2n ** 64n) / BigInt(node.ring.length);
}

function cassandraYaml(node: CassandraNode, dataDir: string): string {
  const seeds = node.ring.map((address) => `${address}:${node.ports.storage}`).join(",");
  const ofRing = node.ring.length === 1 ? SINGLE_YAML : RING_YAML.replace("TOKEN", String(tokenOf(node)));
  return `cluster_name: odp-local
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 1
${ofRing}listen_address: ${node.address}
rpc_address: ${node.address}
storage_port: ${node.ports.storage}
native_transport_port: ${node.ports.native}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "${seeds}"
data_file_directories: [${dataDir}/data]
commitlog_directory: ${dataDir}/commitlog
saved_caches_directory: ${dataDir}/saved_caches
hints_directory: ${dataDir}/hints
cdc_raw_directory: ${dataDir}/cdc_raw
auto_snapshot: false
storage_compatibility_mode: NONE
sstable:
  selected_format: bti
memtable:
  configurations:
    trie:
      class_name: TrieMemtable
    default:
      inherits: trie
${node.settings ?? ""}`;
}

/**
 * A single node answers writes before they are on disk: the last seconds are only in its memory. This is fast and good
 * enough for trials.
 */
const SINGLE_YAML = `commitlog_sync: periodic
commitlog_sync_period: 10000ms
`;

/**
 * Nodes that start together divide the ring by given tokens, so they have no data to transfer. A write is answered when
 * it is on disk, because data that is only in memory is lost if a majority is killed at once. Reads time out early
 * enough for odp to ask another node within its own deadline.
 */
const RING_YAML = `auto_bootstrap: false
commitlog_sync: group
commitlog_sync_group_window: 5ms
initial_token: TOKEN
read_request_timeout: 3000ms
range_request_timeout: 3000ms
`;

const LOGBACK = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
`;
