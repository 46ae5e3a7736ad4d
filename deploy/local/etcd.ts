import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { freePorts, startDaemon, waitUntilUp, type Daemon } from "./process.ts";

const START_DEADLINE_MS = 60_000;
const STATUS_DEADLINE_MS = 1_000;
const ADDRESS = "127.0.0.1";

/** Everything needed to start or restart one member. Plain data, kept in the state file. */
export interface EtcdMember {
  readonly kind: "etcd";
  readonly name: string;
  readonly program: string;
  /** Folder of its data and log. */
  readonly dir: string;
  readonly ports: EtcdPorts;
  /** Peer ports of all members by name, including its own. */
  readonly peers: Readonly<Record<string, number>>;
  /** True for a member that is never restarted: it answers a write before the write is on disk. */
  readonly disposable?: boolean;
}

export interface EtcdPorts {
  readonly client: number;
  readonly peer: number;
}

/**
 * Starts one member on 127.0.0.1. It answers when a majority of the members runs. A restart in the same folder finds
 * the same data.
 */
export async function startEtcd(member: EtcdMember): Promise<Daemon> {
  await mkdir(member.dir, { recursive: true, mode: 0o700 });
  return startDaemon(etcdSpec(member));
}

/** A member without peers, on free ports. */
export async function singleEtcd(place: { readonly program: string; readonly dir: string }): Promise<EtcdMember> {
  const [client = 0, peer = 0] = await freePorts(2);
  return {
    kind: "etcd",
    name: "etcd",
    program: place.program,
    dir: place.dir,
    ports: { client, peer },
    peers: { etcd: peer },
  };
}

/** Waits until the member knows a leader. */
export async function etcdIsUp(member: EtcdMember, daemon: Daemon): Promise<void> {
  await waitUntilUp(daemon, () => isHealthy(member), START_DEADLINE_MS);
}

/** True if the member answers and knows a leader. */
export async function isHealthy(member: EtcdMember): Promise<boolean> {
  return (await ask(member, "/health"))?.includes('"true"') ?? false;
}

/** True if this member is the leader now; false if it does not answer. */
export async function leadsEtcd(member: EtcdMember): Promise<boolean> {
  const metrics = await ask(member, "/metrics");
  return metrics !== undefined && /^etcd_server_is_leader 1$/m.test(metrics);
}

function etcdSpec(member: EtcdMember) {
  const dataDir = join(member.dir, "data");
  const client = `http://${ADDRESS}:${member.ports.client}`;
  const peer = `http://${ADDRESS}:${member.ports.peer}`;
  const cluster = Object.entries(member.peers).map(([name, port]) => `${name}=http://${ADDRESS}:${port}`);
  const args = [
    ["--name", member.name],
    ["--data-dir", dataDir],
    ["--listen-client-urls", client],
    ["--advertise-client-urls", client],
    ["--listen-peer-urls", peer],
    ["--initial-advertise-peer-urls", peer],
    ["--initial-cluster", cluster.join(",")],
    ["--auto-compaction-mode", "periodic"],
    ["--auto-compaction-retention", "1h"],
    ["--log-level", "warn"],
    member.disposable === true ? ["--unsafe-no-fsync"] : [],
  ];
  return {
    name: member.name,
    program: member.program,
    args: args.flat(),
    mark: dataDir,
    logFile: join(member.dir, "etcd.log"),
  };
}

async function ask(member: EtcdMember, path: string): Promise<string | undefined> {
  try {
    const answer = await fetch(`http://${ADDRESS}:${member.ports.client}${path}`, {
      signal: AbortSignal.timeout(STATUS_DEADLINE_MS),
    });
    return answer.ok ? await answer.text() : undefined;
  } catch {
    return undefined;
  }
}
