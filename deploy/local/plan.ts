import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cassandraIsUp, startCassandra, type CassandraNode, type CassandraPorts } from "./cassandra.ts";
import { etcdIsUp, startEtcd, type EtcdMember, type EtcdPorts } from "./etcd.ts";
import { freePorts, type Daemon } from "./process.ts";

export type Member = EtcdMember | CassandraNode;

/** Possible numbers of etcd members, and of Cassandra nodes. */
export const CLUSTER_SIZES = [1, 3, 5] as const;
export type ClusterSize = (typeof CLUSTER_SIZES)[number];

const RING_PORTS_FILE = "ring-ports.json";
const HEAP_MIB = { single: 1_024, ring: 768 } as const;

export interface PlanOptions {
  readonly dir: string;
  readonly nodes: ClusterSize;
  readonly etcdProgram: string;
  readonly cassandraJars: string;
  readonly heapMiB?: number;
  readonly disposable?: boolean;
}

/** The members of a cluster, etcd first, with the names by which they are addressed: `etcd-1`, `cassandra-3`. */
export async function planMembers(options: PlanOptions): Promise<readonly Member[]> {
  return options.nodes === 1 ? planSingle(options) : planRing(options);
}

async function planSingle(options: PlanOptions): Promise<readonly Member[]> {
  const { disposable } = options;
  const [client = 0, peer = 0, native = 0, storage = 0] = await freePorts(4);
  return [
    { ...etcdMember(options, "etcd", { client, peer }, { etcd: peer }), disposable },
    { ...node(options, { name: "cassandra", ring: addressesOf(1), index: 0, ports: { native, storage } }), disposable },
  ];
}

async function planRing(options: PlanOptions): Promise<readonly Member[]> {
  const ring = addressesOf(options.nodes);
  const ports = await ringPorts(options.dir, ring);
  const names = ports.etcd.map((_, index) => `etcd-${index + 1}`);
  const peers = Object.fromEntries(names.map((name, index) => [name, ports.etcd[index]?.peer ?? 0]));
  return [
    ...ports.etcd.map((own, index) => etcdMember(options, names[index] ?? "", own, peers)),
    ...ring.map((_, index) => node(options, { name: `cassandra-${index + 1}`, ring, index, ports: ports.cassandra })),
  ];
}

/** One loopback address per Cassandra node. */
function addressesOf(nodes: ClusterSize): readonly string[] {
  return Array.from({ length: nodes }, (_, at) => `127.0.0.${at + 1}`);
}

interface RingPorts {
  readonly etcd: readonly EtcdPorts[];
  /** The same ports on every address. */
  readonly cassandra: CassandraPorts;
}

/** Members store the addresses of their peers, so a ring keeps its first ports. */
async function ringPorts(dir: string, ring: readonly string[]): Promise<RingPorts> {
  const file = join(dir, RING_PORTS_FILE);
  const kept = await readFile(file, "utf8").catch(() => undefined);
  const before = kept === undefined ? undefined : (JSON.parse(kept) as RingPorts);
  if (before && before.etcd.length !== ring.length)
    throw new Error(
      `${dir} holds the data of a ring of ${before.etcd.length}: a ring of ${ring.length} needs another --dir.`,
    );
  if (before) return before;
  const [native = 0, storage = 0, ...rest] = await freePorts(2 + 2 * ring.length, ring);
  const etcd = ring.map((_, index) => ({ client: rest[2 * index] ?? 0, peer: rest[2 * index + 1] ?? 0 }));
  const ports = { etcd, cassandra: { native, storage } };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify(ports));
  return ports;
}

function etcdMember(
  options: PlanOptions,
  name: string,
  ports: EtcdPorts,
  peers: Readonly<Record<string, number>>,
): EtcdMember {
  return { kind: "etcd", name, program: options.etcdProgram, dir: join(options.dir, name), ports, peers };
}

function node(
  options: PlanOptions,
  place: {
    readonly name: string;
    readonly ring: readonly string[];
    readonly index: number;
    readonly ports: CassandraPorts;
  },
): CassandraNode {
  return {
    kind: "cassandra",
    name: place.name,
    jars: options.cassandraJars,
    dir: join(options.dir, place.name),
    heapMiB: options.heapMiB ?? (place.ring.length === 1 ? HEAP_MIB.single : HEAP_MIB.ring),
    address: place.ring[place.index] ?? "",
    ports: place.ports,
    ring: place.ring,
  };
}

export function startMember(member: Member): Promise<Daemon> {
  return member.kind === "etcd" ? startEtcd(member) : startCassandra(member);
}

/** Waits until the member serves clients. */
export function memberIsUp(member: Member, daemon: Daemon): Promise<void> {
  return member.kind === "etcd" ? etcdIsUp(member, daemon) : cassandraIsUp(member, daemon);
}
