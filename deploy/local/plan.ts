import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cassandraIsUp, startCassandra, type CassandraNode, type CassandraPorts } from "./cassandra.ts";
import { etcdIsUp, startEtcd, type EtcdMember, type EtcdPorts } from "./etcd.ts";
import { freePorts, type Daemon } from "./process.ts";

export type Member = EtcdMember | CassandraNode;

const RING_ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"] as const;
const RING_PORTS_FILE = "ring-ports.json";
const HEAP_MIB = { single: 1_024, ring: 768 } as const;

export interface PlanOptions {
  readonly dir: string;
  readonly nodes: 1 | 3;
  readonly etcdProgram: string;
  readonly cassandraJars: string;
  readonly heapMiB?: number;
}

/** The programs of a cluster, etcd first, by the names under which they can be spoken of: `etcd-1`, `cassandra-3`. */
export async function planMembers(options: PlanOptions): Promise<readonly Member[]> {
  return options.nodes === 1 ? planSingle(options) : planRing(options);
}

async function planSingle(options: PlanOptions): Promise<readonly Member[]> {
  const [client = 0, peer = 0, native = 0, storage = 0] = await freePorts(4);
  return [
    etcdMember(options, "etcd", { client, peer }, { etcd: peer }),
    node(options, { name: "cassandra", ring: RING_ADDRESSES.slice(0, 1), index: 0, ports: { native, storage } }),
  ];
}

async function planRing(options: PlanOptions): Promise<readonly Member[]> {
  const ports = await ringPorts(options.dir);
  const names = ports.etcd.map((_, index) => `etcd-${index + 1}`);
  const peers = Object.fromEntries(names.map((name, index) => [name, ports.etcd[index]?.peer ?? 0]));
  return [
    ...ports.etcd.map((own, index) => etcdMember(options, names[index] ?? "", own, peers)),
    ...RING_ADDRESSES.map((_, index) =>
      node(options, { name: `cassandra-${index + 1}`, ring: RING_ADDRESSES, index, ports: ports.cassandra }),
    ),
  ];
}

interface RingPorts {
  readonly etcd: readonly EtcdPorts[];
  /** The same on every address. */
  readonly cassandra: CassandraPorts;
}

/** Members remember where their peers are, so a ring keeps the ports it first had. */
async function ringPorts(dir: string): Promise<RingPorts> {
  const file = join(dir, RING_PORTS_FILE);
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept !== undefined) return JSON.parse(kept) as RingPorts;
  const [native = 0, storage = 0, ...rest] = await freePorts(2 + 2 * RING_ADDRESSES.length, RING_ADDRESSES);
  const etcd = RING_ADDRESSES.map((_, index) => ({ client: rest[2 * index] ?? 0, peer: rest[2 * index + 1] ?? 0 }));
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

/** Waits until it serves clients. */
export function memberIsUp(member: Member, daemon: Daemon): Promise<void> {
  return member.kind === "etcd" ? etcdIsUp(member, daemon) : cassandraIsUp(member, daemon);
}
