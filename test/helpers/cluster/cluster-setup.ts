import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startLocalCluster, type ClusterSettings } from "../../../deploy/local/cluster.ts";
import { startDockerCluster } from "./docker.ts";

/** Sent to the suites: the addresses of etcd and Cassandra, or the reason why there are none. */
export type ClusterProvision =
  | { readonly available: true; readonly settings: ClusterSettings; readonly endsWithRun: boolean }
  | { readonly available: false; readonly reason: string };

declare module "vitest" {
  interface ProvidedContext {
    readonly cluster: ClusterProvision;
  }
}

interface Started {
  readonly provision: ClusterProvision;
  stop(): Promise<void>;
}

/** One cluster for all projects of a run. Each project calls `setup`; the last `teardown` stops the cluster. */
interface Shared {
  users: number;
  readonly started: Promise<Started>;
}

const SHARED = Symbol.for("odp.test.cluster");
const global = globalThis as { [SHARED]?: Shared };

/** Finds etcd and Cassandra by the settings. Otherwise starts them in Docker, or else on this machine. */
export async function setup(project: TestProject): Promise<void> {
  const shared = (global[SHARED] ??= { users: 0, started: start() });
  shared.users++;
  const { provision } = await shared.started;
  if (!provision.available && process.env.ODP_REQUIRE_CLUSTER === "1") {
    throw new Error(`ODP_REQUIRE_CLUSTER is set, and there is no etcd and Cassandra: ${provision.reason}`);
  }
  project.provide("cluster", provision);
}

export async function teardown(): Promise<void> {
  const shared = global[SHARED];
  if (shared === undefined || --shared.users > 0) return;
  delete global[SHARED];
  await (await shared.started).stop();
}

async function start(): Promise<Started> {
  const given = settingsOfEnvironment();
  if (given !== undefined)
    return { provision: { available: true, settings: given, endsWithRun: false }, stop: async () => undefined };
  const docker = await startDockerCluster(say).catch((error: unknown) =>
    say(`Docker engine answers, but: ${text(error)}`),
  );
  if (docker)
    return { provision: { available: true, settings: docker.settings, endsWithRun: true }, stop: () => docker.stop() };
  try {
    return await startLocal();
  } catch (error) {
    say(`Suites that need etcd and Cassandra are skipped: ${text(error)}`);
    return { provision: { available: false, reason: text(error) }, stop: async () => undefined };
  }
}

async function startLocal(): Promise<Started> {
  const dir = await mkdtemp(join(tmpdir(), "odp-cluster-"));
  const remove = (): Promise<void> => rm(dir, { recursive: true, force: true, maxRetries: 3 });
  try {
    const cluster = await startLocalCluster({ dir, disposable: true, progress: say });
    // However this process ends, it must not leave a Cassandra running.
    const kill = (): void => cluster.daemons.forEach((daemon) => killQuietly(daemon.pid));
    process.once("exit", kill);
    const stop = async (): Promise<void> => {
      await cluster.stop({ now: true });
      process.removeListener("exit", kill);
      await remove();
    };
    return { provision: { available: true, settings: cluster.settings, endsWithRun: true }, stop };
  } catch (error) {
    await remove();
    throw error;
  }
}

function settingsOfEnvironment(): ClusterSettings | undefined {
  const {
    ODP_ETCD_ENDPOINTS: etcd,
    ODP_CASSANDRA_CONTACT_POINTS: cassandra,
    ODP_CASSANDRA_DATACENTER: datacenter,
  } = process.env;
  if (!etcd || !cassandra) return undefined;
  return {
    etcdEndpoints: etcd.split(","),
    cassandraContactPoints: cassandra.split(","),
    cassandraDatacenter: datacenter || "datacenter1",
  };
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}

function say(line: string): undefined {
  console.error(`[cluster] ${line}`);
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
