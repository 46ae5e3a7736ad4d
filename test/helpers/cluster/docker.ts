import { GenericContainer, getContainerRuntimeClient, Wait } from "testcontainers";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";

const START_TIMEOUT_MS = 180_000;
const DETECTION_TIMEOUT_MS = 10_000;
// The same images as in deploy/compose/compose.yaml.
const ETCD_IMAGE = "quay.io/coreos/etcd:v3.5.21";
const CASSANDRA_IMAGE = "cassandra:5.0";

export interface DockerCluster {
  readonly settings: ClusterSettings;
  stop(): Promise<void>;
}

/** Starts etcd and Cassandra in containers; `undefined` if no Docker engine answers. */
export async function startDockerCluster(progress: (line: string) => void): Promise<DockerCluster | undefined> {
  if (!(await engineAnswers())) return undefined;
  progress("Starting etcd and Cassandra in Docker …");
  const etcdArgs = [
    "etcd",
    "--listen-client-urls",
    "http://0.0.0.0:2379",
    "--advertise-client-urls",
    "http://0.0.0.0:2379",
  ];
  const etcd = new GenericContainer(ETCD_IMAGE)
    .withCommand(etcdArgs)
    .withExposedPorts(2379)
    .withWaitStrategy(Wait.forHttp("/health", 2379));
  const cassandra = new GenericContainer(CASSANDRA_IMAGE)
    .withEnvironment({ MAX_HEAP_SIZE: "1G", HEAP_NEWSIZE: "256M" })
    .withExposedPorts(9042)
    .withWaitStrategy(Wait.forLogMessage(/Starting listening for CQL clients/));
  const started = await Promise.allSettled(
    [etcd, cassandra].map((container) => container.withStartupTimeout(START_TIMEOUT_MS).start()),
  );
  const running = started.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const stop = async (): Promise<void> => void (await Promise.all(running.map((container) => container.stop())));
  const [etcdContainer, cassandraContainer] = running;
  if (etcdContainer === undefined || cassandraContainer === undefined) {
    await stop();
    throw started.find((outcome) => outcome.status === "rejected")?.reason;
  }
  const settings = {
    etcdEndpoints: [`http://${etcdContainer.getHost()}:${etcdContainer.getMappedPort(2379)}`],
    cassandraContactPoints: [`${cassandraContainer.getHost()}:${cassandraContainer.getMappedPort(9042)}`],
    cassandraDatacenter: "datacenter1",
  };
  return { settings, stop };
}

async function engineAnswers(): Promise<boolean> {
  const found = getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
  const tooLong = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), DETECTION_TIMEOUT_MS).unref());
  return Promise.race([found, tooLong]);
}
