import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { jvmFlags } from "./jvm.ts";
import { freePorts, startDaemon, stopDaemon, waitUntilUp, type Daemon } from "./process.ts";

const START_DEADLINE_MS = 90_000;
const ATTEMPTS = 3;
/** What SimpleSnitch calls the only datacenter. */
export const LOCAL_DATACENTER = "datacenter1";

export interface CassandraOptions {
  /** Folder of jars. */
  readonly jars: string;
  /** Its data, settings and log. */
  readonly dir: string;
  readonly heapMiB: number;
  readonly ports?: CassandraPorts;
}

export interface CassandraPorts {
  readonly native: number;
  readonly storage: number;
}

export interface LocalCassandra {
  readonly daemon: Daemon;
  readonly ports: CassandraPorts;
}

/** One Cassandra node on 127.0.0.1, answering CQL when this resolves. Starting again in the same folder finds the same data. */
export async function startCassandra(options: CassandraOptions): Promise<LocalCassandra> {
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  for (let attempt = 1; ; attempt++) {
    const ports = options.ports ?? (await pickPorts());
    const daemon = await startNode(options, ports);
    try {
      await waitUntilUp(daemon, () => answersCql(ports.native), START_DEADLINE_MS);
      return { daemon, ports };
    } catch (error) {
      await stopDaemon(daemon, { now: true });
      // A picked port may have been taken meanwhile; a given one is the caller's word.
      if (options.ports !== undefined || attempt === ATTEMPTS) throw error;
    }
  }
}

async function startNode(options: CassandraOptions, ports: CassandraPorts): Promise<Daemon> {
  const configFile = join(options.dir, "cassandra.yaml");
  const logbackFile = join(options.dir, "logback.xml");
  const dataDir = join(options.dir, "data");
  await writeFile(configFile, cassandraYaml(dataDir, ports));
  await writeFile(logbackFile, LOGBACK);
  const flags = jvmFlags({ heapMiB: options.heapMiB, dataDir, configFile, logbackFile });
  return startDaemon({
    name: "Cassandra",
    program: "java",
    args: ["-cp", join(options.jars, "*"), ...flags, "org.apache.cassandra.service.CassandraDaemon"],
    mark: `-Dcassandra.storagedir=${dataDir}`,
    logFile: join(options.dir, "cassandra.log"),
  });
}

function cassandraYaml(dataDir: string, ports: CassandraPorts): string {
  return `cluster_name: odp-local
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 1
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: ${ports.storage}
native_transport_port: ${ports.native}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:${ports.storage}"
data_file_directories: [${dataDir}/data]
commitlog_directory: ${dataDir}/commitlog
saved_caches_directory: ${dataDir}/saved_caches
hints_directory: ${dataDir}/hints
cdc_raw_directory: ${dataDir}/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 10000ms
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
`;
}

const LOGBACK = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
`;

async function pickPorts(): Promise<CassandraPorts> {
  const [native = 0, storage = 0] = await freePorts(2);
  return { native, storage };
}

/** Protocol version 4, stream 0, OPTIONS without a body; the answer is SUPPORTED (opcode 6). */
const OPTIONS_FRAME = Uint8Array.of(4, 0, 0, 0, 5, 0, 0, 0, 0);

function answersCql(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(OPTIONS_FRAME));
    const end = (yes: boolean): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.setTimeout(2_000, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.once("data", (frame) => end(frame[4] === 6));
  });
}
